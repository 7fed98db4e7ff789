"""Sums of turns: sum_j w_j (exp(iy L_j) - 1) at equally spaced y, for ``law.mean_phase``.

R(a) = exp(ia) - 1 is small where a is, and R(a + b) = R(a) + R(b) + R(a) R(b) loses nothing there.
So with coarse and fine steps n values of y cost one matrix product. Where that would be long, most
terms turn far: their sum is one of Fourier transforms.
"""

from math import pi

import numpy as np

from .work import spend

__all__ = []

EPS = np.finfo(float).eps
BLOCK = 250_000  # entries of one array at a time
TURN, NODE, PRODUCT = 45, 100, 0.6  # work of a turn, of a height, of both
LONG = 10_000_000  # products, beyond which far turns are transformed
POWERS = 18  # of Taylor's series: (pi/4)^18 / 18! < 0.01 EPS
FFT_NOISE = 10.0  # norm-wise error of a transform, in EPS
TRANSFORM, GRID = 40, 25  # work of one power: for each loss, and for each point of a transform


def expm1_i(a):
    """exp(ia) - 1 for real or complex a."""
    half = 0.5 * a.real
    sine, cosine = np.sin(half), np.cos(half)
    turned = -2 * sine * sine + 2j * sine * cosine
    if np.isrealobj(a):
        return turned
    return turned * np.exp(-a.imag) + np.expm1(-a.imag)


def heavy(weights, loss):
    """Which terms matter: the others add at most EPS/16 of the sum of moduli at every y.

    abs(R(a)) <= min(abs(a), 2), so that sum of minima is concave in y and increases: it is at least
    min(y/x, 1) times that at any x, here 1/E abs(L); terms add at most min(y/x, 1) times the sum of
    their weights times max(x abs(L), 2)."""
    size, moved = np.abs(weights), np.abs(loss)
    moved = moved / max(float(size @ moved), 1e-300)
    room = EPS / 16 * float(size @ np.minimum(moved, 2.0))
    size = size * np.maximum(moved, 2.0)
    least = room / max(len(size), 1)
    while least < room and size[size <= 4 * least].sum() <= room:
        least *= 4
    return size > least


def sums(weights, loss, sizes, y):
    """The sum at each y, with the squares and the sum of what the terms are off, in EPS: see
    ``law.mean_phase``."""
    count = len(loss) * len(y)
    if count < LONG or np.iscomplexobj(loss) or y[0] != 0:
        return _products(weights, loss, sizes, y)
    # what turns by 1 before this height, and from there on, is far
    edge = min(max(2, int(np.sqrt(len(y) ** 2 / (y[-1] * np.abs(loss).max())))), len(y))
    far = np.abs(loss) * y[edge - 1] > 1
    if edge * len(loss) + len(y) * np.sum(~far) > count // 4:
        return _products(weights, loss, sizes, y)
    near = [x[~far] for x in (weights, loss, sizes)]
    low, high = _products(weights, loss, sizes, y[:edge]), _products(*near, y[edge:])
    value, square = _transformed(weights[far], loss[far], y)
    moved, y = 2 * weights[far], y[edge:]
    square += np.sum((moved * sizes[far]) ** 2)
    slipped = 0.5 * y * float(weights[far] @ np.abs(loss[far]))  # y and the grid are rounded
    high = (
        high[0] + value[edge:],
        high[1] + square + _rounded(weights[far], loss[far], y),
        high[2] + moved.sum() + slipped,
    )
    return tuple(np.concatenate(both) for both in zip(low, high, strict=True))


def _products(weights, loss, sizes, y):
    stride = max(1, int(np.sqrt(len(y))))
    spend(len(loss) * (PRODUCT * len(y) + TURN * stride) + NODE * len(y))
    coarse, fine = y[::stride], y[:stride] - y[0]
    rise = np.zeros((len(coarse), len(fine)), dtype=complex)
    squares, common = np.zeros(len(coarse)), np.zeros(len(coarse))
    block = max(1, BLOCK // len(coarse))
    for first in range(0, len(loss), block):
        part = slice(first, first + block)
        w, values = weights[part], loss[part]
        far, near = _turns(coarse, values), _turns(fine, values)
        rise += (far @ w)[:, None] + near @ w + (far * w) @ near.T
        moved = np.minimum(np.multiply.outer(coarse + fine[-1], np.abs(values)), 2.0) * np.abs(w)
        squares += np.sum((moved * sizes[part]) ** 2, axis=1)
        common += moved.sum(axis=1)
    squares, common = (np.repeat(x, stride)[: len(y)] for x in (squares, common))
    return rise.ravel()[: len(y)], squares + _rounded(weights, loss, y), common


def _rounded(weights, loss, y):
    """The squares of what the angles y L are rounded by: half a unit, and ``law`` takes four."""
    return (0.125 * y * np.linalg.norm(weights * np.abs(loss))) ** 2


def _turns(at, loss):
    """R(a loss) for equally spaced a, a row each: from coarse and fine a."""
    stride = max(1, int(np.sqrt(len(at))))
    steps = at[::stride], at[:stride] - at[0]
    far, near = (expm1_i(np.multiply.outer(a, loss)) for a in steps)
    found = far[:, None] * near
    found += far[:, None]
    found += near
    return found.reshape(-1, len(loss))[: len(at)]


def _transformed(weights, loss, y):
    """sum_j w_j R(y L_j) for y = 0, h, 2h, ..., and the square of its round-off in EPS.

    Each loss is a point of a grid and s. Around the middle height v, exp(i(y - v)s) is a Taylor
    series, for its exponent is at most pi/4; each power of it takes one transform of the grid."""
    size = 1 << int(np.ceil(np.log2(2 * len(y))))
    spend(POWERS * (TRANSFORM * len(loss) + GRID * size))
    unit = 2 * pi / (size * y[1])
    place = np.round(loss / unit)
    slot = np.mod(place, size).astype(np.int64)
    moved, middle = (loss - place * unit) / (0.5 * unit), y[len(y) // 2]
    power = weights * np.exp(0.5j * middle * unit * moved)
    turn = 0.5j * unit * (y - middle)
    total, factor = np.zeros(len(y), dtype=complex), np.ones(len(y), dtype=complex)
    for n in range(1, POWERS + 1):
        parts = (np.bincount(slot, part, size) for part in (power.real, power.imag))
        grid = next(parts) + 1j * next(parts)
        total += factor * np.fft.ifft(grid, norm="forward")[: len(y)]
        power, factor = power * moved, factor * turn / n
    norm = np.linalg.norm(np.bincount(slot, weights, size))
    return total - weights.sum(), (FFT_NOISE * norm) ** 2

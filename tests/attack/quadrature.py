"""Gauss-Legendre quadrature in high precision, on fixed panels or refined where halves disagree."""

import heapq
from functools import lru_cache

from flint import arb, ctx

__all__ = ["OutOfTimeError", "TooLongError", "adaptive", "panels", "rule"]


class TooLongError(Exception):
    """This way needs too long: another may not."""


class OutOfTimeError(BaseException):
    """The oracle's time is over: not to be caught where other ways are tried."""


@lru_cache(maxsize=8)
def rule(n, prec):
    """Nodes and weights on (-1, 1) to this precision."""
    del prec
    return [arb.legendre_p_root(n, i, weight=True) for i in range(n)]


def _panel(f, low, high, n):
    half, middle = (high - low) / 2, (high + low) / 2
    return half * sum((w * f(middle + half * x) for x, w in rule(n, ctx.prec)), arb(0))


def panels(f, edges, n=40):
    """The sum of n-point rules between the edges (balls)."""
    return sum((_panel(f, a, b, n) for a, b in zip(edges, edges[1:], strict=False)), arb(0))


def adaptive(f, edges, tolerance=1e-20, n=16, most=400):
    """The integral of a positive f, with an error: panels are halved, the worst first, until the
    halves agree with the whole to the tolerance relative to the total."""
    heap, total, wrong = [], arb(0), 0.0

    def push(low, high, depth):
        nonlocal total, wrong
        middle = (low + high) / 2
        fine = _panel(f, low, middle, n) + _panel(f, middle, high, n)
        error = float(abs(fine - _panel(f, low, high, n)).mid())
        total += fine
        wrong += error
        heapq.heappush(heap, (-error, len(heap) + 1000 * depth, low, high, depth, fine))

    for low, high in zip(edges, edges[1:], strict=False):
        push(low, high, 0)
    for _ in range(most):
        if wrong <= tolerance * float(total.mid()) or wrong < 1e-320:
            break
        error, _, low, high, depth, fine = heapq.heappop(heap)
        total, wrong = total - fine, wrong + error
        if depth > 60:
            raise TooLongError
        middle = (low + high) / 2
        push(low, middle, depth + 1)
        push(middle, high, depth + 1)
        wrong = max(wrong, sum(-item[0] for item in heap) if len(heap) % 16 == 0 else 0.0)
    else:
        raise TooLongError
    total, wrong = arb(0), 0.0
    for item in heap:
        total, wrong = total + item[5], wrong - item[0]
    return arb(total.mid(), total.rad() + arb(wrong) * 4)

"""Integer noise that is drawn exactly: from the stated law, and from no approximation of it.

A coin of chance p is one comparison of random bits with the binary digits of p. The first 64 bits
decide, except in one case in 2^64; then more digits are worked out in whole numbers. The digits of
e^-r come from fractions on both sides of it (X-exact-noise). A choice among many candidates
compares random bits with the sums of their weights, in the same way (X-exact-choice).
"""

from fractions import Fraction
from functools import lru_cache, partial
from math import floor, isqrt

import numpy as np

WORD = 64
SHARP = 2.0**-40  # far above the error of `np.exp`: closer than this, fractions decide
GUARD = 96  # bits beyond those that were drawn, in which weights are enclosed
LAST_RATE = 48  # e^-48 < 2^-64: a digit of that rate is set less than once in 2^64 draws


def geometric(rate, size, rng):
    """`size` whole numbers g >= 0 with P(g) proportional to exp(-rate g), `rate` a Fraction > 0.

    Their binary digits are independent coins, digit j with the odds exp(-2^j rate) (X-exact-noise).
    An int64 array, or one of Python ints where 61 digits may not do.
    """
    *chances, last = _digit_chances(rate)
    digits = len(chances)
    noise = np.zeros(size, dtype=np.int64 if digits <= 61 else object)
    for j, chance in enumerate(chances):
        noise[coins(chance, size, rng)] += 2**j
    beyond = coins(last, size, rng)
    if beyond.any():  # no memory: what lies beyond the last digit is geometric again
        noise = noise.astype(object)
        noise[beyond] = 2**digits + geometric(rate, int(beyond.sum()), rng)
    return noise


@lru_cache(maxsize=64)
def _digit_chances(rate):
    """The chances of the digits up to `LAST_RATE`, and that of anything beyond."""
    chances = []
    while rate < LAST_RATE:
        chances.append(partial(_digits_of_odds, rate))
        rate = 2 * rate
    return *chances, partial(_digits_of_exp, rate)


def odds_coins(rate, size, rng):
    """`size` booleans, true with probability e^-rate/(1 + e^-rate), `rate` a Fraction > 0."""
    return coins(partial(_digits_of_odds, rate), size, rng)


def discrete_laplace_noise(rate, size, rng):
    """Integers z with P(z) proportional to exp(-rate |z|): the difference of two geometrics."""
    both = geometric(rate, 2 * size, rng)
    return both[:size] - both[size:]


def discrete_gaussian_noise(variance, size, rng):
    """Integers z with P(z) proportional to exp(-z^2/(2 variance)), `variance` a Fraction.

    Canonne, Kamath and Steinke (2020), Algorithm 3: discrete Laplace draws z of scale t, kept with
    probability exp(-(|z| - variance/t)^2 / (2 variance)), until `size` are kept.
    """
    t = isqrt(floor(variance)) + 1
    kept, missing = [], size
    while missing:
        z = discrete_laplace_noise(Fraction(1, t), missing + missing // 2 + 8, rng)
        z = z[_gaussian_coins(np.abs(z), variance, variance / t, rng)][:missing]
        kept.append(z)
        missing -= len(z)
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def choice_around(middle, sides, rate, rng):
    """Which class of candidates: (side, i), or (None, 0) for the middle (X-exact-choice).

    `middle` candidates, at least one, have the weight 1. Each of the two `sides` is a pair: a
    Fraction `first` > 0, and whole numbers; counts[i] candidates there have the weight
    exp(-rate (first + i)). A class is drawn with the probability of all its candidates together.
    """
    drawn, bits, chosen = 0, 0, None
    while chosen is None:  # nearly always once: the next 64 bits are needed in some 2^-50 of cases
        drawn, bits = drawn << WORD | int(_words(1, rng)[0]), bits + WORD
        chosen = _class_of(drawn, bits, list(_enclosed_weights(middle, sides, rate, bits)))
    return chosen


def _class_of(drawn, bits, classes):
    """The class in which a uniform number lies that begins with these bits; None if that is the
    rest, or if the bits do not tell. A class (name, low, high) has a weight in [low, high]."""
    least, most = (sum(ends) for ends in list(zip(*classes, strict=True))[1:])
    before = below = above = 0  # the weights up to a class sum to `below` to `above`
    for name, low, high in classes:
        before, below, above = above, below + low, above + high
        last = below == least and above == most
        if before << bits <= drawn * least and (last or (drawn + 1) * most <= below << bits):
            return name
    return None


def _enclosed_weights(middle, sides, rate, bits):
    """Classes (name, low, high), farther and farther out, with weights in units of 2^-w; what
    weighs less than 2^-bits in all is the last class, the rest, with the name None."""
    w = bits + GUARD
    step, *powers = (_enclosed(rate * far, w) for far in (1, *(first for first, _ in sides)))
    left = sum(int(np.sum(counts)) for _, counts in sides)
    yield (None, 0), middle << w, middle << w
    for i in range(max(len(counts) for _, counts in sides)):
        if left * max(high for _, high in powers) < 1 << GUARD:
            break
        for side, (_, counts) in enumerate(sides):
            if i < len(counts):
                count = int(counts[i])
                left -= count
                yield (side, i), count * powers[side][0], count * powers[side][1]
        powers = [(low * step[0] >> w, (high * step[1] >> w) + 1) for low, high in powers]
    if left:
        yield None, 0, left * max(high for _, high in powers)


@lru_cache(maxsize=64)
def _enclosed(rate, w):
    """Whole numbers on both sides of 2^w exp(-rate)."""
    low, high, one = enclosed_exp(rate, w)
    more = one.bit_length() - 1 - w
    return low >> more, (high >> more) + 1


def coins(digits, size, rng):
    """`size` booleans, true with the probability whose binary digits are given.

    `digits(n)` is floor(2^n p) for every n: true where as many random bits are less.
    """
    bound, drawn = digits(WORD), _words(size, rng)
    heads = drawn < np.uint64(bound)
    for i in np.flatnonzero(drawn == np.uint64(bound)):  # one in 2^64
        heads[i] = _uniform_is_less(int(drawn[i]), digits, rng)
    return heads


def _words(size, rng):
    return rng.integers(2**WORD - 1, size=size, dtype=np.uint64, endpoint=True)


def _uniform_is_less(drawn, digits, rng):
    """Whether a uniform number that begins with these 64 bits is less than p."""
    bits = WORD
    while drawn == digits(bits):
        drawn = drawn << WORD | int(_words(1, rng)[0])
        bits += WORD
    return drawn < digits(bits)


def _gaussian_coins(size, variance, middle, rng):
    """True with probability exp(-(size - middle)^2 / (2 variance)), entry by entry: in floats where
    these are far enough apart to be right, in fractions elsewhere."""
    drawn = _words(len(size), rng)
    far = (size.astype(float) - float(middle)) / float(variance) ** 0.5
    gap = drawn * 2.0**-WORD - np.exp(-(far**2) / 2)
    heads = gap < 0
    for i in np.flatnonzero(np.abs(gap) < SHARP):
        rate = (int(size[i]) - middle) ** 2 / (2 * variance)
        heads[i] = rate == 0 or _uniform_is_less(int(drawn[i]), partial(_digits_of_exp, rate), rng)
    return heads


@lru_cache(maxsize=1024)
def _digits_of_exp(rate, bits):
    """floor(2^bits p) for p = exp(-rate)."""
    return _floor_of(lambda x, one: (x << bits) // one, rate, bits)


@lru_cache(maxsize=1024)
def _digits_of_odds(rate, bits):
    """floor(2^bits p) for p = exp(-rate) / (1 + exp(-rate))."""
    return _floor_of(lambda x, one: (x << bits) // (one + x), rate, bits)


def _floor_of(digits, rate, bits):
    """digits(x, one) at the true x/one = exp(-rate): evaluated at both ends of an enclosure, with
    more and more bits, until they agree. They do: exp of a fraction other than 0 is irrational, and
    so no multiple of 2^-bits."""
    more = 16
    while True:
        low, high, one = enclosed_exp(rate, bits + more)
        if digits(low, one) == digits(high, one):
            return digits(low, one)
        more *= 2


def enclosed_exp(rate, bits):
    """Whole numbers low <= exp(-rate) one <= high and one = 2^w, w >= bits, low and high about as
    close as 2^(w - bits). `rate` is a Fraction >= 0.

    The alternating series at x = rate/2^m <= 1, whose partial sums lie on both sides, squared m
    times, rounded down and up.
    """
    halvings = max(0, floor(rate).bit_length())
    x, w = rate / 2**halvings, bits + 2 * halvings + 8
    one = 1 << w
    term, total, n = Fraction(1), Fraction(1), 0
    while term * one > 1 or n % 2 == 0:  # stops after a negative term, below
        n += 1
        term = term * x / n
        total += term if n % 2 == 0 else -term
    low, high = floor(total * one), floor((total + term) * one) + 1
    for _ in range(halvings):
        low, high = low * low >> w, (high * high >> w) + 1
    return low, high, one

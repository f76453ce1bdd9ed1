"""Streams under which a statement is true, with the probability that a test of it fails, and slow twins of states."""

import math

import numpy as np
from scipy.stats import binom

RUNS, ROWS = 120, 2000


def allowed(level, runs=RUNS, failing=1e-6):
    """The most violations in some runs that a true statement of this level has, but with a probability of 1e-6."""
    return int(binom.isf(failing, runs, level))


def nulls(rng, n=ROWS):
    """Numbers in [−1/2, 1/2] whose average conditional mean is never above 0, and how they come about."""
    signs = rng.choice([-0.5, 0.5], n)
    yield "fair signs", signs
    yield "rare large gains", np.where(rng.random(n) < 0.01, 0.5, -0.5 * 0.01 / 0.99)
    yield "rare large losses", np.where(rng.random(n) < 0.01, -0.5, 0.5 * 0.01 / 0.99)
    yield "the variance grows", signs * np.where(np.arange(n) < n // 2, 0.02, 1.0)
    yield "heavy tails", np.clip(rng.standard_t(2, n) * 0.1, -0.5, 0.5)
    early = np.where(np.arange(n) < n // 2, -0.1, 0.1) + np.clip(rng.normal(size=n), -4, 4) * 0.1
    yield "worse early, better later", early
    yield "the sign follows the past", _following(rng, n)


def _following(rng, n):
    """Fair numbers whose size an adversary chooses from their sum so far."""
    x, total = np.empty(n), 0.0
    for t in range(n):
        size = 0.5 if total > 0 else 0.05
        x[t] = size * rng.choice([-1.0, 1.0])
        total += x[t]
    return x


def log_evidence(x, low, high, mean, count=12):
    """The logarithm of the e-value after each row against an average of at most ``mean``, row by row."""
    width = high - low
    rates = [1e-4 * (0.9 / 1e-4) ** (k / (count - 1)) / width for k in range(count)]
    cost = [(-math.log(1 - width * rate) - width * rate) / width**2 for rate in rates]
    found, total, variation = [], 0.0, 0.0
    for t, value in enumerate(x):
        center = total / t if t else (low + high) / 2
        total, variation = total + value, variation + (value - center) ** 2
        logs = [r * (total - (t + 1) * mean) - c * variation for r, c in zip(rates, cost, strict=True)]
        top = max(logs)
        found.append(top + math.log(sum(math.exp(one - top) for one in logs) / count))
    return np.array(found)


def log_evidence_of_weighted(x, w, low, high, mean):
    """The logarithm of the e-value of weighted numbers after each row, row by row."""
    found, total, variation, weight, largest = [], 0.0, 0.0, 0.0, 0.0
    for value, each in zip(x, w, strict=True):
        center = total / weight if weight else (low + high) / 2
        total, variation, weight = total + each * value, variation + (each * (value - center)) ** 2, weight + each
        largest = max(largest, each)
        e = 0.0
        for k in range(12):
            rate, width = 1e-4 * 9000 ** (k / 11) / ((high - low) * w[0]), (high - low) * largest
            if rate * width < 1:
                cost = (-math.log(1 - width * rate) - width * rate) / width**2
                e += math.exp(rate * (total - weight * mean) - cost * variation) / 12
        found.append(math.log(e) if e else -math.inf)
    return np.array(found)

r"""Weighing experts by what they lost, row after row: exponential weights, and AdaHedge.

The ``ledger`` has what the mixture lost, the largest importance of a row, what weighing cost beyond what is free, the
smallest and the largest label, how many rows there were, and then what each expert lost. Nothing else is remembered.
Rows of negative importance are only predicted.
"""

import numpy as np
from numba import njit

from forel.jit.compiling import cached_njit

__all__ = ["HEAD", "hedged", "log_mixed", "probability", "shifting", "squared"]

HEAD = 6  # numbers of the ledger before those of the experts
compiled = cached_njit(__file__)
FAR = 45.0  # nats behind the best: e^−45 of a weight is below the last place of a double


@njit(nogil=True, error_model="numpy", inline="always")
def weigh(lost, eta, weights):
    """Write weights in proportion to e^{−ηL}, and return their sum; the best expert has weight 1."""
    least, total = lost[0], 0.0
    for k in range(lost.size):
        least = min(least, lost[k])
    for k in range(lost.size):
        behind = eta * (lost[k] - least)
        weights[k] = np.exp(-behind) if behind < FAR else 0.0
        total += weights[k]
    return total


@njit(nogil=True, error_model="numpy", inline="always")
def rate(ledger, importance):
    """Return η: log-loss times c is exp-concave for 1/c, and a rate never rises."""
    return 1.0 / max(1.0, max(ledger[1], importance))


@njit(nogil=True, error_model="numpy")
def log_sum(weights, logs):
    """Return log Σ w e^a, of whatever size."""
    top, mixed = -np.inf, 0.0
    for k in range(weights.size):
        top = max(top, logs[k] if weights[k] > 0 else -np.inf)
    for k in range(weights.size):
        mixed += weights[k] * np.exp(logs[k] - top) if weights[k] > 0 else 0.0
    return top + np.log(mixed)


@njit(nogil=True, error_model="numpy")
def pooled(margins, weights, total, ends):
    """Return log p and log(1 − p) of the mixed probability, and write log(1 + e^m) of each expert."""
    p, q = 0.0, 0.0
    for k in range(margins.size):
        m = np.float64(margins[k])
        e = np.exp(-abs(m))
        s = 1.0 / (1.0 + e)
        ends[k] = max(m, 0.0) - np.log(s)
        high, low = weights[k] * s, weights[k] * e * s
        p += high if m > 0 else low
        q += low if m > 0 else high
    if min(p, q) > 1e-290:
        return np.log(p / total), np.log(q / total)
    # Beyond what a double holds.
    return log_sum(weights, margins - ends) - np.log(total), log_sum(weights, -ends) - np.log(total)


@njit(nogil=True, error_model="numpy", inline="always")
def log_loss(y, yes, no):
    """Return −y log p − (1 − y) log(1 − p), where one of both may be infinite and not asked for."""
    return -(y * yes + (1 - y) * no if 0 < y < 1 else (yes if y == 1 else no))


@compiled
def probability(margins, labels, importance, ledger, out):
    """Mix probabilities, from margins with a column an expert, by exponential weights; ``out`` has log p/(1 − p)."""
    rows, count = margins.shape
    lost, weights, ends = ledger[HEAD:], np.empty(count), np.empty(count)
    for r in range(rows):
        c, y = np.float64(importance[r]), np.float64(labels[r])
        total = weigh(lost, rate(ledger, c), weights)
        yes, no = pooled(margins[r], weights, total, ends)
        out[r] = yes - no
        if c < 0:
            continue
        ledger[0] += c * log_loss(y, yes, no)
        ledger[1] = max(ledger[1], c)
        for k in range(count):
            lost[k] += c * (ends[k] - y * np.float64(margins[r, k]))


@compiled
def shifting(margins, labels, importance, share, ledger, out):
    """Mix probabilities by fixed share: after each row a share of all weight goes to the other experts.

    Weights are kept after the losses. They never become so small that they would have to be logarithms.
    """
    rows, count = margins.shape
    lost, weights = ledger[HEAD : HEAD + count], ledger[HEAD + count :]
    ends, even = np.empty(count), share * count / (count - 1)
    for r in range(rows):
        c, y = np.float64(importance[r]), np.float64(labels[r])
        yes, no = pooled(margins[r], weights, 1.0, ends)
        out[r] = yes - no
        if c < 0:
            continue
        ledger[0] += c * log_loss(y, yes, no)
        ledger[1] = max(ledger[1], c)
        losses, total = ends - y * margins[r], 0.0
        least = np.min(losses)
        for k in range(count):
            lost[k] += c * losses[k]
            weights[k] *= np.exp(-min(rate(ledger, c) * c * (losses[k] - least), 600.0))
            total += weights[k]
        for k in range(count):
            weights[k] = (1 - even) * weights[k] / total + even / count


@compiled
def log_mixed(logs, labels, importance, ledger, out):
    """Mix the probabilities of several classes, as logarithms by row, class and expert; so are those of ``out``."""
    rows, classes, count = logs.shape
    lost, weights = ledger[HEAD:], np.empty(count)
    for r in range(rows):
        c = np.float64(importance[r])
        total = np.log(weigh(lost, rate(ledger, c), weights))
        for i in range(classes):
            out[r, i] = log_sum(weights, logs[r, i]) - total
        if c < 0:
            continue
        y = np.intp(labels[r])
        ledger[0] -= c * out[r, y]
        ledger[1] = max(ledger[1], c)
        for k in range(count):
            lost[k] -= c * logs[r, y, k]


@compiled
def hedged(margins, losses, importance, ledger, out):
    """Mix margins, by row, class and expert, by AdaHedge, which needs only that losses are convex in all margins."""
    rows, classes, count = margins.shape
    lost, weights, log = ledger[HEAD:], np.empty(count), np.log(margins.shape[2])
    for r in range(rows):
        c = np.float64(importance[r])
        # Before anything was lost by weighing, all have lost the same.
        eta = log / ledger[2] if ledger[2] > 0 else 0.0
        total = weigh(lost, eta, weights)
        for i in range(classes):
            mixed = 0.0
            for k in range(count):
                mixed += weights[k] / total * np.float64(margins[r, i, k])
            out[r, i] = mixed
        if c < 0:
            continue
        least, expected, soft = np.min(losses[r]), 0.0, 0.0
        for k in range(count):
            above = c * (losses[r, k] - least)
            expected += weights[k] / total * above
            soft += weights[k] / total * np.exp(-eta * above)
            lost[k] += c * losses[r, k]
        ledger[2] += max(0.0, expected + (np.log(soft) / eta if eta > 0 else 0.0))


@compiled
def squared(margins, labels, importance, spans, ledger, out):
    """Mix predictions of numbers for half their squared distance, which is exp-concave within a ``span``: for 1/span².

    A label outside of what was seen before may cost more than mixing is allowed to; how much is kept in the ledger.
    """
    rows, count = margins.shape
    lost, weights = ledger[HEAD:], np.empty(count)
    for r in range(rows):
        c, y = np.float64(importance[r]), labels[r]
        eta = rate(ledger, c) / (spans[r] * spans[r]) if spans[r] > 0 else 0.0
        total = weigh(lost, eta, weights)
        mixed = 0.0
        for k in range(count):
            mixed += weights[k] / total * margins[r, k]
        out[r] = mixed
        if c < 0:
            continue
        soft, mean, least = 0.0, 0.0, np.inf
        for k in range(count):
            least = min(least, (margins[r, k] - y) ** 2 / 2)
        for k in range(count):
            above = (margins[r, k] - y) ** 2 / 2 - least
            soft += weights[k] / total * np.exp(-eta * c * above)
            mean += weights[k] / total * c * above
            lost[k] += c * (above + least)
        allowed = c * least + (-np.log(soft) / eta if eta > 0 else mean)
        suffered = c * (mixed - y) ** 2 / 2
        ledger[0] += suffered
        ledger[1] = max(ledger[1], c)
        ledger[2] += max(0.0, suffered - allowed)

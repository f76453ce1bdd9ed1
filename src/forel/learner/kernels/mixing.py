r"""Mixtures of experts, weighted by their losses row after row: exponential weights, fixed share, AdaHedge.

The ``ledger`` is the array of :class:`forel.learner.ledger.Ledger`: the loss of the mixture, the largest importance,
the mixability gap, the smallest and the largest label, rows, the sum of importances, then the loss of each expert. Rows
of negative importance are predicted only.

Weights are logarithms: an expert far behind may be the only one that predicts the next row well, and the bound relies
on its weight however small it is.
"""

import numpy as np
from numba import njit

from forel.jit.compiling import cached_njit

__all__ = ["HEAD", "LARGEST", "adahedge", "bayes", "bayes_classes", "fixed_share", "squared"]

HEAD = 7  # numbers of the ledger before the losses of the experts
compiled = cached_njit(__file__)
SMALLEST = -690.0  # logarithm of a weight that is still a normal double
RARE = 1e-280  # a sum below which weights that underflowed could matter
LARGEST = 1e290  # a loss above which sums could overflow; it voids the bound


@njit(nogil=True, error_model="numpy", inline="always")
def weigh(lost, eta, logs, weights):
    """Write weights in proportion to e^{−ηL} and their logarithms, and return their sum; the best has weight 1."""
    least, total = lost[0], 0.0
    for k in range(lost.size):
        least = min(least, lost[k])
    for k in range(lost.size):
        logs[k] = -eta * (lost[k] - least)
        weights[k] = np.exp(logs[k]) if logs[k] > SMALLEST else 0.0
        total += weights[k]
    return total


@njit(nogil=True, error_model="numpy", inline="always")
def rate(ledger, importance):
    """Return η: log-loss times c is exp-concave for 1/c, and a rate never rises."""
    return 1.0 / max(1.0, max(ledger[1], importance))


@njit(nogil=True, error_model="numpy")
def log_sum(logs, terms):
    """Return log Σ w e^a from log w and a, without overflow or underflow."""
    top, mixed = -np.inf, 0.0
    for k in range(logs.size):
        top = max(top, logs[k] + terms[k])
    for k in range(logs.size):
        mixed += np.exp(logs[k] + terms[k] - top)
    return top + np.log(mixed)


@njit(nogil=True, error_model="numpy")
def mix_loss(logs, weights, total, above, eta):
    """Return −(1/η) log Σ w e^{−ηa} for weights w and losses a, of which the least is 0."""
    soft = 0.0
    for k in range(weights.size):
        soft += weights[k] * np.exp(-eta * above[k])
    if soft > RARE:
        return -np.log(soft / total) / eta
    return (np.log(total) - log_sum(logs, -eta * above)) / eta


@njit(nogil=True, error_model="numpy")
def pooled(margins, logs, weights, total, ends):
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
    if min(p, q) > RARE:
        return np.log(p / total), np.log(q / total)
    return log_sum(logs, margins - ends) - np.log(total), log_sum(logs, -ends) - np.log(total)


@njit(nogil=True, error_model="numpy", inline="always")
def log_loss(y, yes, no):
    """Return −y log p − (1 − y) log(1 − p); a logarithm whose factor is 0 may be infinite."""
    return -(y * yes + (1 - y) * no if 0 < y < 1 else (yes if y == 1 else no))


@compiled
def bayes(margins, labels, importance, ledger, out):
    """Mix probabilities, from margins with a column an expert, by exponential weights; ``out`` has log p/(1 − p)."""
    rows, count = margins.shape
    lost, logs, weights, ends = ledger[HEAD:], np.empty(count), np.empty(count), np.empty(count)
    for r in range(rows):
        c, y = np.float64(importance[r]), np.float64(labels[r])
        total = weigh(lost, rate(ledger, c), logs, weights)
        yes, no = pooled(margins[r], logs, weights, total, ends)
        out[r] = yes - no
        if c < 0:
            continue
        ledger[0] += c * log_loss(y, yes, no)
        ledger[1] = max(ledger[1], c)
        for k in range(count):
            lost[k] += c * (ends[k] - y * np.float64(margins[r, k]))


@compiled
def fixed_share(margins, labels, importance, share, ledger, out):
    """Mix probabilities by fixed share: after each row a share of all weight goes to the other experts.

    Weights follow the losses in the ledger. The share bounds them from below, so that they need not be logarithms.
    """
    rows, count = margins.shape
    lost, weights = ledger[HEAD : HEAD + count], ledger[HEAD + count :]
    logs, ends, even = np.empty(count), np.empty(count), share * count / (count - 1)
    for r in range(rows):
        c, y = np.float64(importance[r]), np.float64(labels[r])
        for k in range(count):
            logs[k] = np.log(weights[k])
        yes, no = pooled(margins[r], logs, weights, 1.0, ends)
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
def bayes_classes(logs, labels, importance, ledger, out):
    """Mix log-probabilities by row, class and expert into log-probabilities of classes."""
    rows, classes, count = logs.shape
    lost, weighed, weights = ledger[HEAD:], np.empty(count), np.empty(count)
    for r in range(rows):
        c = np.float64(importance[r])
        total = np.log(weigh(lost, rate(ledger, c), weighed, weights))
        for i in range(classes):
            out[r, i] = log_sum(weighed, logs[r, i]) - total
        if c < 0:
            continue
        y = np.intp(labels[r])
        ledger[0] -= c * out[r, y]
        ledger[1] = max(ledger[1], c)
        for k in range(count):
            lost[k] -= c * logs[r, y, k]


@compiled
def adahedge(margins, losses, importance, ledger, out):
    """Mix margins, by row, class and expert, by AdaHedge, for any losses that are convex in the margins."""
    rows, classes, count = margins.shape
    lost, log = ledger[HEAD:], np.log(margins.shape[2])
    logs, weights, above = np.empty(count), np.empty(count), np.empty(count)
    for r in range(rows):
        c = np.float64(importance[r])
        # While the mixability gap is 0, all experts have the same loss.
        eta = log / ledger[2] if ledger[2] > 0 else 0.0
        total = weigh(lost, eta, logs, weights)
        for i in range(classes):
            mixed = 0.0
            for k in range(count):
                mixed += weights[k] / total * np.float64(margins[r, i, k])
            out[r, i] = mixed
        if c < 0:
            continue
        least, expected = np.min(losses[r]), 0.0
        for k in range(count):
            above[k] = c * (losses[r, k] - least)
            expected += weights[k] / total * above[k]
            lost[k] += c * losses[r, k]
        # At η = ∞ the mix loss is the loss of the best expert, which is 0 here.
        ledger[2] += max(0.0, expected - (mix_loss(logs, weights, total, above, eta) if eta > 0 else 0.0))


@njit(nogil=True, error_model="numpy", inline="always")
def half_square(distance):
    """Return ½d², within what a double holds."""
    return min(distance * distance / 2, LARGEST)


@compiled
def squared(margins, labels, importance, spans, ledger, out):
    """Mix predictions for half the squared error, which is 1/span²-exp-concave if labels and predictions are in a span.

    A label outside of the range of earlier labels may cost more than the bound allows; the excess is in the ledger.
    """
    rows, count = margins.shape
    lost, logs, weights, above = ledger[HEAD:], np.empty(count), np.empty(count), np.empty(count)
    for r in range(rows):
        c, y = np.float64(importance[r]), labels[r]
        eta = rate(ledger, c) / (spans[r] * spans[r]) if spans[r] > 0 else 0.0
        total = weigh(lost, eta, logs, weights)
        mixed = 0.0
        for k in range(count):
            mixed += weights[k] / total * margins[r, k]
        out[r] = mixed
        if c < 0:
            continue
        mean, least = 0.0, np.inf
        for k in range(count):
            least = min(least, half_square(margins[r, k] - y))
        for k in range(count):
            loss = half_square(margins[r, k] - y)
            above[k] = c * (loss - least)
            mean += weights[k] / total * above[k]
            lost[k] += c * loss
        allowed = c * least + (mix_loss(logs, weights, total, above, eta) if eta > 0 else mean)
        suffered = c * half_square(mixed - y)
        ledger[0] += suffered
        ledger[1] = max(ledger[1], c)
        ledger[2] += max(0.0, suffered - allowed)

r"""Mixtures of experts, weighted by their cumulative losses: exponential weights, fixed share, AdaHedge.

The ``ledger`` is the array of :class:`forel.learner.mixture.Ledger`, as :mod:`forel.learner.kernels.ledger_layout`
describes. Rows of negative importance are predicted only.

Weights are kept as logarithms: an expert far behind may be the only one that predicts the next row well, and the bound
relies on its weight however small it is.
"""

import numpy as np

from forel.jit import njit
from forel.learner.kernels.ledger_layout import GAP, HEAD, IMPORTANCE, LOSS, LOSS_LIMIT

__all__ = [
    "MIN_LOG_WEIGHT",
    "MIN_SUM",
    "adahedge",
    "bayes_classes",
    "fixed_share",
    "log_loss",
    "rate",
    "squared",
]

compiled, inlined = njit(), njit(inner=True, forceinline=True)
MIN_LOG_WEIGHT = -690.0  # the exponential of it is still a normal double
MIN_SUM = 1e-280  # of weights; below it, weights that underflowed could matter


@inlined
def exponential_weights(losses, eta, logs, weights):
    """Write weights proportional to e^{−ηL} and their logarithms, and return their sum; the best has weight 1."""
    least, total = losses[0], 0.0
    for k in range(losses.size):
        least = min(least, losses[k])
    for k in range(losses.size):
        logs[k] = -eta * (losses[k] - least)
        weights[k] = np.exp(logs[k]) if logs[k] > MIN_LOG_WEIGHT else 0.0
        total += weights[k]
    return total


@inlined
def rate(ledger, importance):
    """Return η: log-loss times c is 1/c-exp-concave, and the rate must not increase."""
    return 1.0 / max(1.0, max(ledger[IMPORTANCE], importance))


@inlined
def log_sum(logs, terms):
    """Return log Σ w e^a from log w and a, without overflow or underflow."""
    largest, total = -np.inf, 0.0
    for k in range(logs.size):
        largest = max(largest, logs[k] + terms[k])
    for k in range(logs.size):
        total += np.exp(logs[k] + terms[k] - largest)
    return largest + np.log(total)


@inlined
def mix_loss(logs, weights, total, excess, eta):
    """Return −(1/η) log Σ w e^{−ηa} for weights w and losses a, of which the smallest is 0."""
    mean = 0.0
    for k in range(weights.size):
        mean += weights[k] * np.exp(-eta * excess[k])
    if mean > MIN_SUM:
        return -np.log(mean / total) / eta
    return (np.log(total) - log_sum(logs, -eta * excess)) / eta


@inlined
def mixed_log_probabilities(margins, logs, weights, total, softplus):
    """Return log p and log(1 − p) of the mixed probability, and write log(1 + e^m) of each expert."""
    p, q = 0.0, 0.0
    for k in range(margins.size):
        m = np.float64(margins[k])
        e = np.exp(-abs(m))
        s = 1.0 / (1.0 + e)
        softplus[k] = max(m, 0.0) - np.log(s)
        high, low = weights[k] * s, weights[k] * e * s
        p += high if m > 0 else low
        q += low if m > 0 else high
    if min(p, q) > MIN_SUM:
        return np.log(p / total), np.log(q / total)
    return log_sum(logs, margins - softplus) - np.log(total), log_sum(logs, -softplus) - np.log(total)


@inlined
def log_loss(y, log_p, log_q):
    """Return −y log p − (1 − y) log(1 − p); a logarithm whose factor is 0 may be infinite."""
    return -(y * log_p + (1 - y) * log_q if 0 < y < 1 else (log_p if y == 1 else log_q))


@compiled
def fixed_share(margins, labels, importance, share, ledger, out):
    """Mix probabilities by fixed share: after each row every expert gives a share of its weight to the others.

    The ledger has the weights after the losses. The share bounds them from below, so that logarithms are not needed.
    """
    rows, count = margins.shape
    cumulative, weights = ledger[HEAD : HEAD + count], ledger[HEAD + count :]
    logs, softplus, uniform = np.empty(count), np.empty(count), share * count / (count - 1)
    for r in range(rows):
        c, y = np.float64(importance[r]), np.float64(labels[r])
        for k in range(count):
            logs[k] = np.log(weights[k])
        log_p, log_q = mixed_log_probabilities(margins[r], logs, weights, 1.0, softplus)
        out[r] = log_p - log_q
        if c < 0:
            continue
        ledger[LOSS] += c * log_loss(y, log_p, log_q)
        ledger[IMPORTANCE] = max(ledger[IMPORTANCE], c)
        losses, total = softplus - y * margins[r], 0.0
        least = np.min(losses)
        for k in range(count):
            cumulative[k] += c * losses[k]
            weights[k] *= np.exp(-min(rate(ledger, c) * c * (losses[k] - least), 600.0))
            total += weights[k]
        for k in range(count):
            weights[k] = (1 - uniform) * weights[k] / total + uniform / count


@compiled
def bayes_classes(logs, labels, importance, ledger, out):
    """Mix log-probabilities by row, class and expert into log-probabilities of classes."""
    rows, classes, count = logs.shape
    cumulative, log_weights, weights = ledger[HEAD:], np.empty(count), np.empty(count)
    for r in range(rows):
        c = np.float64(importance[r])
        total = np.log(exponential_weights(cumulative, rate(ledger, c), log_weights, weights))
        for i in range(classes):
            out[r, i] = log_sum(log_weights, logs[r, i]) - total
        if c < 0:
            continue
        y = np.intp(labels[r])
        ledger[LOSS] -= c * out[r, y]
        ledger[IMPORTANCE] = max(ledger[IMPORTANCE], c)
        for k in range(count):
            cumulative[k] -= c * logs[r, y, k]


@compiled
def adahedge(margins, losses, importance, ledger, out):
    """Mix margins, by row, class and expert, with AdaHedge, for any loss that is convex in the margins."""
    rows, classes, count = margins.shape
    cumulative, log_count = ledger[HEAD:], np.log(margins.shape[2])
    logs, weights, excess = np.empty(count), np.empty(count), np.empty(count)
    for r in range(rows):
        c = np.float64(importance[r])
        # While the mixability gap is 0, all experts have the same loss.
        eta = log_count / ledger[GAP] if ledger[GAP] > 0 else 0.0
        total = exponential_weights(cumulative, eta, logs, weights)
        for i in range(classes):
            mixed = 0.0
            for k in range(count):
                mixed += weights[k] / total * np.float64(margins[r, i, k])
            out[r, i] = mixed
        if c < 0:
            continue
        least, expected = np.min(losses[r]), 0.0
        for k in range(count):
            excess[k] = c * (losses[r, k] - least)
            expected += weights[k] / total * excess[k]
            cumulative[k] += c * losses[r, k]
        # At η = ∞ the mix loss is the loss of the best expert, which is 0 here.
        ledger[GAP] += max(0.0, expected - (mix_loss(logs, weights, total, excess, eta) if eta > 0 else 0.0))


@inlined
def half_square(distance):
    """Return ½d², at most LOSS_LIMIT."""
    return min(distance * distance / 2, LOSS_LIMIT)


@inlined
def lead(losses, logs, weights):
    """Write the weights of an infinite rate: 1 for experts of least loss, and 0 for others; return their sum."""
    least, total = np.min(losses), 0.0
    for k in range(losses.size):
        weights[k] = 1.0 if losses[k] == least else 0.0
        logs[k] = 0.0 if losses[k] == least else -np.inf
        total += weights[k]
    return total


@compiled
def squared(margins, labels, importance, spans, ledger, out):
    """Mix predictions for half the squared error by exponential weights, whose rate falls with what they cost.

    The loss of a mixed prediction exceeds the mix loss only if the rate is above 1/span², or if the label is outside of
    the range of earlier labels. The excess is in the ledger. The rate is log K divided by it, until it is 1/span².
    """
    rows, count = margins.shape
    cumulative, logs, weights, excess = ledger[HEAD:], np.empty(count), np.empty(count), np.empty(count)
    for r in range(rows):
        c, y = np.float64(importance[r]), labels[r]
        certain = rate(ledger, c) / (spans[r] * spans[r]) if spans[r] > 0 else np.inf
        eta = max(certain, np.log(count) / ledger[GAP] if ledger[GAP] > 0 else np.inf)
        finite = eta < np.inf
        total = exponential_weights(cumulative, eta, logs, weights) if finite else lead(cumulative, logs, weights)
        mixed = 0.0
        for k in range(count):
            mixed += weights[k] / total * margins[r, k]
        out[r] = mixed
        if c < 0:
            continue
        before, least = np.min(cumulative), np.inf
        for k in range(count):
            least = min(least, half_square(margins[r, k] - y))
        for k in range(count):
            loss = half_square(margins[r, k] - y)
            excess[k] = c * (loss - least)
            cumulative[k] += c * loss
        # At η = ∞ the mix loss is the growth of the least loss, from which it differs by at most log K / η.
        soft = eta * (np.max(cumulative) - before) < LOSS_LIMIT
        allowed = np.min(cumulative) - before
        if soft:
            allowed = c * least + mix_loss(logs, weights, total, excess, eta)
        mixture_loss = c * half_square(mixed - y)
        ledger[LOSS] += mixture_loss
        ledger[IMPORTANCE] = max(ledger[IMPORTANCE], c)
        ledger[GAP] += max(0.0, mixture_loss - allowed)

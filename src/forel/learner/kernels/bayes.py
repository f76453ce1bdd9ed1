r"""Bayes' rule for log-loss of two classes: probabilities of experts, mixed by exponential weights, many rows at once.

The ledger is that of :mod:`forel.learner.kernels.mixing`. One expert more than there are margins is fixed share over
the others: Bayes' rule over sequences of experts, for streams that drift.
"""

import numpy as np

from forel.jit import njit
from forel.learner.kernels.elementary import exp_minus, log1p
from forel.learner.kernels.geometric import mix
from forel.learner.kernels.ledger_layout import HEAD, IMPORTANCE, LOSS
from forel.learner.kernels.mixing import MIN_LOG_WEIGHT, MIN_SUM, log_loss, rate

__all__ = ["bayes", "mix_row"]

compiled = njit()
inlined, outlined = njit(inner=True, forceinline=True), njit(inner=True)  # the latter for calls that are rare
ZERO, ONE, CHUNK = np.uint64(0), np.uint64(1), np.uint64(64)  # rows whose numbers fit into the first-level cache


@inlined
def exponentials(logs, size, weights):
    """Write weights of given logarithms; those below the range of normal doubles are 0."""
    for j in range(size):
        weights[j] = exp_minus(-logs[j]) if logs[j] > MIN_LOG_WEIGHT else 0.0


@inlined
def probabilities(margins, start, size, softplus, p, q):
    """Write log(1 + e^m), p and q = 1 − p of the margins from ``start`` on."""
    for j in range(size):
        m = np.float64(margins[start + j])
        e = exp_minus(abs(m))
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        softplus[j] = max(m, 0.0) + log1p(e)
        p[j], q[j] = larger if m > 0 else smaller, smaller if m > 0 else larger


@outlined
def log_probabilities(logs, start, margins, before, softplus, first, count):
    """Return log Σ w p and log Σ w q from log w, margins and log(1 + e^m), which start at different places.

    Called only where the sums themselves underflow.
    """
    largest_p, largest_q, p, q = -np.inf, -np.inf, 0.0, 0.0
    for k in range(count):
        largest_q = max(largest_q, logs[start + k] - softplus[first + k])
        largest_p = max(largest_p, logs[start + k] - softplus[first + k] + np.float64(margins[before + k]))
    for k in range(count):
        log_q = logs[start + k] - softplus[first + k]
        p += np.exp(log_q + np.float64(margins[before + k]) - largest_p)
        q += np.exp(log_q - largest_q)
    return largest_p + np.log(p), largest_q + np.log(q)


@outlined
def likelihoods(margins, before, softplus, first, count, y, power, weights, out):
    """Write weights times the likelihoods of a label, to a power, relative to the largest; return their sum."""
    least, total = np.inf, 0.0
    for k in range(count):
        least = min(least, softplus[first + k] - y * np.float64(margins[before + k]))
    for k in range(count):
        loss = softplus[first + k] - y * np.float64(margins[before + k])
        out[k] = weights[k] * np.exp(-min(power * (loss - least), -MIN_LOG_WEIGHT))
        total += out[k]
    return total


@inlined
def fixed_share_chunk(flat, before, labels, importance, start, rows, count, softplus, p, q, state, scratch, shared):
    """Let fixed share over the experts predict and learn the rows of a chunk.

    ``state`` has the weights of the experts and the number of rows, t: before the next one, each expert gives the share
    1/(t + 1) of its weight to the others. ``shared`` gets p, q and their logarithms, in a row each. A row of
    importance above 1 counts as one of importance 1.
    """
    for i in range(ZERO, rows):
        first, y, power = i * count, np.float64(labels[start + i]), min(np.float64(importance[start + i]), 1.0)
        mixed_p, mixed_q = 0.0, 0.0
        for k in range(count):
            mixed_p += state[k] * p[first + k]
            mixed_q += state[k] * q[first + k]
        log_p, log_q = np.log(mixed_p / (mixed_p + mixed_q)), np.log(mixed_q / (mixed_p + mixed_q))
        if min(mixed_p, mixed_q) <= MIN_SUM:
            for k in range(count):
                scratch[k] = np.log(state[k])
            log_p, log_q = log_probabilities(scratch, ZERO, flat, before + first, softplus, first, count)
        shared[0, i], shared[1, i], shared[2, i], shared[3, i] = (
            mixed_p,
            mixed_q,
            log_p,
            log_q,
        )
        if power <= 0:
            continue
        total, label = 0.0, p if y == 1 else q
        for k in range(count):
            scratch[k] = state[k] * label[first + k]
            total += scratch[k]
        if power < 1 or 0 < y < 1 or total <= MIN_SUM:
            total = likelihoods(flat, before + first, softplus, first, count, y, power, state, scratch)
        state[count] += 1.0
        received = 1.0 / (state[count] + 1.0) / (count - 1.0)
        kept = (1.0 - received * count) / total
        for k in range(count):
            state[k] = kept * scratch[k] + received


@compiled
def bayes(flat, columns, labels, importance, ledger, out):
    """Mix probabilities by exponential weights, from margins, ``columns`` in a row; ``out`` gets log p/(1 − p).

    If the ledger has one expert more than there are margins, that is fixed share over the others, whose state follows
    the losses. Weights depend on losses and not on predictions, so that exponentials of many rows are computed at once.
    """
    rows, count = np.uint64(labels.size), np.uint64(columns)
    has_fixed_share = ledger.size > HEAD + columns
    experts = count + (ONE if has_fixed_share else ZERO)
    size, cumulative, state = min(rows, CHUNK) * count, ledger[HEAD : HEAD + experts], ledger[HEAD + experts :]
    softplus, p, q, scratch, shared = (
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(count),
        np.empty((4, CHUNK)),
    )
    logs, weights = np.empty(min(rows, CHUNK) * experts), np.empty(min(rows, CHUNK) * experts)
    for start in range(ZERO, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        before, size = start * count, (stop - start) * count
        probabilities(flat, before, size, softplus, p, q)
        if has_fixed_share:
            chunk = stop - start
            fixed_share_chunk(
                flat, before, labels, importance, start, chunk, count, softplus, p, q, state, scratch, shared
            )
        for r in range(start, stop):
            i, c, y = r - start, np.float64(importance[r]), np.float64(labels[r])
            first, own = i * count, i * experts
            eta, least = rate(ledger, c), cumulative[ZERO]
            for k in range(experts):
                least = min(least, cumulative[k])
            for k in range(experts):
                logs[own + k] = -eta * (cumulative[k] - least)
            if c >= 0:
                ledger[IMPORTANCE] = max(ledger[IMPORTANCE], c)
                for k in range(count):
                    cumulative[k] += c * (softplus[first + k] - y * np.float64(flat[before + first + k]))
                if has_fixed_share:
                    cumulative[count] += c * log_loss(y, shared[2, i], shared[3, i])
        exponentials(logs, (stop - start) * experts, weights)
        for r in range(start, stop):
            i, c = r - start, np.float64(importance[r])
            first, own = i * count, i * experts
            total, mixed_p, mixed_q = 0.0, 0.0, 0.0
            for k in range(count):
                total += weights[own + k]
                mixed_p += weights[own + k] * p[first + k]
                mixed_q += weights[own + k] * q[first + k]
            if has_fixed_share:
                total += weights[own + count]
                mixed_p += weights[own + count] * shared[0, i]
                mixed_q += weights[own + count] * shared[1, i]
            log_p, log_q = np.log(mixed_p / total), np.log(mixed_q / total)
            if min(mixed_p, mixed_q) <= MIN_SUM:
                log_p, log_q = log_probabilities(logs, own, flat, before + first, softplus, first, count)
                if has_fixed_share:
                    log_p = np.logaddexp(log_p, logs[own + count] + shared[2, i])
                    log_q = np.logaddexp(log_q, logs[own + count] + shared[3, i])
                log_p, log_q = log_p - np.log(total), log_q - np.log(total)
            out[r] = log_p - log_q
            if c >= 0:
                ledger[LOSS] += c * log_loss(np.float64(labels[r]), log_p, log_q)


@compiled
def mix_row(margins, given, parameters, states, ledger, mixed, every, out):
    """Write the mixture's margin of a row, as ``geometric.mix`` and then ``bayes`` do, in less time than two calls.

    Parameters
    ----------
    margins : of the settings, in one row
    given : label and importance; a row of negative importance is predicted only
    parameters, states : of mixers, as ``geometric.mix`` takes them
    ledger : the array of :class:`forel.learner.mixture.Ledger`
    mixed, every : scratch, a row for the margins of mixers and one for those of settings and mixers
    """
    settings, mixers = margins.shape[1], parameters.shape[0]
    label, importance = given[:1], given[1:]
    mix(margins, label, importance, parameters, states, mixed)
    for k in range(settings):
        every[0, k] = margins[0, k]
    for k in range(mixers):
        every[0, settings + k] = mixed[0, k]
    bayes(every[0], settings + mixers, label, importance, ledger, out)

"""Compiled loops over rows, of coverage and of alarms: what a row adds depends on what the rows before it did."""

import numpy as np

from forel.jit import njit

__all__ = ["cover", "watch"]

compiled = njit()


@compiled
def cover(scores, miss_rate, rates, correction, state, widths):
    """Write the half width of each row, which is known before the score of that row; scores are at least 0.

    ``state`` has the rows, those covered, the largest score, J = 1 + Σ(1 − S_{t−1}/S_t), the correction, the mixability
    gap, and the quantile and the loss of each rate.
    """
    count = rates.size
    quantiles, losses = state[6 : 6 + count], state[6 + count : 6 + 2 * count]
    rows, covered, largest, jumps, corrected, gap = state[0], state[1], state[2], state[3], state[4], state[5]
    log_count, weights = np.log(count), np.empty(count)
    for r in range(scores.size):
        score = scores[r]
        least = losses.min()
        total = 0.0
        for k in range(count):
            if gap > 0:
                weights[k] = np.exp(-(losses[k] - least) * log_count / gap)
            else:
                weights[k] = 1.0 if losses[k] == least else 0.0
            total += weights[k]
        base = 0.0
        for k in range(count):
            weights[k] /= total
            base += weights[k] * quantiles[k]
        width = min(max(base, 0.0), largest) + corrected
        widths[r] = width
        miss = score > width
        if score > largest:
            jumps += 1.0 - largest / score
            largest = score
        if largest == 0.0:
            continue
        rows += 1.0
        covered += 0.0 if miss else 1.0
        smallest, mean, mixed = np.inf, 0.0, 0.0
        for k in range(count):
            error = score - quantiles[k]
            smallest = min(smallest, max((1.0 - miss_rate) * error, -miss_rate * error))
        for k in range(count):
            error = score - quantiles[k]
            excess = max((1.0 - miss_rate) * error, -miss_rate * error) - smallest
            mean += weights[k] * excess
            if gap > 0:
                mixed += weights[k] * np.exp(-excess * log_count / gap)
            losses[k] += excess
            quantiles[k] += rates[k] * largest * ((1.0 if error > 0 else 0.0) - miss_rate)
        if gap > 0:
            gap += max(mean + np.log(max(mixed, 1e-300)) * gap / log_count, 0.0)
        else:
            gap += max(mean, 0.0)
        corrected += correction * largest * ((1.0 if miss else 0.0) - miss_rate)
    state[0], state[1], state[2], state[3], state[4], state[5] = rows, covered, largest, jumps, corrected, gap


@compiled
def watch(values, losses, numbers, bets, reference_rates, reference_costs, slack, needed, limits, warm, state, found):
    """Add rows to detectors of increases in means of streams of numbers in [0, 1]; negative numbers are missing.

    If ``warm`` is positive, the first stream is ℓ/(ℓ + s) of ``losses`` ℓ, with s the mean of the first ``warm``
    losses. ``numbers`` are those of the rows, from 1 on, in order. ``limits`` has for each stream by which factor its
    mean may increase, and the least reference. ``state`` has the number of the last row, the rows since the last alarm,
    Σ ℓ of the first, and the number of alarms; of each stream n, Σ x, Σ (x − g)², the rows of the next reference, and
    the reference; of each stream and bet the wealth, the row after which the bets began, and the reference then. An
    alarm is written to ``found``, with the row that the change followed and the stream, and everything else starts
    anew.
    """
    streams, count = values.shape[1], bets.size
    means = state[4 : 4 + 5 * streams].reshape(streams, 5)
    wealth = state[4 + 5 * streams :].reshape(streams, count, 3)
    for r in range(values.shape[0]):
        if state[1] == 0.0:
            state[2] = 0.0
            means[:] = 0.0
            means[:, 4] = 1.0
            wealth[:] = 0.0
        state[0] = numbers[r]
        state[1] += 1.0
        if warm > 0 and state[1] <= warm:
            state[2] += losses[r]
        alarm, since = -1, 0.0
        for j in range(streams):
            x = values[r, j]
            if j == 0 and warm > 0:
                x = losses[r] / (losses[r] + state[2] / warm) if losses[r] > 0 else 0.0
                x = -1.0 if state[1] <= warm else x
            if x < 0.0:
                continue
            total, largest, first = 0.0, 0.0, 0.0
            for k in range(count):
                if wealth[j, k, 0] <= 1.0:
                    wealth[j, k, 0], wealth[j, k, 1], wealth[j, k, 2] = 1.0, state[0] - 1.0, means[j, 4]
                wealth[j, k, 0] *= 1.0 + bets[k] * (x / wealth[j, k, 2] - 1.0)
                total += wealth[j, k, 0]
                if wealth[j, k, 0] > largest:
                    largest, first = wealth[j, k, 0], wealth[j, k, 1]
            if total >= needed * count:
                alarm, since = j, first
            n = means[j, 0] + 1.0
            means[j, 2] += (x - (means[j, 1] / means[j, 0] if n > 1 else 0.5)) ** 2
            means[j, 1] += x
            means[j, 0] = n
            if n >= means[j, 3]:
                upper = 1.0
                for k in range(reference_rates.size):
                    spread = (slack + reference_costs[k] * means[j, 2]) / reference_rates[k]
                    upper = min(upper, (means[j, 1] + spread) / n)
                means[j, 3] = np.floor(1.05 * n) + 1.0
                means[j, 4] = min(max(limits[j, 0] * upper, limits[j, 1]), 1.0)
        if alarm >= 0:
            place = int(state[3]) % found.shape[0]
            found[place, 0], found[place, 1], found[place, 2] = state[0], since, alarm
            state[3] += 1.0
            state[1] = 0.0

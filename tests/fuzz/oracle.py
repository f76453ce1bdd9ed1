"""An oracle for printed guarantees, independent of forel: it uses raw rows, predictions and the text of the sentence.

A counterexample refutes a sentence: a fixed model of small enough norm with a smaller loss than the sentence allows, or
an average that differs from that of the rows. Losses are implemented again here, from their definitions.
"""

import re
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

NUMBER = r"-?[0-9](?:[0-9.,]*[0-9])?(?:[eE][+-]?[0-9]+)?"
FIRST = (
    rf"(?P<learner>this model|the mixture|the expert .+?) had an average loss(?P<unit> per unit of importance)? of "
    rf"(?P<own>{NUMBER}) on (?:this row|these (?P<rows>[0-9,]+) rows)"
)
MODELS = (
    r"of (?P<features>these (?:2\^\d+ hashed |[0-9,]+ hashed )?features)"
    r"(?: \((?:about )?(?P<several>[0-9,]+) slots? ha(?:s|ve) several names\))? "
    r"with weights (?:no larger than|up to (?P<factor>\d+) times as large as) (?:its own|those of the expert "
    r"(?P<expert>.+?)) \(in (?P<scaled>scaled )?norm"
    r"(?P<bias>, bias included)?\)"
)
ADVICE = (
    r"(?:(?P<worse>no such model would have been better: look for drift)|"
    r"at least (?P<percent>\d+) % of it would remain, so look for "
    rf"better features|up to (?P<left>{NUMBER}) of it may be left for more passes(?: or more rates|, more rates or "
    r"fewer collisions))"
)
NEEDED = (
    rf"(?:\. One below (?P<goal>{NUMBER}) would need weights at least (?P<times>{NUMBER}) times as large|"
    rf"\. No fixed linear model with weights of any size could have had one below (?P<impossible>{NUMBER}))?"
)
CERTIFICATE = re.compile(
    rf"{FIRST}\. No fixed linear model {MODELS} could have had one below (?P<floor>{NUMBER}): {ADVICE}{NEEDED}"
)
NOTHING = re.compile(rf"{FIRST}\. No average loss is ruled out for fixed linear models {MODELS}{NEEDED}")
VOID = re.compile(
    r"nothing is proved of the losses of fixed linear models of these .*?features.* on "
    r"(?:this row|these (?:[0-9,]+ )?rows), because .+"
)
MIXTURE = re.compile(
    rf"within (?P<bound>{NUMBER}) per (?P<unit>example|unit of importance) of the best of (?P<count>\d+) "
    rf"(settings|experts)(?P<clipped>, predictions clipped to the labels seen before,)? over (?P<rows>[0-9,]+) rows?, "
    rf"which is (?P<name>.+) \((?P<other>{NUMBER}) per (example|unit of importance)\)"
)


@dataclass(frozen=True)
class Loss:
    """A loss by its definition: on arrays, and for the solver; ``sign`` losses take labels −1 and 1."""

    value: object
    expression: object
    sign: bool = False
    clips: bool = True  # whether a mixture clips predictions to the labels seen before


def _logistic(m, y):
    return np.logaddexp(0, m) - y * m


def _huber(m, y):
    d = np.abs(m - y)
    return np.where(d <= 1, d * d / 2, d - 0.5)


def _poisson(m, y):
    cap = 80.0  # above it the exponential continues as its tangent
    return np.exp(np.minimum(m, cap)) * (1 + np.maximum(m - cap, 0)) - y * m


LOSSES = {
    "logistic": Loss(_logistic, lambda m, y: cp.logistic(m) - cp.multiply(y, m), clips=False),
    "hinge": Loss(
        lambda m, y: np.maximum(0, 1 - y * m), lambda m, y: cp.pos(1 - cp.multiply(y, m)), sign=True, clips=False
    ),
    "squared_hinge": Loss(
        lambda m, y: np.maximum(0, 1 - y * m) ** 2 / 2,
        lambda m, y: cp.square(cp.pos(1 - cp.multiply(y, m))) / 2,
        sign=True,
        clips=False,
    ),
    "squared": Loss(lambda m, y: (m - y) ** 2 / 2, lambda m, y: cp.square(m - y) / 2),
    "squared_error": Loss(lambda m, y: (m - y) ** 2, lambda m, y: cp.square(m - y)),
    "absolute": Loss(lambda m, y: np.abs(m - y), lambda m, y: cp.abs(m - y)),
    "huber": Loss(_huber, lambda m, y: cp.huber(m - y, 1.0) / 2),
    "quantile": Loss(
        lambda m, y: np.maximum((y - m) / 2, (m - y) / 2), lambda m, y: cp.maximum((y - m) / 2, (m - y) / 2)
    ),
    "epsilon_insensitive": Loss(
        lambda m, y: np.maximum(0, np.abs(m - y) - 0.1), lambda m, y: cp.pos(cp.abs(m - y) - 0.1)
    ),
    "poisson": Loss(_poisson, lambda m, y: cp.exp(m) - cp.multiply(y, m)),
}


def number(text):
    return float(text.replace(",", ""))


def half_unit(text):
    """Half a unit in the last printed digit of a number."""
    digits, _, exponent = text.upper().partition("E")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def average(loss, margins, labels, importance):
    weight = importance.sum()
    return float((importance * LOSSES[loss].value(margins, labels)).sum() / weight) if weight else 0.0


def least_average(loss, features, labels, importance, norm):
    """The smallest average loss found among models of at most this norm, by a convex solver and a few obvious ones.

    The result is the loss of an actual model: an inaccurate solver can only hide a violation, never create one.
    """
    x = cp.Variable(features.shape[1])
    rows = importance > 0
    scale = float(np.abs(features).max(initial=0.0)) or 1.0  # so that the solver's numbers are near 1
    objective = importance[rows] @ LOSSES[loss].expression(features[rows] / scale @ x, labels[rows])
    problem = cp.Problem(cp.Minimize(objective / (importance.sum() or 1.0)), [cp.norm(x) <= norm * scale])
    try:
        with warnings.catch_warnings(action="ignore"):  # inaccurate solutions are valid candidates too
            problem.solve(solver=cp.CLARABEL)
        found = x.value
    except cp.SolverError:
        found = None
    solved = [found / scale] if found is not None and np.isfinite(found).all() else []
    tried = [np.zeros(features.shape[1]), *solved, *candidates(loss, features, labels, importance)]
    tried = [one * min(1.0, norm * (1 - 1e-15) / max(np.linalg.norm(one), 1e-300)) for one in tried]
    with np.errstate(over="ignore"):
        return min(average(loss, features @ one, labels, importance) for one in tried)


def candidates(loss, features, labels, importance):
    """Models in the units of the features: a weight of one, or a step down the slope, in multiples of 1/scale.

    The solver's numbers have one unit, in which it does not see columns that are far smaller than the largest.
    """
    scales = np.abs(features).max(axis=0, initial=0.0)
    units = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 1e-300)
    slopes = (LOSSES[loss].value(1e-3, labels) - LOSSES[loss].value(-1e-3, labels)) / 2e-3
    slope = (features * units).T @ (importance * slopes)
    step = slope / (np.abs(slope).max(initial=0.0) or 1.0)
    return [size * units * way for way in (step, *np.eye(scales.size)) for size in (-10, -3, -1, -0.3, 0.3, 1, 3, 10)]


def certificate_violation(words, loss, features, labels, importance, own, learned, scales=None, known="these features"):
    """The reason why a certificate's sentences are false for these rows, None if they are true.

    ``own`` is the learner's average loss, and ``learned`` the model whose weights are compared; with a bias, the last
    column of the features is constant. ``scales`` are the largest absolute values of the columns, in all rows that the
    model learned from, if norms are scaled by them. ``known`` is how the features are to be named.
    """
    if VOID.fullmatch(words):
        return None
    found = CERTIFICATE.fullmatch(words) or NOTHING.fullmatch(words)
    if found is None:
        return "it is not one of the sentences"
    if bool(found["scaled"]) != (scales is not None):
        return "it is about another norm"
    if found["features"] != known:
        return f"the features are {known}"
    if found["several"] and number(found["several"]) > round(shared_slots(known, features.shape[1])):
        return "fewer slots have several names"
    if (found["unit"] is None) != bool((importance == 1).all()):
        return "it does not say what the average is per"
    if number(found["rows"] or "1") != len(labels) or found["rows"] == "1":
        return f"there were {len(labels)} rows"
    if abs(number(found["own"]) - own) > half_unit(found["own"]) + 1e-6 * (1 + abs(own)):
        return f"the learner had {own:.9g}"
    units = np.ones(features.shape[1]) if scales is None else scales
    # A weight times its scale is a weight of the feature divided by its scale.
    rows = np.divide(features, units, out=np.zeros_like(features), where=units > 0)
    sizes = np.asarray(learned, float) * units
    norm = float(np.linalg.norm(sizes))

    def least(size):
        return least_average(loss, rows, labels, importance, size)

    if "floor" in found.groupdict():
        why = floor_violation(found, own, least(int(found["factor"] or 1) * norm))
    else:
        why = "a loss that can be negative has a floor, whatever its sign" if loss == "poisson" else None
    return why or needed_violation(found, own, norm, least)


def shared_slots(known, used):
    """How many slots have several names on average, if ``used`` ones are filled by names at random."""
    slots = 2.0 ** int(known.partition("2^")[2].split()[0])
    names = slots * np.log(slots / (slots - min(used, slots - 1)))
    none = np.exp(-names / slots)
    return slots - slots * none - names * none


def floor_violation(found, own, least):
    """The reason why the sentence about the floor is false, None if true; ``least`` is the loss of some such model."""
    if least < number(found["floor"]):
        return f"such a model has {least:.9g}"
    if found["worse"] and least < own:
        return f"a better model has {least:.9g}"
    if found["percent"] and least < own * int(found["percent"]) / 100:
        return f"a model leaves only {least / own:.2%}"
    if found["left"] and own - least > number(found["left"]):
        return f"a model leaves {own - least:.9g}"
    return None


def needed_violation(found, own, norm, least):
    """The reason why the sentence about the weights that a smaller loss needs is false, None if it is true.

    ``least`` maps a norm to the loss of some model of at most that norm.
    """
    if found["goal"] is None and found["impossible"] is None:
        return None
    goal = number(found["goal"] or found["impossible"])
    size = number(found["times"]) * norm if found["goal"] else 1e9
    if found["goal"] and number(found["times"]) <= 1:
        return "it says nothing"
    if (smallest := least(size)) < goal:
        return f"a model of such weights has {smallest:.9g}"
    if not 0.89 * abs(own) - 1e-4 <= goal + (own < 0) * 2 * abs(own) <= 0.91 * abs(own) + 1e-4:
        return "the smaller loss is not a tenth below the learner's"
    return None


def label_range(labels):
    """The smallest and the largest label before each row; 0 before the first row."""
    return tuple(np.concatenate(([0.0], one.accumulate(labels)[:-1])) for one in (np.minimum, np.maximum))


def clipped_margins(loss, margins, labels):
    """The experts' predictions as a mixture clips them: to the range of labels seen before; counts to 1 at least."""
    if not LOSSES[loss].clips:
        return margins
    if loss == "poisson":
        seen = np.log(np.maximum(np.concatenate(([0.0], labels[:-1])), 1.0))
        return np.minimum(margins, np.maximum.accumulate(seen)[:, None])
    low, high = label_range(labels)
    return np.clip(margins, low[:, None], high[:, None])


def without(mean, covariance, count):
    """Mean and covariance of a mixer without inputs from ``count`` on, whose weight the others get in equal parts."""
    kept = [*range(count), len(mean) - 1]
    share = mean[count:-1].sum() / count
    return np.append(mean[:count] + share, mean[-1]), covariance[np.ix_(kept, kept)]


def geometric_margins(margins, full, labels, importance, variance, memory):
    """The margins of a geometric mixer of log-loss: a Gaussian filter with all covariances over clipped margins.

    With precision matrices in place of the covariances of the definition, and a solver of linear equations. ``full``
    are the margins of further inputs in the first rows, after which they are dropped.
    """
    count = margins.shape[1] + full.shape[1]
    mean, covariance = np.append(np.full(count, 1 / count), 0.0), variance * np.eye(count + 1)
    found = np.empty(len(margins))
    for t, (each, label, weight) in enumerate(zip(margins, labels, importance, strict=True)):
        if t == len(full):
            mean, covariance = without(mean, covariance, margins.shape[1])
        row = np.append(np.clip(np.append(each, full[t] if t < len(full) else []), -4, 4), 0.3)
        found[t] = np.clip(mean @ row, -30, 30)
        if weight == 0:
            continue
        p = 1 / (1 + np.exp(-found[t]))
        curvature = weight * max(p * (1 - p), 1e-6)
        covariance = np.linalg.inv(np.linalg.inv(covariance) + curvature * np.outer(row, row))
        covariance = (covariance + covariance.T) / 2
        mean = mean + covariance @ row * weight * (label - p)
        covariance = memory * covariance + (1 - memory) * variance * np.eye(len(mean))
    return found


def ridge_margins(margins, full, labels, importance, variance, memory):
    """The predictions of a mixer of squared loss: ridge regression on predictions relative to the range of labels.

    Predictions are relative to its middle, in units of its length. A row's precision is the inverse of the mean square
    of the residuals before, of which one is as large as the range.
    """
    low, high = label_range(labels)
    count = margins.shape[1] + full.shape[1]
    mean, covariance = np.append(np.full(count, 1 / count), 0.0), variance * np.eye(count + 1)
    squares, rows, found = 0.0, 0.0, low.copy()
    for t in range(len(margins)):
        span = high[t] - low[t]
        if t == len(full):
            mean, covariance = without(mean, covariance, margins.shape[1])
        if span == 0:
            continue
        each = np.append(margins[t], full[t] if t < len(full) else [])
        middle = (low[t] + high[t]) / 2
        row = np.append((np.clip(each, low[t], high[t]) - middle) / span, 0.3)
        found[t] = np.clip(middle + mean @ row * span, low[t], high[t])
        if importance[t] == 0:
            continue
        precision = min(importance[t] * (rows + 1) / (squares / span**2 + 1), 1e9)
        error = np.clip((labels[t] - found[t]) / span, -1, 1)
        covariance = np.linalg.inv(np.linalg.inv(covariance) + precision * np.outer(row, row))
        mean = mean + covariance @ row * precision * error
        covariance = memory * (covariance + covariance.T) / 2 + (1 - memory) * variance * np.eye(len(mean))
        squares, rows = memory * squares + importance[t] * (error * span) ** 2, memory * rows + importance[t]
    return found


def added_precision(root, mean, row, precision, label):
    """Learn that row @ weights is Gaussian around a label with a precision; ``root @ root.T`` is the covariance.

    By Potter's update of the root, whose condition number is only the square root of that of the covariance.
    """
    along = root.T @ row
    larger = np.sqrt(1 + precision * (along @ along))
    new = root - precision / (larger * (1 + larger)) * np.outer(root @ along, along)
    if np.count_nonzero(row) == 1:  # where precision grows by far, differences cancel in this row
        new[row != 0] = root[row != 0] / larger
    return new, mean + new @ (new.T @ row) * precision * (label - row @ mean)


def full_filter_margins(loss, features, labels, importance, variance, memory):
    """The margins of a Gaussian filter with all covariances, by a root of those of weights times scales of features.

    Rows are predicted with values clipped to the scales of the rows before, the constant among them.
    """
    logistic, count = loss == "logistic", features.shape[1]
    scale, mean, root, found = np.zeros(count), np.zeros(count), np.zeros((count, count)), np.zeros(len(features))
    for t, (x, label, weight) in enumerate(zip(features, labels, importance, strict=True)):
        larger = np.maximum(scale, np.abs(x))
        clipped = np.divide(np.clip(x, -scale, scale), scale, out=np.zeros(count), where=scale > 0)
        found[t] = np.clip(mean @ clipped, -30, 30) if logistic else mean @ clipped
        for i in np.flatnonzero(larger > scale):
            ratio, one = scale[i] / larger[i], np.eye(count)[i]
            if ratio == 0:
                root[i], root[i, i], mean[i] = 0.0, np.sqrt(variance), 0.0
                continue
            root[i], mean[i] = root[i] / ratio, mean[i] / ratio
            root, mean = added_precision(root, mean, one, (1 - ratio**2) / variance, 0.0)
        scale = larger
        row = np.divide(x, scale, out=np.zeros(count), where=scale > 0)
        m = np.clip(mean @ row, -30, 30) if logistic else mean @ row
        p = 1 / (1 + np.exp(-m)) if logistic else m
        curvature = weight * (max(p * (1 - p), 1e-6) if logistic else 1.0)
        if curvature:
            target = mean @ row + weight * (label - p) / curvature
            root, mean = added_precision(root, mean, row, curvature, target)
        if memory < 1:
            parts = np.sqrt(memory) * root.T, np.sqrt((1 - memory) * variance) * np.diag((scale > 0).astype(float))
            root = np.linalg.qr(np.vstack(parts), mode="r").T
    return found


def fixed_share_margins(margins, full, mixers, labels, importance):
    """The margins of Bayes' rule over sequences of experts that switch before row t with probability 1/t.

    Experts are lanes, full-covariance filters in the first rows, and mixers, a column each.
    """
    count, dropped = margins.shape[1], full.shape[1]
    logs, learned, found = np.zeros(count + dropped + mixers.shape[1]), 0, np.empty(len(margins))
    for t, (label, weight) in enumerate(zip(labels, importance, strict=True)):
        if t == len(full):
            logs = np.delete(logs, np.arange(count, count + dropped))
        each = np.concatenate((margins[t], full[t] if t < len(full) else [], mixers[t]))
        logs = logs - np.logaddexp.reduce(logs)
        right, wrong = -np.logaddexp(0, -each), -np.logaddexp(0, each)
        found[t] = np.logaddexp.reduce(logs + right) - np.logaddexp.reduce(logs + wrong)
        if weight > 0:
            learned += 1
            logs = logs + min(weight, 1.0) * (label * right + (1 - label) * wrong)
            logs = logs - np.logaddexp.reduce(logs)
            switch = 1 / (learned + 1)
            stay = np.log1p(-switch * logs.size / (logs.size - 1)) if learned > 1 or logs.size > 2 else -np.inf
            logs = np.logaddexp(stay + logs, np.log(switch / (logs.size - 1)))
    return found


def expert_margins(loss, margins, full, labels, importance, mixers, tracker=False):
    """The margins of all experts: those given, a column for each setting, of full filters, of mixers and fixed share.

    ``full`` has a column for each full-covariance filter, of the rows before they are dropped, or of all rows.
    """
    of_mixer = geometric_margins if loss == "logistic" else ridge_margins
    added = [of_mixer(margins, full, labels, importance, mixer.variance, mixer.memory) for mixer in mixers]
    if tracker:
        added.append(fixed_share_margins(margins, full, np.column_stack(added), labels, importance))
    return np.column_stack([margins, *([full] if len(full) == len(margins) else []), *added])


def expert_losses(loss, experts, labels, importance):
    """The average loss of each expert."""
    each = clipped_margins(loss, experts, labels)
    return np.array([average(loss, each[:, k], labels, importance) for k in range(each.shape[1])])


def mixture_violation(words, loss, mixed, experts, names, labels, importance):
    """The reason why a mixture's sentence is false, None if true; one column of ``experts`` per expert."""
    lost, own = expert_losses(loss, experts, labels, importance), average(loss, mixed, labels, importance)
    return guarantee_violation(words, own, lost, names, importance, LOSSES[loss].clips)


def class_losses(margins, labels, joint):
    """The loss of each row and expert, −log p of the right class, from margins by row, class and expert.

    Margins are those of softmax, if ``joint``, or of each class against the rest, whose probabilities are normalized.
    """
    logs = margins if joint else -np.logaddexp(0, -margins)
    logs = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
    return -np.take_along_axis(logs, labels[:, None, None].astype(int), axis=1)[:, 0]


def guarantee_violation(words, own, lost, names, importance, clips=False):
    """The reason why a mixture's sentence is false, None if true, from the average losses of mixture and experts."""
    found, best = MIXTURE.fullmatch(words), float(lost.min())
    if found is None:
        return None if words.startswith("nothing is proved against") else "it is not one of the sentences"
    if number(found["rows"]) != len(importance) or int(found["count"]) != len(lost):
        return f"there were {len(importance)} rows and {len(lost)} settings"
    if bool(found["clipped"]) != clips:
        return "it does not say whether predictions were clipped"
    if own > best + number(found["bound"]):
        return f"the mixture had {own:.9g}, the best setting {best:.9g}"
    # It is rounded up to as many decimals as the bound, if that has at least five.
    if abs(number(found["other"]) - best) > 2 * half_unit(found["other"]) + 1e-6 * (1 + abs(best)):
        return f"the best setting had {best:.9g}"
    named = [
        loss for name, loss in zip(names, lost, strict=True) if name == found["name"]
    ]  # printed names may coincide
    if not named or abs(min(named) - best) > 1e-6 * (1 + abs(best)):
        return f"another setting is the best: {names[int(lost.argmin())]}"
    if (found["unit"] == "example") != bool((importance == 1).all()):
        return "averages are per unit of importance"
    return None


def bayes_violation(words, count, importance):
    """The reason why a Bayes mixture promises less than log K times the largest importance, None if it does not.

    Rows of importances below 1 are mixed with the rate 1. Sums of large losses are rounded.
    """
    found = MIXTURE.fullmatch(words)
    if found is None:
        return None
    limit = np.log(count) * max(1.0, importance.max()) / importance.sum()
    rounding = 1e-12 * number(found["other"])
    if number(found["bound"]) <= 1.1 * (limit + rounding):
        return None
    return f"the bound is above that of {count} experts, {limit:.4g}"


def differs(shown, known):
    """Whether a loss is not the known one; losses of a row above 1e290 are cut off, and void the guarantee."""
    return abs(shown - known) > 1e-6 * (1 + abs(known)) and min(shown, known) < 1e280


def table_violation(table, loss, experts, names, labels, importance, weighs=True):
    """The reason why a table of experts is false, None if true; its rows are name, average loss and weight.

    Weights are those of Bayes' rule for log-loss, with a rate that is divided by the largest importance above 1, unless
    the mixture ``weighs`` experts otherwise.
    """
    lost = expert_losses(loss, experts, labels, importance)
    if [name for name, _, _ in table] != list(names):
        return f"the experts are {names}"
    for (name, shown, _), known in zip(table, lost, strict=True):
        if differs(shown, known):
            return f"{name} had {known:.9g}, not {shown:.9g}"
    # Where the last digits of sums of losses are not far below one nat, weights are not known.
    if loss == "logistic" and weighs and lost.max() * importance.sum() < 1e9:
        behind = (lost - lost.min()) * importance.sum() / max(1.0, importance.max())
        weights = np.exp(-behind) / np.exp(-behind).sum()
        if np.abs(weights - [weight for _, _, weight in table]).max() > 1e-6:
            return f"the weights are {weights}"
    return None


def bayes_loss(experts, labels, importance):
    """The total log-loss of Bayes' rule over experts, row by row, with a rate that importances above 1 divide."""
    lost, total, largest = np.zeros(experts.shape[1]), 0.0, 1.0
    for margins, label, weight in zip(experts, labels, importance, strict=True):
        largest = max(largest, weight)
        logs = -lost / largest
        logs = logs - np.logaddexp.reduce(logs)
        right, wrong = -np.logaddexp(0, -margins), -np.logaddexp(0, margins)
        chance, other = np.logaddexp.reduce(logs + right), np.logaddexp.reduce(logs + wrong)
        total -= weight * ((label * chance if label > 0 else 0.0) + ((1 - label) * other if label < 1 else 0.0))
        lost += weight * (-label * right - (1 - label) * wrong)
    return total


def kinds_violation(table, exact, loss, own, experts, kinds, labels, importance):
    """The reason why a table of kinds is false, None if true.

    Its rows are kind, number, best loss, best loss of other kinds, and the loss without the kind above ``own``, the
    average loss of the mixture.
    """
    lost, total = expert_losses(loss, experts, labels, importance), importance.sum()
    if [row[0] for row in table] != list(dict.fromkeys(kinds)):
        return f"the kinds are {kinds}"
    for kind, count, least, others, without in table:
        of_kind = np.array([one == kind for one in kinds])
        if count != of_kind.sum() or differs(least, lost[of_kind].min()):
            return f"{kind}: {of_kind.sum()} experts, at best {lost[of_kind].min():.9g}"
        if of_kind.all():
            continue
        if differs(others, lost[~of_kind].min()):
            return f"{kind}: the best of the others has {lost[~of_kind].min():.9g}"
        if without is None or own > 1e280:
            continue
        known = bayes_loss(experts[:, ~of_kind], labels, importance) / total - own
        if without < known - 1e-6 * (1 + abs(own)) or (exact and without > known + 1e-6 * (1 + abs(own))):
            return f"{kind}: without it the loss would be {known:.9g} more, not {without:.9g}"
    return None

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
BIAS = rf"(?P<bias>, bias included,|, with a bias within ±(?P<free>{NUMBER}),)?"
NORM = rf"(?P<scaled>scaled )?norm at most (?P<norm>{NUMBER}){BIAS}"
NEEDED = (
    rf"(?:\. An average loss below (?P<goal>{NUMBER}) would need a (?P<kind>scaled )?norm of at least "
    rf"(?P<needed>{NUMBER})(?P<beside>, with such a bias)?; the learned model has (?P<learned>{NUMBER})|"
    rf"\. No fixed model of any norm could have had an average loss below (?P<impossible>{NUMBER}))?"
)
CERTIFICATE = re.compile(
    rf"no fixed model of {NORM} could have had an average loss below (?P<floor>{NUMBER}) on these "
    rf"(?P<rows>[0-9,]+) rows; this one had (?P<own>{NUMBER}){NEEDED}"
)
NOTHING = re.compile(
    rf"no average loss is ruled out for fixed models of {NORM} on these (?P<rows>[0-9,]+) rows; this one had "
    rf"(?P<own>{NUMBER}){NEEDED}"
)
VOID = re.compile(
    rf"nothing is proved of the losses of fixed models of {NORM} on these (?P<rows>[0-9,]+) rows, because .+"
)
MIXTURE = re.compile(
    rf"within (?P<bound>{NUMBER}) per (?P<unit>example|unit of importance) of the best of (?P<count>\d+) settings"
    rf"(?P<clipped>, predictions clipped to the labels seen before,)? over (?P<rows>[0-9,]+) rows, "
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
    digits, _, exponent = text.partition("E")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def average(loss, margins, labels, importance):
    weight = importance.sum()
    return float((importance * LOSSES[loss].value(margins, labels)).sum() / weight) if weight else 0.0


def least_average(loss, features, labels, importance, norm, free_bias=None):
    """The smallest average loss found among models of at most this norm, by a convex solver and a few obvious ones.

    The result is the loss of an actual model: an inaccurate solver can only hide a violation, never create one. With
    ``free_bias`` the norm is that of all weights but the last, which is at most this large in absolute value.
    """
    x = cp.Variable(features.shape[1])
    rows = importance > 0
    tried = [np.zeros(features.shape[1])]
    scale = float(np.abs(features).max(initial=0.0)) or 1.0  # so that the solver's numbers are near 1
    objective = importance[rows] @ LOSSES[loss].expression(features[rows] / scale @ x, labels[rows])
    ball = [cp.norm(x) <= norm * scale]
    if free_bias is not None:
        ball = [cp.norm(x[:-1]) <= norm * scale, cp.abs(x[-1]) <= free_bias * scale]
    problem = cp.Problem(cp.Minimize(objective / importance.sum()), ball)
    try:
        with warnings.catch_warnings(action="ignore"):  # inaccurate solutions are valid candidates too
            problem.solve(solver=cp.CLARABEL)
        found = x.value
    except cp.SolverError:
        found = None
    if found is not None and np.isfinite(found).all():
        found = found / scale
        if free_bias is None:
            tried.append(found * min(1.0, norm * (1 - 1e-15) / max(np.linalg.norm(found), 1e-300)))
        else:
            shrunken = found[:-1] * min(1.0, norm * (1 - 1e-15) / max(np.linalg.norm(found[:-1]), 1e-300))
            tried.append(np.append(shrunken, np.clip(found[-1], -free_bias, free_bias)))
    with np.errstate(over="ignore"):
        return min(average(loss, features @ one, labels, importance) for one in tried)


def certificate_violation(words, loss, features, labels, importance, own, scales=None, learned=None):
    """The reason why a certificate's sentences are false for these rows, None if they are true.

    ``own`` is the learner's average loss; with a bias, the last column of the features is constant. ``scales`` are the
    largest absolute values of the columns, in all rows that the model learned from, if norms are to be scaled by them,
    and ``learned`` is the learned model.
    """
    if VOID.fullmatch(words):
        return None
    found = CERTIFICATE.fullmatch(words) or NOTHING.fullmatch(words)
    if found is None:
        return "it is not one of the sentences"
    free = None if found["free"] is None else number(found["free"])
    if found["goal"] and (found["beside"] is None) != (free is None):
        return "it does not say how the bias counts"
    if bool(found["scaled"]) != (scales is not None) or (found["goal"] and found["kind"] != found["scaled"]):
        return "it is about another norm"
    units = np.ones(features.shape[1]) if scales is None else scales
    # A weight times its scale is a weight of the feature divided by its scale.
    rows = np.divide(features, units, out=np.zeros_like(features), where=units > 0)
    if "floor" not in found.groupdict():
        if loss == "poisson":
            return "a loss that can be negative has a floor, whatever its sign"
    else:
        least = least_average(loss, rows, labels, importance, number(found["norm"]), free)
        if least < number(found["floor"]):
            return f"a model of that norm has {least:.9g}"
    if number(found["rows"]) != len(labels):
        return f"there were {len(labels)} rows"
    if abs(number(found["own"]) - own) > half_unit(found["own"]) + 1e-6 * (1 + abs(own)):
        return f"the learner had {own:.9g}"
    if learned is not None:
        norm = float(np.linalg.norm(learned * units if free is None else (learned * units)[:-1]))
        if not norm * (1 - 1e-5) <= number(found["norm"]) <= norm * 1.0011 + 1e-300:
            return f"the learned model has the norm {norm:.9g}"
    return needed_violation(found, loss, rows, labels, importance, own, free)


def needed_violation(found, loss, rows, labels, importance, own, free=None):
    """The reason why the sentence about the norm that a smaller loss needs, if any has it, is false; None if true."""
    if found["goal"] is None and found["impossible"] is None:
        return None
    goal = number(found["goal"] or found["impossible"])
    least = least_average(loss, rows, labels, importance, number(found["needed"] or "1e9"), free)
    if least < goal:
        return f"a model of the needed norm has {least:.9g}"
    if found["goal"] and found["learned"] != found["norm"]:
        return "the learned model has two norms"
    if not 0.89 * abs(own) - 1e-4 <= goal + (own < 0) * 2 * abs(own) <= 0.91 * abs(own) + 1e-4:
        return "the smaller loss is not a tenth below the learner's"
    return None


def clipped_margins(loss, margins, labels):
    """The settings' predictions as a mixture clips them: to the range of the labels seen before, with 0."""
    if not LOSSES[loss].clips:
        return margins
    seen = np.concatenate(([0.0], labels[:-1]))
    if loss == "poisson":
        seen = np.log(np.maximum(seen, 1.0))
        return np.minimum(margins, np.maximum.accumulate(seen)[:, None])
    return np.clip(margins, np.minimum.accumulate(seen)[:, None], np.maximum.accumulate(seen)[:, None])


def mixture_violation(words, loss, mixed, settings, names, labels, importance):
    """The reason why a mixture's sentence is false, None if true; one column of ``settings`` per setting."""
    found = MIXTURE.fullmatch(words)
    if found is None:
        return None if words.startswith("nothing is proved against") else "it is not one of the sentences"
    each = clipped_margins(loss, settings, labels)
    lost = np.array([average(loss, each[:, k], labels, importance) for k in range(each.shape[1])])
    own, best = average(loss, mixed, labels, importance), float(lost.min())
    if number(found["rows"]) != len(labels) or int(found["count"]) != len(lost):
        return f"there were {len(labels)} rows and {len(lost)} settings"
    if bool(found["clipped"]) != LOSSES[loss].clips:
        return "it does not say whether predictions were clipped"
    if own > best + number(found["bound"]):
        return f"the mixture had {own:.9g}, the best setting {best:.9g}"
    if abs(number(found["other"]) - best) > 1e-4 * abs(best) + 1e-6:
        return f"the best setting had {best:.9g}"
    named = [
        loss for name, loss in zip(names, lost, strict=True) if name == found["name"]
    ]  # printed names may coincide
    if not named or abs(min(named) - best) > 1e-6 * (1 + abs(best)):
        return f"another setting is the best: {names[int(lost.argmin())]}"
    if (found["unit"] == "example") != bool(importance.sum() == len(labels)):
        return "averages are per unit of importance"
    return None

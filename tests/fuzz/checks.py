"""Statements of learners about rows, checked by the oracle: guarantees, tables of experts, numbers of certificates."""

import numpy as np

from tests.fuzz import oracle


def with_constant(X, settings):
    return np.column_stack([X, np.ones(len(X))]) if settings.bias else X


def scales_of(X, settings):
    """The largest absolute value of each column, where norms are scaled by them."""
    return np.abs(with_constant(X, settings)).max(axis=0, initial=0.0) if settings.rate == "scale_free" else None


def coded(loss, y):
    return 2 * y - 1 if oracle.LOSSES[loss].sign else y


def full_margins(settings, loss, X, labels, importance):
    """The margins of full-covariance filters, a column each, of the rows before there are 128 features."""
    kept, seen = len(labels), set()
    for t in range(len(labels)) if settings.full_filters else ():
        seen.update(np.flatnonzero(X[t]) if isinstance(X, np.ndarray) else X[[t]].indices)
        if len(seen) + 1 > 128:
            kept = t
            break
    columns = np.array(sorted(seen), int)
    dense = X[:kept][:, columns]
    features = with_constant(dense if isinstance(dense, np.ndarray) else dense.toarray(), settings).astype(float)
    rows = loss, features, labels[:kept], importance[:kept]
    found = np.zeros((kept, len(settings.full_filters)))
    for column, one in zip(found.T, settings.full_filters, strict=True):
        column[:] = oracle.full_filter_margins(*rows, *one)
    return found


def expert_margins(model, loss, settings, full, labels, importance):
    """The margins of all experts of a mixture, from those of its settings and full-covariance filters."""
    tracker = model.settings.fixed_share_expert and model.share is None
    return oracle.expert_margins(loss, settings, full, labels, importance, model.settings.mixers, tracker)


def guarantee_violations(words, model, loss, mixed, settings, full, labels, importance):
    """The reasons why a mixture's sentence is false; one column of ``settings`` per setting."""
    names, bayes = list(model.names), loss == "logistic" and model.share is None
    experts = expert_margins(model, loss, settings, full, labels, importance)
    found = [
        oracle.mixture_violation(words, loss, mixed, experts, names, labels, importance),
        oracle.bayes_violation(words, model.settings.n_experts, importance) if bayes else None,
    ]
    return [f"{words}: {one}" for one in found if one]


def mixture_violations(model, loss, mixed, settings, full, labels, importance):
    """The reasons why the sentence and the table of a mixture are false; one column of ``settings`` per setting."""
    found = guarantee_violations(str(model.guarantee()), model, loss, mixed, settings, full, labels, importance)
    experts = expert_margins(model, loss, settings, full, labels, importance)
    explanation = model.explain()
    table = [(one.name, one.loss, one.weight) for one in explanation.experts]
    names, weighs = list(model.names), model.share is None
    why = oracle.table_violation(table, loss, experts, names, labels, importance, weighs)
    found += [f"table of experts: {why}"] if why else []
    kinds, own = [one.kind for one in explanation.experts], oracle.average(loss, mixed, labels, importance)
    table = [(one.kind, one.experts, one.loss, one.others, one.without) for one in explanation.kinds]
    why = oracle.kinds_violation(table, explanation.exact, loss, own, experts, kinds, labels, importance)
    return found + ([f"table of kinds: {why}"] if why else [])


def proof_violations(rng, proof, loss, features, labels, weight, own, scales, double=False):
    """The reasons why the numbers of a certificate are false: floors and norms in a random ball, regret and its bound.

    The bound is that of exact arithmetic, and is checked for learners in ``double`` precision.
    """
    violations = []
    ball = str(rng.choice(["l2"] if scales is None else ["l2", "scaled"]))
    rows = features
    if ball == "scaled":
        rows = np.divide(features, scales, out=np.zeros_like(features), where=scales > 0)
    radius = float(rng.exponential())

    def least(norm):
        return oracle.least_average(loss, rows, labels, weight, norm)

    floor, found = proof.loss_floor(**{ball: radius}), least(radius)
    if floor > found:
        violations.append(f"loss_floor({ball}={radius}) is {floor}, and a model has {found}")
    goal = own - 0.2 * abs(own)
    needed = min(proof.needed_norm(goal, ball), 1e9)
    if needed and (found := least(needed)) < goal - 1e-9 * abs(goal):
        violations.append(f"needed_norm({goal}, {ball}) is {needed}, and such a model has {found}")
    comparator = rng.normal(size=features.shape[1]) * radius
    if rng.random() < 0.5:  # in the units of the features
        largest = np.abs(features).max(axis=0)
        comparator = np.divide(comparator, largest, out=np.zeros_like(comparator), where=largest > 0)
    with np.errstate(over="ignore"):
        regret = (own - oracle.average(loss, features @ comparator, labels, weight)) * weight.sum()
    allowance = proof.slack + proof.rounding * np.linalg.norm(comparator)
    if regret > proof.regret(comparator) + allowance + 1e-12 * abs(own) * weight.sum():
        violations.append(f"regret against {comparator} is {regret}, above {proof.regret(comparator)}")
    if double and not proof.void and (proof.radius is None or np.abs(comparator).max() <= proof.radius):
        regret, bound = proof.regret(comparator), proof.bound(comparator)
        if regret > bound + allowance + 1e-9 * (abs(regret) + abs(bound)):
            violations.append(f"regret against {comparator} is {regret}, above the bound of {proof.result}, {bound}")
    return violations

"""Train on random and adversarial streams, and check every printed guarantee with the oracle.

``python -m tests.fuzz.sentences --streams 10000`` runs many; the tests run a few. Kernels run uncompiled, from the same
source, because each combination of settings would need a compilation; ``--compiled`` compiles them.
"""

import argparse
import itertools
import time
from collections import Counter
from contextlib import contextmanager

import numpy as np

import forel
from forel.data.features.hashing import slot
from forel.learner.certificate_sums import difference, merge
from forel.learner.kernels import kernel
from forel.learner.kernels.kernel import uncompiled_kernel
from forel.learner.linear import Linear, Settings
from forel.learner.mixture import Mixture
from tests.fuzz import oracle

BITS, FEATURES = 5, 6
KINDS = ("plain", "separable", "flips", "outlier", "leader", "scales", "adversary", "constant", "repeated")
ALGORITHMS, RATES = ("proximal", "centered", "mirror", "implicit"), ("adagrad", "scale_free", "constant", "root")


def names():
    """Names of features that hash to different slots."""
    chosen, taken = [], set()
    for name in (f"x{k}" for k in itertools.count()):
        if slot(name, bits=BITS) not in taken:
            chosen.append(name)
            taken.add(slot(name, bits=BITS))
        if len(chosen) == FEATURES:
            return chosen
    raise AssertionError


NAMES = names()


def stream(rng, loss, kind):
    """Rows, labels and importances, rounded to float32."""
    rows = int(rng.integers(20, 160))
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.6)
    if kind == "constant":
        X[:] = 1.0
    if kind == "scales":
        X *= 10.0 ** rng.integers(-4, 5, FEATURES)
    if kind == "repeated":
        X[:] = X[0]
    truth = rng.normal(size=FEATURES) * (0.0 if kind == "leader" else 1.0)
    signal = X @ truth
    signal = signal / (np.abs(signal).max() or 1.0) * 3
    if loss in ("logistic", "hinge", "squared_hinge"):
        y = (signal > 0) if kind == "separable" else rng.random(rows) < 1 / (1 + np.exp(-signal))
        y = y.astype(float)
    elif loss == "poisson":
        y = rng.poisson(np.exp(signal)).astype(float)
    else:
        y = (signal + rng.normal(size=rows)) * 10.0 ** rng.integers(-2, 4)
    binary = loss in ("logistic", "hinge", "squared_hinge")
    if kind == "flips":
        y[rows // 2 :] = 1 - y[rows // 2 :] if binary else y.max() - y[rows // 2 :]
    if kind == "outlier":
        k = int(rng.integers(rows // 2, rows))
        y[k], X[k] = (1 - y[k]) if binary else np.abs(y).max() * 50 + 40, X[k] * 30
    if kind == "leader":  # one setting leads by far, then is confidently wrong on one row
        X[:] = 0
        X[:, 0], y[:] = 1.0, 1.0 if binary else 3.0
        X[-1, 0], y[-1] = 200.0, 0.0 if binary else 90.0
    if kind == "adversary":  # labels against what a plain gradient descent would predict
        w = np.zeros(FEATURES)
        for t in range(rows):
            y[t] = float(X[t] @ w <= 0) if binary else (4.0 if loss == "poisson" else 5.0) * float(X[t] @ w <= 0)
            w += 0.3 * (2 * float(y[t] > 0) - 1) * X[t]
    weight = (np.ones(rows), np.full(rows, 10.0), rng.exponential(size=rows) * 3)[int(rng.choice(3, p=(0.5, 0.2, 0.3)))]
    return (
        X.astype(np.float32).astype(float),
        y.astype(np.float32).astype(float),
        weight.astype(np.float32).astype(float),
    )


def settings_for(rng, loss):
    """Random settings of one model or of three."""
    algorithm, rate = ALGORITHMS[rng.integers(4)], RATES[rng.integers(4)]
    several = bool(rng.random() < 0.6)
    alphas = 10.0 ** rng.uniform(-2, 1, 3)
    return Settings(
        loss=loss,
        algorithm=algorithm,
        rate=rate,
        alpha=tuple(alphas) if several else float(alphas[0]),
        beta=float(rng.choice([0.01, 1.0])),
        l1=float(rng.choice([0.0, 0.0, 0.3])),
        l2=float(rng.choice([0.0, 0.0, 0.5])),
        penalty_weight=str(rng.choice(["once", "once", "every"])),
        radius=float(rng.choice([0.5, 5.0])) if rng.random() < 0.15 else None,
        bias=bool(rng.random() < 0.7),
    )


@contextmanager
def uncompiled(active=True):
    """Run kernels as plain Python, with overflow warnings off, as in compiled code."""
    before = kernel.kernel
    kernel.kernel = uncompiled_kernel if active else before
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        kernel.kernel = before


def with_constant(X, settings):
    return np.column_stack([X, np.ones(len(X))]) if settings.bias else X


def scales_of(X, settings):
    """The largest absolute value of each column, where norms are scaled by them."""
    return np.abs(with_constant(X, settings)).max(axis=0) if settings.rate == "scale_free" else None


def coded(loss, y):
    return 2 * y - 1 if oracle.LOSSES[loss].sign else y


def trained_violations(rng, loss, kind):
    """Train with ``forel.train``, in one or two runs of one or two passes, with and without held-out rows."""
    settings = settings_for(rng, loss)
    X, y, weight = stream(rng, loss, kind)
    holdout, passes = int(rng.choice([0, 0, 4])), int(rng.choice([1, 1, 2]))
    cut = len(y) // 2 if rng.random() < 0.4 else 0
    made, stored, violations = [], None, []
    for part in (slice(0, cut), slice(cut, None)):
        rows = [
            {"label": b, "weight": c, **{n: v for n, v in zip(NAMES, a, strict=True) if v}}
            for a, b, c in zip(X[part].tolist(), y[part].tolist(), weight[part].tolist(), strict=True)
        ]
        if not rows:
            continue
        margins = []

        def keep(moment, into=margins):
            if moment.pass_number == 1:
                into.extend(moment.margins.tolist())

        trained = forel.train(
            rows, None if stored else settings, label="label", importance="weight", bits=BITS, certified=True,
            holdout=holdout, passes=passes, start=stored, progress=keep,
        )  # fmt: skip
        stored = trained.stored
        learned = np.arange(1, len(rows) + 1) % holdout != 0 if holdout else np.ones(len(rows), bool)
        a, b, c, m = X[part][learned], coded(loss, y[part][learned]), weight[part][learned], np.array(margins)[learned]
        made.append((a, b, c, m))
        own = oracle.average(loss, m, b, c)
        if abs(trained.report.loss - own) > 1e-6 * (1 + abs(own)):
            violations.append(f"the report has {trained.report.loss}, the rows {own}")
        scales = scales_of(np.concatenate([part[0] for part in made]), settings)
        why = oracle.certificate_violation(trained.certificate, loss, with_constant(a, settings), b, c, own, scales)
        violations += [f"{trained.certificate}: {why}"] if why else []
    if settings.lanes > 1 and passes == 1:
        a, b, c, m = (np.concatenate(columns) for columns in zip(*made, strict=True))
        words = str(stored.model.guarantee())
        each = Linear(FEATURES, settings).progress(a, b, c).astype(float)
        why = oracle.mixture_violation(words, loss, m, each, list(settings.names), b, c)
        violations += [f"{words}: {why}"] if why else []
    return settings, violations


def learner_violations(rng, loss, kind):
    """Train the learners directly, in float32 or float64, batch by batch."""
    settings, dtype = settings_for(rng, loss), (np.float32, np.float64)[rng.integers(2)]
    X, y, weight = stream(rng, loss, kind)
    labels, violations = coded(loss, y), []
    model = (Mixture if settings.lanes > 1 else Linear)(FEATURES, settings, dtype=dtype, certified=True)
    parts = [model.progress(X[k : k + 50], labels[k : k + 50], weight[k : k + 50]) for k in range(0, len(y), 50)]
    margins = np.concatenate(parts)[:, 0].astype(float)
    features, own = with_constant(X, settings), oracle.average(loss, margins, labels, weight)
    words = model.summary()
    learned = np.append(model.weights[:, 0], model.bias[0])[: features.shape[1]].astype(float)
    scales = scales_of(X, settings)
    why = oracle.certificate_violation(words, loss, features, labels, weight, own, scales, learned)
    violations += [f"{words}: {why}"] if why else []
    if settings.bias:
        words = model.loss_floor().with_free_bias(float(rng.exponential()) if rng.random() < 0.5 else None).summary()
        why = oracle.certificate_violation(words, loss, features, labels, weight, own, scales, learned)
        violations += [f"{words}: {why}"] if why else []
    if settings.lanes > 1:
        words = str(model.guarantee())
        each = Linear(FEATURES, settings, dtype=dtype).progress(X, labels, weight).astype(float)
        why = oracle.mixture_violation(words, loss, margins, each, list(settings.names), labels, weight)
        violations += [f"{words}: {why}"] if why else []
    proof, radius = model.certificate(), float(rng.exponential())
    if proof.floor_void:
        return settings, violations
    floor, least = proof.loss_floor(l2=radius), oracle.least_average(loss, features, labels, weight, radius)
    if floor > least:
        violations.append(f"loss_floor(l2={radius}) is {floor}, and a model has {least}")
    needed = min(proof.needed_norm(0.8 * own), 1e9)
    least = oracle.least_average(loss, features, labels, weight, needed)
    if needed and least < 0.8 * own * (1 - 1e-9):
        violations.append(f"needed_norm({0.8 * own}) is {needed}, and such a model has {least}")
    comparator = rng.normal(size=features.shape[1]) * radius
    with np.errstate(over="ignore"):
        regret = (own - oracle.average(loss, features @ comparator, labels, weight)) * weight.sum()
    allowance = proof.slack + proof.rounding * np.linalg.norm(comparator)
    if regret > proof.regret(comparator) + allowance + 1e-12 * abs(own) * weight.sum():
        violations.append(f"regret against {comparator} is {regret}, above {proof.regret(comparator)}")
    return settings, violations


def merged_violations(rng, loss, kind):
    """Train learners on parts of the rows, each from nothing or from the rows before, and merge their certificates."""
    settings, dtype = settings_for(rng, loss), (np.float32, np.float64)[rng.integers(2)]
    X, y, weight = stream(rng, loss, kind)
    labels, violations, sums, margins = coded(loss, y), [], [], []
    model = (Mixture if settings.lanes > 1 else Linear)(FEATURES, settings, dtype=dtype, certified=True)
    for part in np.array_split(np.arange(len(y)), int(rng.integers(2, 5))):
        if rng.random() < 0.5:
            model.reset()
        before = model.snapshot()
        margins.append(model.progress(X[part], labels[part], weight[part])[:, 0].astype(float))
        sums.append(difference(model.snapshot(), before))
    features, own = with_constant(X, settings), oracle.average(loss, np.concatenate(margins), labels, weight)
    floor = model.loss_floor(rows=merge(*sums))
    for one in (floor, floor.with_free_bias()) if settings.bias else (floor,):
        words = one.summary()
        why = oracle.certificate_violation(words, loss, features, labels, weight, own, scales_of(X, settings))
        violations += [f"{words}: {why}"] if why else []
    return settings, violations


def run(streams, seed=0, compiled=False, say=None, seconds=None):
    """Run ``streams`` streams, or until the time limit; return the count of each loss and kind, and all violations."""
    played, violations = Counter(), []
    until = None if seconds is None else time.monotonic() + seconds
    with uncompiled(not compiled):
        for k in range(streams):
            if until is not None and time.monotonic() > until:
                break
            rng = np.random.default_rng((seed, k))
            loss, kind = list(oracle.LOSSES)[k % len(oracle.LOSSES)], KINDS[int(rng.integers(len(KINDS)))]
            play = (trained_violations, learner_violations, merged_violations)[rng.choice(3, p=(0.5, 0.35, 0.15))]
            settings, found = play(rng, loss, kind)
            played[loss, kind] += 1
            violations += [f"stream {k} of seed {seed} ({kind}, {settings}): {why}" for why in found]
            if say is not None and (found or (k + 1) % 100 == 0):
                say(k + 1, len(violations), found)
    return played, violations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, help="time limit in seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true")
    options, begun = parser.parse_args(), time.perf_counter()

    def say(done, count, found):
        print(
            *found, f"{done:,} streams, {count} violations, {time.perf_counter() - begun:.0f} s", sep="\n", flush=True
        )

    played, violations = run(options.streams, options.seed, options.compiled, say, options.seconds)
    print(*violations, sep="\n")
    print(f"{sum(played.values()):,} streams of {len(played)} kinds, {len(violations)} violations")
    raise SystemExit(bool(violations))


if __name__ == "__main__":
    main()

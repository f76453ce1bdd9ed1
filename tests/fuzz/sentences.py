"""Train on random and adversarial streams, and check every printed guarantee with the oracle.

``python -m tests.fuzz.sentences --streams 10000`` runs many; the tests run a few. Kernels run uncompiled, from the same
source, because each combination of settings would need a compilation; ``--compiled default`` compiles those of the
default experts, and ``--compiled all`` every kernel.
"""

import argparse
import json
import pathlib
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress

import numpy as np

import forel
from forel.learner.grid import default_grid
from forel.learner.kernels import kernel
from forel.learner.kernels.kernel import uncompiled_kernel
from forel.learner.learner import Learner
from tests.fuzz import oracle
from tests.fuzz.checks import coded, full_margins, mixture_violations, proof_violations, scales_of, with_constant
from tests.fuzz.interfaces import door_violations
from tests.fuzz.runs import run_violations
from tests.fuzz.streams import BITS, FEATURES, KINDS, NAMES, SLOTS, settings_for, stream

PLAYED = (*oracle.LOSSES, "logistic", "squared")  # losses in turn; those with filters come twice


@contextmanager
def uncompiled(compiled="none"):
    """Run kernels as plain Python but for those ``compiled``, with overflow warnings off, as in compiled code."""
    before, usual = kernel.kernel, default_grid()

    def choose(spec):
        default = (spec.layout.lanes, spec.layout.filters) == (usual.n_settings, len(usual.filters))
        return before(spec) if compiled == "all" or (compiled == "default" and default) else uncompiled_kernel(spec)

    kernel.kernel = choose
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        kernel.kernel = before


def learned_model(model, coordinates):
    """The learned model: weights of some coordinates, and the bias, if it has one."""
    weights = model.weights_at(coordinates)[:, 0]
    return (np.append(weights, model.bias[0]) if model.settings.bias else weights).astype(float)


class Stop(Exception):
    """Raised in the middle of a run, which is then resumed."""


class Run:
    """One run of ``forel.train``, interrupted and resumed or not, with the margins of every pass."""

    def __init__(self, folder, rows, interrupted, **options):
        self._margins = defaultdict(dict)
        if interrupted:
            (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
            saved = {"checkpoint": folder / "checkpoint", "checkpoint_every": 1, "block_bytes": 2000}
            with suppress(Stop):
                forel.train(folder / "rows.jsonl", progress=self._stop(len(rows) // 2), **saved, **options)
            self.trained = forel.train(folder / "rows.jsonl", progress=self._keep, resume=True, **saved, **options)
        else:
            self.trained = forel.train(rows, progress=self._keep, **options)

    def _keep(self, now):
        first = now.rows - len(now.margins)
        self._margins[now.pass_number].update(enumerate(now.margins.tolist(), first))

    def _stop(self, after):
        def keep(now):
            self._keep(now)
            if (now.pass_number - 1) * 2 * after + now.rows > after:
                raise Stop

        return keep

    def margins(self, number):
        """The margins of all rows in a pass, held-out ones among them."""
        return np.array([margin for _, margin in sorted(self._margins[number].items())])


def report_violations(trained, loss, run, y, weight, learned):
    """The reasons why the averages of a run's tables are false: of each pass, and of the rows held out."""
    last = len(trained.training.passes)
    known = {f"pass {k}": (trained.training.passes[k - 1].loss, k, learned) for k in range(1, last + 1)}
    known["report"] = (trained.report.loss, 1, learned)
    if trained.training.holdout is not None and not learned.all():
        known["holdout"] = (trained.training.holdout.loss, last, ~learned)
    found = []
    for name, (shown, number, rows) in known.items():
        own = oracle.average(loss, run.margins(number)[rows], y[rows], weight[rows])
        if weight[rows].sum() and not abs(shown - own) <= 1e-6 * (1 + abs(own)):
            found.append(f"{name}: the table has {shown}, the rows {own}")
    return found


def trained_violations(rng, loss, kind):
    """Train with ``forel.train``: one or two runs of one or two passes, with held-out rows, stored and interrupted."""
    settings = settings_for(rng, loss)
    X, y, weight = stream(rng, loss, kind)
    holdout, passes = int(rng.choice([0, 0, 4])), int(rng.choice([1, 1, 2]))
    cut = len(y) // 2 if rng.random() < 0.4 else 0
    share = 0.01 if loss == "logistic" and settings.n_settings > 1 and rng.random() < 0.15 else None
    alone, made, learned_rows, stored, violations = Learner(1 << BITS, settings, mixed=False), [], [], None, []
    for part in (slice(0, cut), slice(cut, None)):
        rows = [
            {"label": b, "weight": c, **{n: v for n, v in zip(NAMES, a, strict=True) if v}}
            for a, b, c in zip(X[part].tolist(), y[part].tolist(), weight[part].tolist(), strict=True)
        ]
        if not rows:
            continue
        begin = {"model": stored} if stored else {"settings": settings, "fixed_share": share}
        with tempfile.TemporaryDirectory() as folder:
            run = Run(
                pathlib.Path(folder), rows, bool(rng.random() < 0.2), label="label", importance="weight", bits=BITS,
                certificate=True, holdout=holdout, passes=passes, **begin,
            )  # fmt: skip
            stored = run.trained
            if rng.random() < 0.3:
                run.trained.save(pathlib.Path(folder) / "model.forel")
                stored = forel.load(pathlib.Path(folder) / "model.forel")
        learned = np.arange(1, len(rows) + 1) % holdout != 0 if holdout else np.ones(len(rows), bool)
        violations += report_violations(run.trained, loss, run, coded(loss, y[part]), weight[part], learned)
        learned &= weight[part] > 0
        a, b, c, m = X[part][learned], coded(loss, y[part][learned]), weight[part][learned], run.margins(1)[learned]
        made.append((a, b, c, m))
        dense = np.zeros((len(a), 1 << BITS))
        dense[:, SLOTS] = a
        for k in range(1, passes + 1):  # margins of every setting before each pass learned the rows
            each = alone.progress(dense, b, c) if settings.n_settings > 1 else run.margins(k)[learned][:, None]
            learned_rows.append((k, a, b, c, each.astype(float)))
        words, own = run.trained.training.certificate, oracle.average(loss, m, b, c)
        scales = scales_of(np.concatenate([rows[0] for rows in made]), settings)
        model = learned_model(stored.learner, SLOTS)
        rows, known = with_constant(a, settings), f"these 2^{BITS} hashed features"
        why = oracle.certificate_violation(words, loss, rows, b, c, own, model, scales, known)
        violations += [f"{words}: {why}"] if why else []
    a, b, c, m = (np.concatenate(columns) for columns in zip(*made, strict=True))
    if settings.n_settings > 1:
        passes_of, x, labels, scale, each = zip(*learned_rows, strict=True)
        every = [np.concatenate(part) for part in (each, x, labels, scale)]
        full = full_margins(settings, loss, np.float32(every[1]).astype(float), *every[2:])
        first = np.repeat(np.array(passes_of) == 1, [len(part) for part in each])
        violations += mixture_violations(stored.learner, loss, m, every[0][first], full[first], b, c)
    if rng.random() < 0.5:  # the sentence of a stored model is about the rows of all runs and passes
        a, b, c, each = (np.concatenate(columns) for columns in list(zip(*learned_rows, strict=True))[1:])
        best = m if passes == 1 else each[:, getattr(stored.learner, "best", 0)]
        words, own = stored.learner.summary(), oracle.average(loss, best, b, c)
        why = oracle.certificate_violation(words, loss, with_constant(a, settings), b, c, own, model, scales)
        violations += [f"{words}: {why}"] if why else []
    return settings, violations


def learner_violations(rng, loss, kind):
    """Train a learner directly, in float32 or float64, 50 rows at a time."""
    settings = settings_for(rng, loss)
    dtype = (np.float32, np.float64)[rng.integers(2)]
    X, y, weight = stream(rng, loss, kind)
    labels, violations = coded(loss, y), []
    model = Learner(FEATURES, settings, dtype=dtype, certified=True)

    def progress(learner):
        rows = (slice(k, k + 50) for k in range(0, len(y), 50))
        return np.concatenate([learner.progress(X[some], labels[some], weight[some]) for some in rows]).astype(float)

    alone = Learner(FEATURES, settings, dtype=dtype, certified=True, mixed=False)
    margins, each = progress(model)[:, 0], progress(alone)
    X, labels, weight, margins, each = (column[weight > 0] for column in (X, labels, weight, margins, each))
    features, own = with_constant(X, settings), oracle.average(loss, margins, labels, weight)
    words, learned, scales = model.summary(), learned_model(model, np.arange(FEATURES)), scales_of(X, settings)
    why = oracle.certificate_violation(words, loss, features, labels, weight, own, learned, scales)
    violations += [f"{words}: {why}"] if why else []
    if settings.n_settings > 1:
        full = full_margins(settings, loss, X.astype(dtype).astype(float), labels, weight)
        violations += mixture_violations(model, loss, margins, each, full, labels, weight)
    proof = model.certificate()
    if proof.floor_void:
        return settings, violations
    given = loss, features, labels, weight, own, scales, dtype is np.float64
    return settings, violations + proof_violations(rng, proof, *given)


PLAYS = {trained_violations: 0.4, learner_violations: 0.25, door_violations: 0.1, run_violations: 0.25}


def experts_of(settings):
    """What is trained: one model, a mixture of settings, or one with filters."""
    return "filters" if settings.filters else "mixture" if settings.n_settings > 1 else "model"


def run(streams, seed=0, compiled="none", say=None, seconds=None, plays=PLAYS):
    """Run ``streams`` streams, or until the time limit; return counts by loss, kind and experts, and all violations."""
    played, violations = Counter(), []
    until = None if seconds is None else time.monotonic() + seconds
    with uncompiled(compiled):
        for k in range(streams):
            if until is not None and time.monotonic() > until:
                break
            rng = np.random.default_rng((seed, k))
            loss, kind = PLAYED[k % len(PLAYED)], KINDS[int(rng.integers(len(KINDS)))]
            settings, found = list(plays)[
                rng.choice(len(plays), p=np.array(list(plays.values())) / sum(plays.values()))
            ](rng, loss, kind)
            played[loss, kind, experts_of(settings)] += 1
            violations += [f"stream {k} of seed {seed} ({kind}, {settings}): {why}" for why in found]
            if say is not None and (found or (k + 1) % 100 == 0):
                say(k + 1, len(violations), found)
    return played, violations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, help="time limit in seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", choices=["none", "default", "all"], default="none")
    options, begun = parser.parse_args(), time.perf_counter()

    def say(done, count, found):
        print(
            *found, f"{done:,} streams, {count} violations, {time.perf_counter() - begun:.0f} s", sep="\n", flush=True
        )

    played, violations = run(options.streams, options.seed, options.compiled, say, options.seconds)
    print(*violations, sep="\n")
    for column, name in enumerate(("loss", "kind", "experts")):
        counts = Counter()
        for key, count in played.items():
            counts[key[column]] += count
        print(f"{name}: {', '.join(f'{key} {count:,}' for key, count in sorted(counts.items()))}")
    print(f"{sum(played.values()):,} streams of {len(played)} kinds, {len(violations)} violations")
    raise SystemExit(bool(violations))


if __name__ == "__main__":
    main()

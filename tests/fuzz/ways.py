"""Train models of all kinds on random rows, and predict rows inside and outside their range in every way.

Losses, settings (the default experts, a few settings, one), several classes, passes, shuffling, importances and units
of columns from 1e-20 to 1e20 are drawn. Ways are a trained and a loaded model, one row, many rows, CSV text and
explanations of them, of the whole model, its best setting, both files for serving and the ONNX graph; the loss that
``evaluate`` has is recomputed from the margins.
"""

import io
import pathlib
import tempfile
import time
import warnings
from importlib.util import find_spec

import numpy as np

import forel
from forel.learner.grid import default_grid
from forel.learner.settings import Settings
from forel.onnx import to_onnx
from forel.store import serving_model
from forel.training.model import Model
from tests.fuzz import oracle
from tests.fuzz.command import command
from tests.fuzz.sentences import uncompiled
from tests.fuzz.streams import BINARY

LOSSES = (*oracle.LOSSES, "softmax")
SETTINGS = {
    "default": lambda loss: default_grid(loss=loss),
    "one, scale-free": lambda loss: Settings(loss, alpha=0.7, rate="scale_free"),
    "several, scale-free": lambda loss: Settings(loss, alpha=(0.1, 1.0, 5.0), rate="scale_free"),
    "one": lambda loss: Settings(loss, alpha=0.7),
    "several": lambda loss: Settings(loss, alpha=(0.3, 2.0), l2=0.1, l1=0.05),
}
WORDS, NAMES = np.array(["low", "mid", "high"]), ("a", "b", "c")


def drawn(rng, loss):
    """Rows as dicts, options of training, and rows to predict."""
    count, (one, two) = int(rng.integers(30, 90)), 10.0 ** rng.choice([-20, -3, 0, 0, 3, 20], 2)
    a, b, c = rng.normal(size=count), rng.exponential(size=count), rng.choice(list("uvw"), count)
    signal, options = (
        a + b / 2 + (c == "u"),
        {"label": "y", "bits": 14, "names": True, "passes": int(rng.integers(1, 3))},
    )
    if loss == "softmax" or (loss in BINARY and rng.random() < 0.3):
        y, options["classes"] = WORDS[np.clip(np.round(signal), 0, 2).astype(int)], "auto"
    elif loss in BINARY:
        y = (signal > rng.normal(size=count)).astype(int)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(signal, -3, 3)) * 10.0 ** rng.choice([0, 3]))
    else:
        y = (signal + rng.normal(size=count)) * 10.0 ** rng.choice([-6, 0, 4]) + rng.choice([0, 0, 1e5])
    columns = {"a": a * one, "b": b * two, "c": c, "y": y}
    if rng.random() < 0.3:
        columns["w"], options["importance"] = rng.choice([0, 0.1, 1, 50], count), "w"
    if rng.random() < 0.3:
        options["shuffle"] = int(rng.integers(9))
    lists = [column.tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    x, z = (float(rng.normal()) * one, float(rng.exponential()) * two)
    chosen = [
        {"a": x, "b": z, "c": "u"}, {"a": 200 * one, "b": -1e3 * two, "c": "v"}, {"a": 1e7 * one, "c": "new"}, {},
        {"a": -1e3 * one, "b": 1e6 * two}, {"b": 5 * two, "other": 3.0}, {"a": 1e-30}, {"a": None, "b": 0.0, "c": None},
    ]  # fmt: skip
    return rows, options, chosen


def differs(found, expected, rel):
    """Whether numbers differ by more than a fraction of the largest, or names of classes do."""
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind not in "fiu":
        return [str(one) for one in found] != [str(one) for one in expected]
    if found.shape != expected.shape or not np.isfinite(found).all():
        return True
    return not np.allclose(found, expected, rtol=rel, atol=rel * np.abs(expected).max())


def of_model(name, model, rows, predictions, margins, rel):
    """Yield what differs between the ways to predict with one model."""
    text = "a,b,c\n" + "".join(
        ",".join("" if (v := row.get(n)) is None else str(v) for n in NAMES) + "\n" for row in rows
    )
    ways = {
        "predict": forel.predict(model, rows),
        "many rows": model.predict_many(rows),
        "one row": [model.predict_one(row) for row in rows],
        "CSV": forel.predict(model, io.BytesIO(text.encode()), format="csv"),
    }
    explained = list(model.explain(rows))
    several = np.ndim(margins) == 2
    ways |= {} if several else {"explanations": [one.prediction for one in explained]}
    for way, found in ways.items():
        # Explanations add up products of float32, which may cancel.
        if differs(found, predictions, max(rel, 1e-5) if way == "explanations" else rel):
            yield f"{name}, {way}: {found}, not {predictions}"
    if differs(found := model.margins(rows), margins, rel):
        yield f"{name}, margins: {found}, not {margins}"
    # Where the probability is 1 to the last digit, the odds of a mixture are those of the experts against it.
    most = 700 if model.settings.loss == "logistic" else np.inf
    if not several and differs(
        found := np.clip([one.margin for one in explained], -most, most), np.clip(margins, -most, most), max(rel, 1e-5)
    ):
        yield f"{name}, explained: {found}, not {margins}"


def of_graph(model, rows, predictions):
    """Yield what differs in an ONNX graph; classes without probabilities have none."""
    import onnxruntime

    try:
        graph = to_onnx(model).SerializeToString()
    except ValueError as refused:
        if "predictions by 'largest'" not in str(refused) and "share the slot" not in str(refused):
            yield f"ONNX: {refused}"
        return
    session, feed = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]), {}
    for one in session.get_inputs():
        words = "string" in one.type
        column = [row.get(one.name) for row in rows]
        with np.errstate(over="ignore"):
            cells = [("" if words else np.nan) if cell is None else cell for cell in column]
            feed[one.name] = np.array(cells, object if words else np.float32)[:, None]
    (found,) = session.run(["prediction" if model.classes is None else "label"], feed)
    found = found[:, 0] if model.classes is None else found.ravel()
    if differs(found, predictions, 1e-4):
        yield f"ONNX: {found}, not {predictions}"
    if model.classes is not None:
        (found,), known = session.run(["probabilities"], feed), forel.predict(model, rows, probabilities=True)
        if differs(found, known, 1e-4):
            yield f"ONNX: {found}, not {known}"


def evaluated(model, rows, loss):
    """Yield a loss of ``evaluate`` that is not that of the margins."""
    margins = np.asarray(model.margins([{name: row[name] for name in NAMES} for row in rows]), float)
    labels, weight = (np.array([row.get(name, 1.0) for row in rows], float) for name in ("y", "w"))
    own = oracle.average(loss, margins, 2 * labels - 1 if oracle.LOSSES[loss].sign else labels, weight)
    shown = model.evaluate(rows).report.loss
    if weight.any() and abs(shown - own) > 1e-5 * (abs(own) + 1e-12):
        yield f"evaluate has {shown}, the rows {own}"


def violations(rng, loss, kind):
    """Return what differs between the ways to predict."""
    rows, options, chosen = drawn(rng, loss)
    with warnings.catch_warnings(action="ignore"), tempfile.TemporaryDirectory() as place:
        path, model = pathlib.Path(place) / "m", forel.train(rows, SETTINGS[kind](loss), **options)
        predictions, margins = forel.predict(model, chosen), model.margins(chosen)
        model.save(path)
        found = [*of_model("trained", model, chosen, predictions, margins, 1e-6)]
        found += of_model("loaded", forel.load(path), chosen, predictions, margins, 1e-6)
        if "classes" not in options:
            found += evaluated(model, rows, loss)
        alone, mixture = model.learner.settings.n_settings == 1, model.learner.guarantee() is not None
        best = (
            model if alone else Model(model.learner.select_setting(model.learner.best_model), model.extra, model.names)
        )
        if not alone:
            found += of_model("best", best, chosen, forel.predict(best, chosen), best.margins(chosen), 1e-5)
        for mixed in (False, True) if mixture and "classes" not in options else (False,):
            forel.save(path, serving_model(model.learner, mixed=mixed), model.extra, model.names)
            small = forel.load(path)
            answers, own = forel.predict(small, chosen), small.margins(chosen)
            if mixed and differs(answers, predictions, 1e-3):
                found.append(f"served mixture: {answers}, not {predictions}")
            if not mixed and alone and differs(own, margins, 1e-4):
                found.append(f"served: {own}, not {margins}")
            found += of_model("served", small, chosen, answers, own, 1e-5)
            if not mixed and find_spec("onnx") and find_spec("onnxruntime"):
                found += of_graph(small, chosen, answers)
    return [f"{loss}, {kind}, {options}: {one}" for one in found]


def run(seconds: float, seed: int = 0, models: int | None = None) -> int:
    """Train models for some seconds, or so many, and return and print how many there were."""
    until, played, kinds = time.monotonic() + seconds, 0, tuple(SETTINGS)
    with uncompiled():
        while time.monotonic() < until if models is None else played < models:
            rng = np.random.default_rng((seed, played))
            found = violations(rng, LOSSES[played % len(LOSSES)], kinds[int(rng.integers(len(kinds)))])
            assert not found, f"seed {seed}, number {played}: " + "\n".join(found)
            played += 1
    print(f"ways, seed {seed}: {played:,} models whose predictions are the same in every way")
    return played


def main() -> None:
    command(run, __doc__)


if __name__ == "__main__":
    main()

"""Train on files of decimals with options together, and check what a person reads: with an oracle of raw decimals.

Streams have hold-out (every n-th row, or all after the first n), shuffling and several passes in any combination;
importances whose sum is the number of rows, or any other; labels beyond the range where float32 is exact; more names
than slots; curves and pairs of columns; and columns whose next values are outside the range of training. Every
statement is recomputed from the decimals in the file: the losses of the table, the certificate that training prints
and the one that ``inspect`` prints, and the loss that ``evaluate`` prints. Held-out labels are changed, which may
change nothing but their own losses. Rows outside the range are predicted in every way.
"""

import pathlib
import tempfile
import warnings
from importlib.util import find_spec

import numpy as np

import forel
from forel.data.features.hashing import slot
from forel.learner.grid import default_grid
from forel.learner.settings import Settings
from forel.onnx import to_onnx
from tests.fuzz import oracle
from tests.fuzz.checks import coded, scales_of, with_constant
from tests.fuzz.streams import BINARY, stream

OFFSETS = (0.0, 0.0, 0.0, 1e4, 1e7)  # of labels of regressions
ALPHAS = (0.05, 0.5, 3.0)
LABEL, IMPORTANCE = "y", "w"


def drawn(rng, loss, kind):
    """Decimals of features, labels and importances as text, and the number of bits of slots."""
    X, y, weight = stream(rng, loss, kind)
    if loss not in BINARY and loss != "poisson":
        y = y + OFFSETS[rng.integers(len(OFFSETS))]
    if rng.random() < 0.3 and weight.sum():  # importances that differ and sum to the number of rows
        weight = np.where(np.arange(len(y)) % 2, 0.5, 1.5) if len(y) % 2 == 0 else weight
    columns = [np.char.mod("%.12g", each) for each in (*X.T, y, weight)]
    names = [f"c{k}" for k in range(X.shape[1])]
    return names, columns, int(rng.choice([2, 3, 6]))


def written(path, names, columns):
    lines = [",".join((*names, LABEL, IMPORTANCE)), *(",".join(cells) for cells in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def hashed(names, X, bits):
    """The columns of the slots in use, in order: the sums of the columns whose names share one."""
    slots = np.array([slot(name, bits=bits) for name in names])
    used = np.unique(slots)
    return used, np.stack([X[:, slots == one].sum(axis=1) for one in used], axis=1)


def learned_model(model, used):
    weights = model.weights_at(used)[:, 0].astype(float)
    return np.append(weights, model.bias[0]) if model.settings.bias else weights


def trained_on(path, **options):
    """Train, and return the result with the margin of each row in the first pass, by its number in the file."""
    margins = {}

    def keep(now):
        if now.pass_number == 1:
            margins.update(zip(now.block.numbers.tolist(), now.margins.tolist(), strict=True))

    with warnings.catch_warnings(action="ignore"):
        result = forel.train(path, label=LABEL, importance=IMPORTANCE, format="csv", progress=keep, **options)
    return result, np.array([margins[k] for k in range(len(margins))])


def graph_predictions(small, names, rows):
    """The predictions of an ONNX graph; none of a model with two columns in one slot, which is to be refused."""
    import onnxruntime

    bits = small.read_options.bits
    try:
        graph = to_onnx(small).SerializeToString()
    except ValueError as refused:
        if len({slot(name, bits=bits) for name in names}) == len(names):
            raise
        return {} if "share the slot" in str(refused) else {f"ONNX ({refused})": np.full(len(rows), np.nan)}
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    with np.errstate(over="ignore"):
        columns = {name: column[:, None].astype(np.float32) for name, column in zip(names, rows.T, strict=True)}
    return {"ONNX": session.run(None, columns)[0][:, 0]}


def predictions_violations(rng, folder, trained, names, X):
    """The reasons why ways to predict rows far outside the range of training differ."""
    rows = X[:5] * 10.0 ** rng.integers(0, 4, X.shape[1]) + rng.choice([0.0, 200.0, -1e6], X.shape[1])
    dicts = [dict(zip(names, row, strict=True)) for row in rows.tolist()]
    trained.save(folder / "model.forel")
    stored = forel.load(folder / "model.forel")
    known = np.asarray(stored.predict_many(dicts), float)
    ways = {"predict_one": [stored.predict_one(row) for row in dicts], "trained": trained.predict_many(dicts)}
    if trained.learner.settings.n_settings == 1:
        small = forel.Model(forel.store.serving_model(trained.learner), trained.extra)
        small.save(folder / "serving.forel")
        serving = forel.load(folder / "serving.forel")
        ways["serving"] = serving.predict_many(dicts)
        ways["serving, one row"] = [serving.predict_one(row) for row in dicts]
        if find_spec("onnx") and find_spec("onnxruntime"):
            ways |= graph_predictions(small, names, rows)
    return [
        f"{way} of rows outside the range: {np.asarray(found, float)}, not {known}"
        for way, found in ways.items()
        if not np.allclose(np.asarray(found, float), known, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(known).max()))
    ]


def run_violations(rng, loss, kind):
    """The reasons why statements of one run are false."""
    names, columns, bits = drawn(rng, loss, kind)
    *features, y, weight = (column.astype(float) for column in columns)
    X, y = np.column_stack(features), coded(loss, y)
    usual = bool(rng.random() < 0.3)
    settings = default_grid(loss=loss) if usual else Settings(loss, alpha=float(rng.choice(ALPHAS)), rate="scale_free")
    options = {"settings": settings, "bits": bits, "certificate": True, "passes": int(rng.choice([1, 2, 3]))}
    if settings.filters:
        options["features"] = str(rng.choice(["linear", "curves", "pairs"]))
    options["shuffle"] = int(rng.integers(5)) if rng.random() < 0.5 else None
    held_out = np.zeros(len(y), bool)
    if rng.random() < 0.6:
        if rng.random() < 0.5:
            options["holdout"] = int(rng.integers(2, 6))
            held_out = np.arange(1, len(y) + 1) % options["holdout"] == 0
        else:
            options["holdout_after"] = int(rng.integers(1, len(y)))
            held_out = np.arange(len(y)) >= options["holdout_after"]
    described = {name: value for name, value in options.items() if name != "settings"}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        trained, margins = trained_on(written(folder / "rows.csv", names, columns), **options)
        found = _statements(trained, loss, names, X, y, weight, margins, held_out, bits)
        if held_out.any():
            low, high = np.unique(columns[-2])[[0, -1]]
            changed = np.where(held_out, np.where(columns[-2] == low, high, low), columns[-2])
            path = written(folder / "changed.csv", names, [*columns[:-2], changed, columns[-1]])
            other, _ = trained_on(path, **options)
            rows = [dict(zip(names, row, strict=True)) for row in X[:9].tolist()]
            if not np.array_equal(other.predict_many(rows), trained.predict_many(rows)):
                found.append("labels of rows that are held out change the model")
        found += predictions_violations(rng, folder, trained, names, X)
        found += _evaluated(folder, trained, loss, y, weight, names, columns)
    return settings, [f"{described}: {one}" for one in found]


def _statements(trained, loss, names, X, y, weight, margins, held_out, bits):
    """The reasons why the table and the certificate of a run are false."""
    found, rows = [], ~held_out & (weight > 0)
    own = oracle.average(loss, margins[rows], y[rows], weight[rows])
    if weight[rows].sum() and abs(trained.report.loss - own) > 1e-6 * (1 + abs(own)):
        found.append(f"the table has {trained.report.loss}, the rows {own}")
    used, slots = hashed(names, X[rows], bits)
    settings, learned = trained.learner.settings, learned_model(trained.learner, used)
    # Scales are those of the values as float32.
    scales = scales_of(np.float32(slots).astype(float), settings)
    known = f"these 2^{bits} hashed features"
    given = loss, with_constant(slots, settings), y[rows], weight[rows], own, learned, scales
    for words in {trained.training.certificate, trained.certificate}:
        why = oracle.certificate_violation(words, *given, known)
        found += [f"{words}: {why}"] if why else []
    return found


def _evaluated(folder, trained, loss, y, weight, names, columns):
    """The reasons why the loss that ``evaluate`` prints is false."""
    stored = trained
    with warnings.catch_warnings(action="ignore"):  # of equal predictions
        shown = forel.evaluate(stored, folder / "rows.csv", format="csv").report.loss
    rows = [
        {name: float(cell) for name, cell in zip(names, cells, strict=False)} for cells in zip(*columns, strict=True)
    ]
    own = oracle.average(loss, np.asarray(stored.margins(rows), float), y, weight)
    if weight.sum() and abs(shown - own) > 1e-5 * (1 + abs(own)):
        return [f"evaluate has {shown}, the rows {own}"]
    return []

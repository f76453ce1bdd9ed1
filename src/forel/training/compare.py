"""Comparison of two models, files of predictions, or settings on the same rows, and where their predictions differ."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import Problems, read
from forel.evidence import Comparison, MeanSequence
from forel.evidence.comparison import Kind
from forel.learner.keyed import KeyedModels
from forel.learner.settings import Settings
from forel.markup import counted
from forel.notebook import card, plain
from forel.store.serving import number_of_classes
from forel.training.classes import metrics_for
from forel.training.label_order import LabelOrderWarning
from forel.training.labels import LabelEncoder
from forel.training.model import Model, as_model
from forel.training.progress import Progress
from forel.training.scoring import predict_blocks
from forel.training.slices import MISSING, MOST, OTHERS
from forel.training.train import train
from forel.validation import refuse, several

__all__ = ["Compared", "FeatureChange", "RowChange", "SliceDifference", "compare", "read_numbers"]

Floats = NDArray[np.float64]
WIDEST = 10  # times the last width, of an interval in a plot
SHOWN = 10  # rows and features that moved most
CHUNK = 1 << 16
MARKS = np.unique((10 * 1.12 ** np.arange(200)).astype(np.int64))  # rows at which the interval is kept for a plot


class RowChange(NamedTuple):
    """A row, from 0, its two predictions, of several classes the probabilities of the label, and its label."""

    row: int
    a: float
    b: float
    label: float


class FeatureChange(NamedTuple):
    """A feature, and the standard deviation of what it adds to the margin of either model."""

    name: str
    a: float
    b: float


class SliceDifference(NamedTuple):
    """A value of a column, its rows, and the interval of the average difference of losses there."""

    value: str
    rows: int
    low: float
    high: float


@dataclass(eq=False, repr=False)
class Compared:
    """The result of :func:`compare`.

    Parameters
    ----------
    comparison : the evidence
    names : of the two
    losses : the average loss of each
    curve : rows, and the ends of the interval after them
    slices : for each column, the values with the most rows
    rows, features : those that moved most; features where both are models with names or columns
    """

    comparison: Comparison
    names: tuple[str, str] = ("A", "B")
    losses: tuple[float, float] = (0.0, 0.0)
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    slices: dict[str, list[SliceDifference]] = field(default_factory=dict)
    rows: list[RowChange] = field(default_factory=list)
    features: list[FeatureChange] = field(default_factory=list)

    def __str__(self) -> str:
        return self.comparison.sentence(*self.names)

    def _summary(self) -> list[tuple[str, object]]:
        return [("result", str(self)), *zip(("loss of A", "loss of B"), self.losses, strict=True)]

    def __repr__(self) -> str:
        return plain("Compared", self._summary())

    def _repr_html_(self) -> str:
        return card("Compared", self._summary())

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "sentence": str(self), "a": self.names[0], "b": self.names[1], **self.comparison.to_json(),
            "loss_a": self.losses[0], "loss_b": self.losses[1], "curve": self.curve,
            "slices": {column: [one._asdict() for one in values] for column, values in self.slices.items()},
            "rows_moved": [one._asdict() for one in self.rows],
            "features_moved": [one._asdict() for one in self.features],
        }  # fmt: skip

    @property
    def shown_curve(self) -> list[tuple[int, float, float]]:
        """The curve from where on the interval is at most ten times as wide as the last one."""
        widest = WIDEST * (self.curve[-1][2] - self.curve[-1][1])
        return [one for one in self.curve if one[2] - one[1] <= widest]

    def plot(self, ax: Any = None) -> Any:
        """Plot the interval over rows, and return matplotlib's axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        rows, low, high = np.array(self.shown_curve).T
        ax.fill_between(rows, low, high, alpha=0.3)
        ax.axhline(0.0, color="gray")
        ax.set(xscale="log", xlabel="rows", ylabel="loss of B less that of A")
        return ax


class _Rows(NamedTuple):
    """Losses, predictions and labels of consecutive rows, and their values of the columns of slices."""

    losses: Floats
    predictions: Floats
    labels: Floats
    values: NDArray[Any] | None = None

    def part(self, some: slice) -> "_Rows":
        values = None if self.values is None else self.values[:, some]
        return _Rows(self.losses[some], self.predictions[some], self.labels[some], values)


def compare(
    a: Any,
    b: Any,
    source: Any,
    *,
    level: float = 0.05,
    loss: str | None = None,
    slices: Sequence[str] = (),
    names: tuple[str, str] | None = None,
    threads: int | None = None,
    **reading: Any,
) -> Compared:
    """Return which of two models is better on some rows, with a statement that holds at whatever row one looks.

    Parameters
    ----------
    a, b : a model or its path; predictions or a file of them, one for each row; or :class:`forel.Settings`, which are
        trained on the rows, each predicted before it is learned. Models must not have learned from these rows
    source : the rows with labels, as in :func:`forel.data.read`; for predictions also an array or a file of labels
    level : the probability of a wrong statement
    loss : of predictions: "logistic" for probabilities, "squared" or "absolute" for numbers; None to tell by the labels
    slices : columns, by whose values differences are also shown
    names : in sentences; None for paths, or A and B
    threads, reading : as in :func:`forel.evaluate`

    >>> from forel.learner.settings import Settings
    >>> rows = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 500
    >>> found = compare(Settings(alpha=1.0), Settings(alpha=0.001), rows, label="click", bits=8)
    >>> print(found)
    A is better than B by 0.59... to 0.72... per row in log-loss (probabilities within 0.01 and 0.99), at level 5 %,
    no matter when you looked; decided after 11... rows...
    """
    columns, sides = several(slices), []
    if columns:
        reading = {**reading, "slices": columns}
    given = _labels(source, reading) if any(map(_is_predictions, (a, b))) else None
    for side, one in (("a", a), ("b", b)):
        if _is_predictions(one):
            assert given is not None
            sides.append(_of_predictions(read_numbers(one), given, loss, f"{one}" if isinstance(one, str) else side))
        elif one is None or isinstance(one, Settings):
            sides.append(_of_settings(one, source, threads, reading))
        else:
            sides.append(_of_model(as_model(one), source, threads, reading))
    (kind, unit, of_a), (other, other_unit, of_b) = sides
    if (kind, unit) != (other, other_unit):
        raise refuse("b", f"the loss {other_unit}", f"{unit}, as that of a")
    if names is None:
        first, second = (os.path.basename(one) if isinstance(one, str | os.PathLike) else "" for one in (a, b))
        names = (first or "A", second or "B") if first != second else ("A", "B")
    found = _compared(Comparison(kind, level), of_a, of_b, columns, names)
    if all(not _is_predictions(one) and not isinstance(one, Settings | None) for one in (a, b)):
        found.features = _features(as_model(a), as_model(b))
    return found


def _compared(
    comparison: Comparison, a: Iterator[_Rows], b: Iterator[_Rows], columns: Sequence[str], names: tuple[str, str]
) -> Compared:
    most = comparison.largest_difference
    groups = [_Groups(MeanSequence(-most, most, comparison.level, MOST + 1)) for _ in columns]
    totals, curve, moved = np.zeros(2), list[tuple[int, float, float]](), np.zeros((0, 4))
    for mine, theirs in _aligned(a, b):
        first = comparison.rows
        totals += mine.losses.sum(), theirs.losses.sum()
        size = mine.losses.size
        ends = np.append(MARKS[np.searchsorted(MARKS, first + 1) : np.searchsorted(MARKS, first + size)] - first, size)
        for start, end in zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True):
            comparison.add(mine.losses[start:end], theirs.losses[start:end])
            if first + end in MARKS:
                curve.append((comparison.rows, *comparison.interval()))
        distance = np.abs(theirs.predictions - mine.predictions)
        top = np.argsort(-distance, kind="stable")[:SHOWN]
        rows = np.stack([first + top, mine.predictions[top], theirs.predictions[top], mine.labels[top]], axis=1)
        moved = np.concatenate([moved, rows])
        moved = moved[np.argsort(-np.abs(moved[:, 2] - moved[:, 1]), kind="stable")[:SHOWN]]
        values = mine.values if mine.values is not None else theirs.values
        for group, column in zip(groups, () if values is None else values, strict=False):
            group.add(column, comparison.differences(mine.losses, theirs.losses))
    if not comparison.rows:
        raise refuse("source", "no rows", "rows with labels")
    if not curve or curve[-1][0] != comparison.rows:
        curve.append((comparison.rows, *comparison.interval()))
    mean_a, mean_b = (totals / comparison.rows).tolist()
    rows_moved = [RowChange(int(row), *numbers) for row, *numbers in moved.tolist()]
    tables = {column: group.table() for column, group in zip(columns, groups, strict=True)}
    return Compared(comparison, names, (mean_a, mean_b), curve, tables, rows_moved)


class _Groups:
    """The sequence of each value of a column; 0 is the number of all values beyond the first 500."""

    def __init__(self, means: MeanSequence) -> None:
        self.means, self.codes = means, dict[bytes, int]()

    def add(self, values: NDArray[Any], differences: Floats) -> None:
        for value in dict.fromkeys(values.tolist()):
            if len(self.codes) < MOST:
                self.codes.setdefault(value, 1 + len(self.codes))
        self.means.add(differences, [self.codes.get(value, 0) for value in values.tolist()])

    def table(self) -> list[SliceDifference]:
        words = {code: value.decode("utf-8", "backslashreplace") or MISSING for value, code in self.codes.items()}
        (low, high), rows = self.means.interval(), self.means.rows
        order = sorted(np.flatnonzero(rows).tolist(), key=lambda code: (code == 0, -rows[code]))[: 2 * SHOWN]
        return [SliceDifference(words.get(k, OTHERS), int(rows[k]), float(low[k]), float(high[k])) for k in order]


def _aligned(a: Iterator[_Rows], b: Iterator[_Rows]) -> Iterator[tuple[_Rows, _Rows]]:
    """Yield the same rows of both."""
    mine = theirs = None
    done = 0
    while True:
        mine = next(a, None) if mine is None else mine
        theirs = next(b, None) if theirs is None else theirs
        if mine is None or theirs is None:
            break
        size = min(mine.losses.size, theirs.losses.size)
        first, second = mine.part(slice(size)), theirs.part(slice(size))
        if not np.array_equal(first.labels, second.labels):
            row = done + int(np.argmax(first.labels != second.labels))
            raise refuse("labels", f"different ones for a and b in row {row}", "models of the same labels")
        done += size
        yield first, second
        mine = mine.part(slice(size, None)) if size < mine.losses.size else None
        theirs = theirs.part(slice(size, None)) if size < theirs.losses.size else None
    if mine is not None or theirs is not None:
        fewer, more = ("a", "b") if mine is None else ("b", "a")
        raise refuse(fewer, f"{done:,} rows", f"as many as {more}, which has more")


def _of_model(model: Model, source: Any, threads: int | None, reading: Mapping[str, Any]) -> tuple[Kind, str, Any]:
    """Return the kind of loss, its title, and the rows with the losses of a model."""
    kind, scorer = _scorer(model.settings, model.learner, model.classes or ())

    def rows() -> Iterator[_Rows]:
        problems = Problems(reading.get("on_error") or "raise")
        labels = LabelEncoder(model.settings, problems, number_of_classes(model.learner), model.classes or ())
        options = {"unlabelled": False, **reading}
        for block, margins in predict_blocks(model, source, threads, problems, **options):
            encoded, valid = labels.encode(block)
            some: Any = slice(None) if valid is None else valid
            values = None if block.slices is None else block.slices[:, some]
            yield scorer(margins[some], encoded[some], values)

    return kind, model.settings.title, rows()


def _of_settings(
    settings: Settings | None, source: Any, threads: int | None, reading: Mapping[str, Any]
) -> tuple[Kind, str, Any]:
    """Return the same of a model that learns the rows, each after its prediction."""
    found: list[_Rows] = []
    kind: list[Kind] = []

    def keep(moment: Progress) -> None:
        chosen, scorer = _scorer(moment.model.settings, moment.model, moment.classes)
        kind.append(chosen)
        found.append(scorer(moment.margins, moment.block.labels, moment.block.slices))

    keep.reads_model = False  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelOrderWarning)  # what is compared is how well the stream is followed
        trained = train(source, settings, threads=threads, progress=keep, **reading)
    return kind[0], trained.settings.title, iter(found)


def _scorer(settings: Settings, learner: Any, classes: Sequence[str]) -> tuple[Kind, Any]:
    """Return the kind of loss, and the function from margins, labels and slices to rows."""
    metrics, loss = metrics_for(settings, learner, classes), settings.loss_function
    link = getattr(metrics, "link", settings.link)
    probabilities = bool(getattr(link, "probabilities", False)) and not settings.signed
    kind: Kind = "log" if probabilities else "relative"

    def rows(margins: Any, labels: Any, values: Any) -> _Rows:
        scores = metrics.add(margins, labels)
        losses = np.asarray(scores.losses, np.float64)
        if not probabilities and hasattr(loss, "saturated"):
            losses = np.maximum(losses - loss.saturated(labels), 0.0)
        predictions = np.exp(-losses) if classes else np.asarray(settings.link(margins), np.float64)
        return _Rows(losses, predictions, np.asarray(labels, np.float64), values)

    return kind, rows


def _log_losses(p: Floats, y: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.where(y > 0, p, 1 - p)))


# Losses of predictions: how they are compared, their name, and the function.
LOSSES: dict[str, tuple[Kind, str, Callable[[Floats, Floats], Floats]]] = {
    "logistic": ("log", "log-loss", _log_losses),
    "squared": ("relative", "squared loss", lambda p, y: np.square(y - p) / 2),
    "absolute": ("relative", "absolute loss", lambda p, y: np.abs(y - p)),
}


def _of_predictions(
    predictions: Floats, given: tuple[Floats, NDArray[Any] | None], loss: str | None, source: str
) -> tuple[Kind, str, Any]:
    """Return the same of predictions."""
    labels, values = given
    if predictions.size != labels.size:
        got = f"{source}: got {counted(predictions.size, 'prediction')}"
        raise ValueError(f"{got}, expected one for each of {counted(labels.size, 'label')}")
    for name, array in (("predictions", predictions), ("labels", labels)):
        if not np.isfinite(array).all():
            row = int(np.argmin(np.isfinite(array)))
            raise refuse(f"row {row} of {name}", float(array[row]), "a finite number")
    binary = bool(((labels == 0) | (labels == 1) | (labels == -1)).all()) and predictions.size > 0
    probabilities = binary and predictions.min() >= 0 and predictions.max() <= 1
    if loss is None:
        loss = "logistic" if probabilities else "squared"
    if loss not in LOSSES:
        raise refuse("loss", loss, f"{', '.join(LOSSES)}, of predictions")
    kind, title, losses_of = LOSSES[loss]
    if kind == "log" and not probabilities:
        raise refuse("loss", loss, "squared or absolute: labels or predictions are no probabilities")

    def rows() -> Iterator[_Rows]:
        for start in range(0, labels.size, CHUNK):
            some = slice(start, start + CHUNK)
            p, y = predictions[some], labels[some]
            yield _Rows(
                losses_of(p, y), p, np.maximum(y, 0.0) if binary else y, None if values is None else values[:, some]
            )

    return kind, title, rows()


def _is_predictions(given: Any) -> bool:
    """Return whether something is an array of predictions, or a file of them."""
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        if path.endswith((".npy", ".gz")):
            return True
        with suppress(OSError, ValueError, IndexError), open(path, encoding="utf-8") as file:
            float(file.readline(100).split(maxsplit=1)[0])
            return True
        return False
    return isinstance(given, np.ndarray | list | tuple) or hasattr(given, "to_numpy")


def read_numbers(given: Any) -> Floats:
    """Return an array, or the first number of each line of a file, as ``forel predict`` writes it.

    >>> read_numbers([0.5, 1])
    array([0.5, 1. ])
    """
    if not isinstance(given, str | os.PathLike):
        return np.ascontiguousarray(given, np.float64)
    path = os.fspath(given)
    if path.endswith(".npy"):
        return np.ascontiguousarray(np.load(path), np.float64)
    import pyarrow
    from pyarrow import csv

    try:
        with pyarrow.input_stream(path, compression="detect") as stream:
            table = csv.read_csv(
                stream,
                read_options=csv.ReadOptions(autogenerate_column_names=True),
                parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
                convert_options=csv.ConvertOptions(column_types={"f0": pyarrow.float64()}, include_columns=["f0"]),
            )
        return _finite(np.asarray(table["f0"].to_numpy(), np.float64), path)
    except pyarrow.ArrowInvalid:  # only some lines have tags, or one has no number
        with pyarrow.input_stream(path, compression="detect") as stream:
            lines = stream.read().decode("utf-8", "replace").splitlines()
    numbers = np.empty(len(lines))
    for k, line in enumerate(lines):
        try:
            numbers[k] = float(line.split(maxsplit=1)[0])
        except (ValueError, IndexError):
            raise refuse(f"line {k + 1} of {path}", line[:50], "a prediction, as forel predict writes it") from None
    return _finite(numbers, path)


def _finite(numbers: Floats, path: str) -> Floats:
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise refuse(f"row {row + 1} of {path}", float(numbers[row]), "a finite number")
    return numbers


def _labels(source: Any, reading: Mapping[str, Any]) -> tuple[Floats, NDArray[Any] | None]:
    """Return the labels of a source, and its values of the columns of slices."""
    one = source[0] if isinstance(source, list | tuple) and len(source) == 1 else source
    if not reading.get("slices") and _is_labels(one):
        return read_numbers(one), None
    blocks = list(read(source, unlabelled=False, **reading))
    labels = np.concatenate([block.labels for block in blocks] or [np.zeros(0)]).astype(np.float64)
    values = [block.slices for block in blocks if block.slices is not None]
    return labels, np.concatenate(values, axis=1) if values else None


def _is_labels(source: Any) -> bool:
    """Return whether a source is an array of numbers, or a file of one number in each line."""
    if isinstance(source, str | os.PathLike):
        with suppress(OSError, UnicodeDecodeError, ValueError), open(source, encoding="utf-8") as file:
            float(file.readline(100))
            return True
        return os.fspath(source).endswith(".npy")
    first = source[0] if isinstance(source, list) and source else None
    return getattr(source, "ndim", 0) == 1 or isinstance(first, int | float)


def _features(a: Model, b: Model) -> list[FeatureChange]:
    """Return the features whose additions to a margin changed most."""
    known: list[dict[str, float]] = []
    for model in (a, b):
        found = [] if isinstance(model.learner, KeyedModels) else model.inspect(200).weights
        names = (f"{one.name or f'slot {one.slot}'}{f', {one.label}' * bool(one.label)}" for one in found)
        known.append(dict(zip(names, (one.contribution for one in found), strict=True)))
    both = dict.fromkeys([*known[0], *known[1]])
    changes = [FeatureChange(name, known[0].get(name, 0.0), known[1].get(name, 0.0)) for name in both]
    return sorted((one for one in changes if one.a != one.b), key=lambda one: -abs(one.b - one.a))[:SHOWN]

"""Comparison of two models, files of predictions, or settings on the same rows, and where their predictions differ."""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, read
from forel.evidence import Comparison, MeanSequence
from forel.evidence.comparison import Kind
from forel.learner.keyed import KeyedModels
from forel.learner.settings import Settings
from forel.markup import counted
from forel.notebook import card, plain
from forel.training.label_order import LabelOrderWarning
from forel.training.metrics import metrics_for
from forel.training.model import Model, as_model
from forel.training.progress import Progress
from forel.training.scoring import labelled_blocks
from forel.training.slices import MOST, Values
from forel.training.train import train
from forel.validation import refuse, several

__all__ = ["Compared", "FeatureChange", "RowChange", "SliceDifference", "compare", "read_numbers"]

Floats = NDArray[np.float64]
WIDEST = 10  # times the last width, of an interval in a plot
SHOWN = 10  # rows and features that moved most
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
    curve : rows, and the ends of the interval after them
    slices : for each column, the values with the most rows
    rows, features : those that moved most; features where both are models with names or columns
    """

    comparison: Comparison
    names: tuple[str, str] = ("A", "B")
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    slices: dict[str, list[SliceDifference]] = field(default_factory=dict)
    rows: list[RowChange] = field(default_factory=list)
    features: list[FeatureChange] = field(default_factory=list)

    @property
    def losses(self) -> tuple[float, float]:
        """The average loss of each, per unit of importance."""
        return self.comparison.losses

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
            "curve": self.curve,
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
    """Losses, predictions, labels and importances of rows, and their values of each column of slices."""

    losses: Floats
    predictions: Floats
    labels: Floats
    importance: Floats
    values: NDArray[Any]

    def part(self, some: Any) -> "_Rows":
        return _Rows(*(each[..., some] for each in self))

    @classmethod
    def joined(cls, parts: Iterable["_Rows"]) -> "_Rows":
        """Return consecutive rows as one."""
        none = np.zeros(0)
        given = list(parts) or [cls(none, none, none, none, np.zeros((0, 0), object))]
        return cls(*(np.concatenate(each, axis=-1) for each in zip(*given, strict=True)))


class _Side(NamedTuple):
    """What is compared: how its losses are, their title, and its rows."""

    kind: Kind
    title: str
    rows: _Rows


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
    columns = several(slices)
    if columns:
        reading = {**reading, "slices": columns}
    given = _labels(source, reading) if any(map(_is_predictions, (a, b))) else None

    def side(name: str, one: Any) -> _Side:
        if _is_predictions(one):
            assert given is not None
            return _of_predictions(read_numbers(one), given, loss, one if isinstance(one, str) else name)
        if one is None or isinstance(one, Settings):
            return _of_settings(one, source, threads, reading)
        return _of_model(as_model(one), source, threads, reading)

    of_a, of_b = side("a", a), side("b", b)
    if of_a[:2] != of_b[:2]:
        raise refuse("b", f"the loss {of_b.title}", f"{of_a.title}, as that of a")
    if names is None:
        first, second = (os.path.basename(one) if isinstance(one, str | os.PathLike) else "" for one in (a, b))
        names = (first or "A", second or "B") if first != second else ("A", "B")
    found = _compared(Comparison(of_a.kind, level), of_a.rows, of_b.rows, columns, names)
    if all(not _is_predictions(one) and not isinstance(one, Settings | None) for one in (a, b)):
        found.features = _features(as_model(a), as_model(b))
    return found


def _compared(comparison: Comparison, a: _Rows, b: _Rows, columns: Sequence[str], names: tuple[str, str]) -> Compared:
    _check_same(a, b)
    if not (numbers := np.flatnonzero(a.importance > 0)).size:  # others do not count
        raise refuse("source", "only rows of importance 0" if a.losses.size else "no rows", "rows with labels")
    a, b, curve = a.part(numbers), b.part(numbers), list[tuple[int, float, float]]()
    for start, end in pairwise((0, *MARKS[: np.searchsorted(MARKS, numbers.size)].tolist(), numbers.size)):
        some = slice(start, end)
        comparison.add(a.losses[some], b.losses[some], a.importance[some])
        curve.append((end, *comparison.interval()))
    moved = np.argsort(-np.abs(b.predictions - a.predictions), kind="stable")[:SHOWN]
    rows = zip(*(each[moved].tolist() for each in (numbers, a.predictions, b.predictions, a.labels)), strict=True)
    tables, most = dict[str, list[SliceDifference]](), comparison.largest_difference
    for column, values in zip(columns, a.values if len(a.values) else b.values, strict=False):
        words, means = Values(), MeanSequence(-most, most, comparison.level, MOST + 1)
        means.add(comparison.differences(a.losses, b.losses), words.codes(values), a.importance)
        tables[column] = _slices(words, means)
    return Compared(comparison, names, curve, tables, [RowChange(*one) for one in rows])


def _slices(values: Values, means: MeanSequence) -> list[SliceDifference]:
    """Return the intervals of the values with the most rows."""
    words, (low, high), rows = values.words, means.interval(), means.sums.rows
    order = sorted(np.flatnonzero(rows).tolist(), key=lambda code: (code == 0, -rows[code]))[: 2 * SHOWN]
    return [SliceDifference(words[k], int(rows[k]), float(low[k]), float(high[k])) for k in order]


def _check_same(a: _Rows, b: _Rows) -> None:
    """Raise unless both have the same rows."""
    size = min(a.losses.size, b.losses.size)
    for name, expected in (
        ("labels", "models of the same labels"),
        ("importance", "the same; name their column, as for the training"),
    ):
        differ = getattr(a, name)[:size] != getattr(b, name)[:size]
        if differ.any():
            raise refuse(name, f"different ones for a and b in row {int(np.argmax(differ))}", expected)
    if a.losses.size != b.losses.size:
        fewer, more = ("a", "b") if a.losses.size == size else ("b", "a")
        raise refuse(fewer, f"{size:,} rows", f"as many as {more}, which has more")


def _of_model(model: Model, source: Any, threads: int | None, reading: Mapping[str, Any]) -> _Side:
    """Return the rows with the losses of a model."""
    kind, scorer = _scorer(model.settings, model.learner, model.classes or ())
    problems = Problems(reading.get("on_error") or "raise")
    rows = _Rows.joined(scorer(*each) for each in labelled_blocks(model, source, threads, problems, reading))
    return _Side(kind, model.settings.title, rows)


def _of_settings(settings: Settings | None, source: Any, threads: int | None, reading: Mapping[str, Any]) -> _Side:
    """Return the same of a model that learns the rows, each after its prediction."""
    found: list[tuple[Kind, _Rows]] = []

    def keep(moment: Progress) -> None:
        kind, scorer = _scorer(moment.model.settings, moment.model, moment.classes)
        found.append((kind, scorer(moment.block, moment.margins)))

    keep.reads_model = False  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelOrderWarning)  # what is compared is how well the stream is followed
        trained = train(source, settings, threads=threads, progress=keep, **reading)
    return _Side(found[0][0], trained.settings.title, _Rows.joined(rows for _, rows in found))


def _scorer(settings: Settings, learner: Any, classes: Sequence[str]) -> tuple[Kind, Any]:
    """Return the kind of loss, and the function from a block and its margins to rows."""
    metrics, loss = metrics_for(settings, learner, classes), settings.loss_function
    link = getattr(metrics, "link", settings.link)
    probabilities = bool(getattr(link, "probabilities", False)) and not settings.signed
    kind: Kind = "log" if probabilities else "relative"

    def rows(block: Block, margins: Any) -> _Rows:
        y = block.labels
        losses = np.asarray(metrics.add(margins, y).losses, np.float64)
        if not probabilities and hasattr(loss, "saturated"):
            losses = np.maximum(losses - loss.saturated(y), 0.0)
        predictions = np.exp(-losses) if classes else np.asarray(settings.link(margins), np.float64)
        labels, importance = (each.astype(np.float64) for each in (y, block.importance))
        return _Rows(losses, predictions, labels, importance, _values(block))

    return kind, rows


def _values(block: Block) -> NDArray[Any]:
    """Return the values of each column of slices."""
    return np.zeros((0, len(block)), object) if block.slices is None else block.slices


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
    predictions: Floats, given: tuple[Floats, Floats, NDArray[Any]], loss: str | None, source: str
) -> _Side:
    """Return the same of predictions."""
    labels, importance, values = given
    if predictions.size != labels.size:
        got = f"{source}: got {counted(predictions.size, 'prediction')}"
        raise ValueError(f"{got}, expected one for each of {counted(labels.size, 'label')}")
    _check_finite(predictions, "row {} of predictions")
    _check_finite(labels, "row {} of labels")
    binary = bool(np.isin(labels, (-1, 0, 1)).all()) and predictions.size > 0
    probabilities = binary and predictions.min() >= 0 and predictions.max() <= 1
    if loss is None:
        loss = "logistic" if probabilities else "squared"
    if loss not in LOSSES:
        raise refuse("loss", loss, f"{', '.join(LOSSES)}, of predictions")
    kind, title, losses_of = LOSSES[loss]
    if kind == "log" and not probabilities:
        raise refuse("loss", loss, "squared or absolute: labels or predictions are no probabilities")
    shown = np.maximum(labels, 0.0) if binary else labels
    return _Side(kind, title, _Rows(losses_of(predictions, labels), predictions, shown, importance, values))


def _begins_with_number(path: str, alone: bool = False) -> bool:
    """Return whether a file is text that begins with a number, which may have to be alone in its line."""
    with suppress(OSError, ValueError, IndexError), open(path, encoding="utf-8") as file:
        line = file.readline(100)
        float(line if alone else line.split(maxsplit=1)[0])
        return True
    return False


def _is_predictions(given: Any) -> bool:
    """Return whether something is an array of predictions, or a file of them."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given).endswith((".npy", ".gz")) or _begins_with_number(os.fspath(given))
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
    try:
        numbers = np.loadtxt(path, usecols=0, comments=None, ndmin=1, encoding="utf-8")
    except ValueError as error:
        where, got = path, str(error)
        if found := re.search("string '(.*)' to float64 at row ([0-9]+)", got):
            where, got = f"row {int(found[2]) + 1} of {path}", found[1]
        raise refuse(where, got, "a prediction, as forel predict writes it") from None
    _check_finite(numbers, f"row {{}} of {path}", 1)
    return numbers


def _check_finite(numbers: Floats, name: str, first: int = 0) -> None:
    """Raise an error that names the first row whose number is not finite."""
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise refuse(name.format(row + first), float(numbers[row]), "a finite number")


def _labels(source: Any, reading: Mapping[str, Any]) -> tuple[Floats, Floats, NDArray[Any]]:
    """Return the labels and importances of a source, and its values of the columns of slices."""
    one = source[0] if isinstance(source, list | tuple) and len(source) == 1 else source
    if not reading.get("slices") and _is_labels(one):
        labels = read_numbers(one)
        return labels, np.ones(labels.size), np.zeros((0, labels.size), object)
    blocks = list(read(source, unlabelled=False, **reading))
    if not blocks:
        raise refuse("source", "no rows", "rows with labels")
    labels, importance = (
        np.concatenate([getattr(block, name) for block in blocks]).astype(np.float64)
        for name in ("labels", "importance")
    )
    return labels, importance, np.concatenate([_values(block) for block in blocks], axis=1)


def _is_labels(source: Any) -> bool:
    """Return whether a source is an array of numbers, or a file of one number in each line."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source).endswith(".npy") or _begins_with_number(os.fspath(source), alone=True)
    first = source[0] if isinstance(source, list) and source else None
    return getattr(source, "ndim", 0) == 1 or isinstance(first, int | float)


def _features(a: Model, b: Model) -> list[FeatureChange]:
    """Return the features whose additions to a margin changed most."""
    known = [
        {f"{one.name or f'slot {one.slot}'}{f', {one.label}' * bool(one.label)}": one.contribution for one in found}
        for model in (a, b)
        for found in ([] if isinstance(model.learner, KeyedModels) else model.inspect(200).weights,)
    ]
    changes = [FeatureChange(name, *(one.get(name, 0.0) for one in known)) for name in known[0] | known[1]]
    return sorted((one for one in changes if one.a != one.b), key=lambda one: -abs(one.b - one.a))[:SHOWN]

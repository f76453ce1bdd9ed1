"""Encoding of labels for losses: −1 and 1 become 0 and 1 for log-loss, 0 and 1 become −1 and 1 for hinge losses."""

import math
import os
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Malformed, Problems
from forel.data.features.kinds import SeenColumns
from forel.data.features.rows import drop_rows
from forel.learner.settings import Settings
from forel.losses import Interval
from forel.losses.links import Probability, Sign, SoftmaxLink
from forel.training.metrics import label_kind
from forel.training.passes import Passes
from forel.training.run import Transform
from forel.validation import refuse

__all__ = ["EncodeLabels", "LabelEncoder", "count_classes"]

SHOWN = 8  # columns in a message
FIRST = 10_000  # rows whose classes are counted, if their number is not given
MAX_ROUNDING = 1e-3  # error of labels in float32, as a fraction of their spread
EXPECTED = {
    "probability": "0 and 1 (or numbers between), or -1 and 1",
    "sign": "-1 and 1, or 0 and 1",
}
REMEDY = (
    "classes (--classes) has more than two, positive (--positive) names one of a column against all others, "
    "loss squared (--loss squared) predicts numbers"
)


class LabelEncoder:
    """Encodes the labels of one stream, whose negative class is −1 throughout or 0 throughout.

    Parameters
    ----------
    settings : settings with the loss that labels are encoded for
    problems : counts or raises labels that are missing or invalid
    classes, names : the number of several classes, and the names of those that were found so far; readers have numbered
        them. None and none for one margin
    negative : the label of the negative class, −1 or 0; None to infer it from the first label other than 1
    seen : columns of a source for which none of labels was named; None for other sources
    trained : whether the model has learned labels before, so that no option changes what they are

    >>> block = Block(np.array([0, 0, 0]), np.int32([]), np.float32([]), np.float32([-1, 1]))
    >>> LabelEncoder(Settings("logistic"), Problems()).encode(block)[0]
    array([0., 1.], dtype=float32)
    >>> LabelEncoder(Settings("softmax"), Problems("skip"), 2, ["a", "b"]).encode(block)
    (array([-1.,  1.], dtype=float32), array([False,  True]))
    """

    def __init__(
        self,
        settings: Settings,
        problems: Problems,
        classes: int | None = None,
        names: Sequence[str] = (),
        negative: float | None = None,
        seen: SeenColumns | None = None,
        trained: bool = True,
    ) -> None:
        self.trained = trained
        self.kind = "class" if classes is not None else label_kind(settings)
        whole = Interval(0, classes - 1) if classes is not None else settings.labels
        self.domain = whole if isinstance(whole, Interval) else Interval()
        self.problems, self.names, self.negative, self.seen = problems, names, negative, seen

    def encode(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Return the encoded labels of a block, and the mask of valid ones; None if all are valid."""
        labels = block.labels
        if self.kind in ("class", "number"):
            valid = (labels >= self.domain.low) & (labels <= self.domain.high)  # False for NaN
            return labels, self._validated(block, valid)
        if self.negative is None and labels.size:
            others = labels[(labels >= -1) & (labels < 1)]
            self.negative = None if not others.size else -1.0 if others[0] == -1 else 0.0
        if self.negative == -1.0:
            valid = np.abs(labels) == 1
        else:
            valid = (labels >= 0) & (labels <= 1) if self.kind == "probability" else (labels == 0) | (labels == 1)
        mask = self._validated(block, valid)
        target = 0.0 if self.kind == "probability" else -1.0
        if self.negative is None or self.negative == target:
            return labels, mask
        # Branch-free for valid labels: −1 becomes 0, or 0 becomes −1.
        return np.maximum(labels, np.float32(0)) if target == 0 else np.float32(2) * labels - np.float32(1), mask

    def __call__(self, block: Block) -> Block:
        """Return the rows of a block with valid labels, which are encoded."""
        labels, valid = self.encode(block)
        encoded = replace(block, labels=labels)
        return encoded if valid is None else drop_rows(encoded, np.flatnonzero(~valid))

    def _validated(self, block: Block, valid: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Report invalid labels; return the mask of valid ones, or None if all are valid."""
        if valid.all():
            return None
        columns = _columns(block, self.seen)
        for row in np.flatnonzero(~valid).tolist():
            label = block.labels[row]
            missing = bool(np.isnan(label))
            if missing:
                named = f"label (--label) names the column of labels{columns}, and on_error='skip' leaves out rows"
                got, expected = "no label", f"{self._expected(missing)}; {named} without one"
            else:
                shown = f"the class {self.names[int(label)]!r}" if self.kind == "class" else f"the label {label:g}"
                got, expected = shown, self._expected(missing)
            if block.lines is None:
                got += f" in example {row + 1} of the block that begins there"
            line = block.line if block.lines is None else int(block.lines[row])
            self.problems.record(Malformed(block.file, line, None, got, expected))
        return valid

    def _expected(self, missing: bool) -> str:
        """Return the valid labels, and what to do about others."""
        if self.kind == "class":
            count = f"one of the {self.domain.high + 1:g} classes before"
            remedy = "" if self.trained else "; classes (--classes) has their number, or all names"
            return "a class" if missing else f"{count}{remedy}"
        if self.kind == "number":
            return self.domain.expected
        as_before = "" if self.negative is None or missing else " as before"
        expected = ("-1 or 1" if self.negative == -1.0 else EXPECTED[self.kind]) + as_before
        remedy = ", which the model was trained with" if self.trained else f"; {REMEDY}"
        return expected if missing else f"{expected}{remedy}"


def rounding_warning(labels: NDArray[Any]) -> str | None:
    """Return a warning if float32, which a model learns, changes labels by more than a thousandth of their spread.

    >>> rounding_warning(np.tile([10000009.6, 10000000.4], 50))[:72]
    "labels: rounding them to the model's float32 changes them by 0.4 on aver"
    """
    error = math.sqrt(np.mean((labels - labels.astype(np.float32)) ** 2)) if labels.size else 0.0
    if not error or not error > MAX_ROUNDING * (spread := float(labels.std())) > 0:
        return None
    return (
        f"labels: rounding them to the model's float32 changes them by {error:.2g} on average, which is "
        f"{100 * error / spread:.2g} % of their spread of {spread:.2g}; subtract a constant, such as {labels[0]:.9g}"
    )


class EncodeLabels(Transform):
    """Encodes the labels of a run, and leaves out rows whose labels are invalid.

    Parameters
    ----------
    settings, classes : of the model
    passes : the source, which counts problems
    trained : whether the model has learned labels before
    """

    name = "labels"

    def __init__(self, settings: Settings, classes: int | None, passes: Passes, trained: bool = False) -> None:
        self._settings, self._classes, self._passes, self._trained = settings, classes, passes, trained
        self._negative: float | None = None
        self._encoder: LabelEncoder | None = None
        self._begun = False

    def begin(self, pass_number: int) -> None:
        """Start with the label of the negative class that the pass has found so far."""
        seen = self._passes.kinds.seen if self._passes.options.label is None else None
        names, problems = self._passes.classes.names, self._passes.sink(pass_number)
        given = self._classes, names, self._negative, seen, self._trained
        self._encoder = LabelEncoder(self._settings, problems, *given)

    def end(self, pass_number: int, last: bool) -> None:
        """Forget the label of the negative class."""
        self._negative = None

    def __call__(self, block: Block) -> Block:
        """Return a block with encoded labels, without rows of invalid ones; warn if labels of the first lose digits."""
        assert self._encoder is not None
        encoded = self._encoder(block)
        self._negative = self._encoder.negative
        first, self._begun = not self._begun, True
        if first and self._encoder.kind == "number" and (message := rounding_warning(encoded.labels)) is not None:
            warnings.warn(message, UserWarning, stacklevel=2)
        return encoded

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the label of the negative class."""
        return [self._negative], {}

    def unpack(self, known: Any, arrays: Any) -> None:
        """Continue with the label of the negative class."""
        (self._negative,) = known


def _columns(block: Block, seen: SeenColumns | None) -> str:
    """Return the columns of a table of which none is named as that of labels, for an error."""
    if seen is None or not seen.header or not np.isnan(block.labels).all():
        return ""
    names = sorted(seen.names)
    more = ", ..." if len(names) > SHOWN else ""
    peek = f" (forel peek {shlex.quote(block.file)} suggests one)" if os.path.isfile(block.file) else ""
    return f", one of {', '.join(names[:SHOWN])}{more}{peek}"


def count_classes(passes: Passes, settings: Settings, blocks: Iterator[Block]) -> tuple[int | None, Iterator[Block]]:
    """Return the number of classes to learn, None for one margin; and all blocks, of which the first may be read.

    Parameters
    ----------
    passes : the source, with the option ``classes`` and those that reading has found
    settings : with the loss
    blocks : of the first pass
    """
    classes = passes.classes
    given, first_blocks, rows = passes.options.classes, list[Block](), 0
    count = given if isinstance(given, int) else len(given) if isinstance(given, tuple) else None
    if count is None:
        # After the first block it is known whether there are classes.
        while (classes.names or not rows) and rows < FIRST and (more := next(blocks, None)) is not None:
            first_blocks.append(more)
            rows += len(more)
        if classes.names:
            # Numbers are in the order of first appearance, so that the largest one counts the classes before it.
            labels = np.concatenate([block.labels for block in first_blocks])[:FIRST]
            count = 1 + int(np.nanmax(labels, initial=0))
    if count is not None and not isinstance(settings.loss_function.link, Probability | Sign | SoftmaxLink):
        expected = "logistic, hinge, squared_hinge or softmax, because labels are classes"
        raise refuse("loss", settings.loss_function.name, expected)
    if count is not None and count < 2:
        expected = "at least two; classes (--classes) has their number, or all names"
        raise refuse("label", f"one class in the first {FIRST:,} rows", expected)
    return count, chain(first_blocks, blocks)

"""Labels of files as losses expect them: −1 and 1 become 0 and 1 for log-loss, 0 and 1 become −1 and 1 for hinges."""

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Malformed, Problems
from forel.learner.settings import Settings
from forel.losses import Interval
from forel.training.metrics import Metrics
from forel.validation import refuse

__all__ = ["LabelEncoder", "metrics_for"]

EXPECTED = {
    "probability": "0 and 1 (or numbers between), or -1 and 1",
    "sign": "-1 and 1, or 0 and 1",
}


def label_kind(settings: Settings) -> str:
    """Return the kind of labels of a loss: "probability", "sign" or "number".

    >>> label_kind(Settings("hinge"))
    'sign'
    """
    loss = settings.loss_function
    if loss.joint:
        expected = "a loss of one margin; forel.learner.linear.Linear learns several classes from blocks"
        raise refuse("settings", loss.name, expected)
    return "sign" if settings.signed else "probability" if loss.link.probabilities else "number"


def metrics_for(settings: Settings) -> Metrics:
    """Return empty metrics for predictions of a model with these settings.

    >>> metrics_for(Settings("hinge")).kind
    'sign'
    """
    return Metrics(settings.loss_function, label_kind(settings))


class LabelEncoder:
    """Encodes the labels of one stream, whose negative class is −1 throughout or 0 throughout.

    Parameters
    ----------
    settings : settings with the loss that labels are encoded for
    problems : counts or raises labels that are invalid
    negative : the label of the negative class, −1 or 0; None to infer it from the first label other than 1

    >>> block = Block(np.array([0, 0, 0]), np.int32([]), np.float32([]), np.float32([-1, 1]))
    >>> LabelEncoder(Settings("logistic"), Problems()).encode(block)[0]
    array([0., 1.], dtype=float32)
    """

    def __init__(self, settings: Settings, problems: Problems, negative: float | None = None) -> None:
        self.kind = label_kind(settings)
        self.domain = settings.labels if isinstance(settings.labels, Interval) else Interval()
        self.problems = problems
        self.negative = negative

    def encode(self, block: Block) -> tuple[NDArray[np.float32], NDArray[np.bool_] | None]:
        """Return the encoded labels of a block, and the mask of valid ones; None if all are valid."""
        labels = block.labels
        if self.kind == "number":
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

    def _validated(self, block: Block, valid: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Report invalid labels; return the mask of valid ones, or None if all are valid."""
        if valid.all():
            return None
        expected = self._expected()
        for row in np.flatnonzero(~valid):
            label = block.labels[row]
            missing = bool(np.isnan(label))
            got = "no label" if missing else f"the label {label:g}"
            hint = "; label (--label) names the column of labels" if missing else self._hint
            if block.lines is None:
                got += f" in example {row + 1} from there on"
            line = block.line if block.lines is None else int(block.lines[row])
            self.problems.record(Malformed(block.file, line, None, got, expected + hint))
        return valid

    @property
    def _hint(self) -> str:
        return "" if self.kind == "number" else "; positive (--positive) names the label of the positive class"

    def _expected(self) -> str:
        if self.kind == "number":
            return self.domain.expected
        as_before = "" if self.negative is None else " as before"
        return ("-1 or 1" if self.negative == -1.0 else EXPECTED[self.kind]) + as_before

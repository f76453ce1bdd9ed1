"""Labels of files as losses take them: −1 and 1 become 0 and 1 for log-loss, 0 and 1 become −1 and 1 for hinges."""

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Malformed, Problems
from forel.learner.settings import Settings
from forel.losses import Interval
from forel.training.progressive import Progressive
from forel.validation import refuse

__all__ = ["Targets", "measure_of"]

EXPECTED = {
    "probability": "0 and 1 (or numbers between), or -1 and 1",
    "sign": "-1 and 1, or 0 and 1",
    "number": "a number",
}


def measure_of(settings: Settings) -> Progressive:
    """Return what measures predictions made with some settings.

    >>> measure_of(Settings("hinge")).kind
    'sign'
    """
    loss = settings.loss_function
    if loss.joint:
        raise refuse(
            "settings",
            loss.name,
            "a loss of one margin; forel.learner.linear.Linear learns several classes from blocks",
        )
    kind = "sign" if settings.signed else "probability" if loss.link.probabilities else "number"
    return Progressive(loss, kind)


class Targets:
    """The labels of one stream, which write the negative class either as −1 or as 0 throughout.

    Parameters
    ----------
    settings : whose loss says which labels make sense
    problems : what to do about a label that does not
    negative : how the negative class is written, where that is known

    >>> block = Block(np.array([0, 0, 0]), np.int32([]), np.float32([]), np.float32([-1, 1]))
    >>> Targets(Settings("logistic"), Problems()).of(block)[0]
    array([0., 1.], dtype=float32)
    """

    def __init__(self, settings: Settings, problems: Problems, negative: float | None = None) -> None:
        self.kind = measure_of(settings).kind
        domain = settings.labels
        self.domain = domain if isinstance(domain, Interval) else Interval()
        self.problems = problems
        self.negative = negative

    def of(self, block: Block) -> tuple[NDArray[np.float32], NDArray[np.bool_] | None]:
        """Return a block's labels as the loss takes them, and which rows have one that fits; None for all."""
        labels = block.labels
        if self.kind == "number":
            good = (labels >= self.domain.low) & (labels <= self.domain.high)  # not for NaN
            return (labels, None) if good.all() else (labels, self._meet(block, good, self._expected()))
        if self.negative is None and labels.size:
            # The first label that is not 1 says how the negative class is written.
            others = labels[(labels >= -1) & (labels < 1)]
            self.negative = None if not others.size else -1.0 if others[0] == -1 else 0.0
        if self.negative == -1.0:
            good = np.abs(labels) == 1
        else:
            good = (labels >= 0) & (labels <= 1) if self.kind == "probability" else (labels == 0) | (labels == 1)
        kept = None if good.all() else self._meet(block, good, self._expected())
        wanted = 0.0 if self.kind == "probability" else -1.0
        if self.negative is None or self.negative == wanted:
            return labels, kept
        # Of labels that fit: −1 becomes 0, or 0 becomes −1, without a look at each.
        return np.maximum(labels, np.float32(0)) if wanted == 0 else np.float32(2) * labels - np.float32(1), kept

    def _expected(self) -> str:
        if self.kind == "number":
            return self.domain.expected
        written = {None: "", -1.0: " as before", 0.0: " as before"}[self.negative]
        return ("-1 or 1" if self.negative == -1.0 else EXPECTED[self.kind]) + written

    def _meet(self, block: Block, good: NDArray[np.bool_], expected: str) -> NDArray[np.bool_]:
        for row in np.flatnonzero(~good):
            label = block.labels[row]
            missing = bool(np.isnan(label))
            got = "no label" if missing else f"the label {label:g}"
            hint = "; where there are columns, label says which one holds them" if missing else ""
            if block.lines is None:
                got += f" in example {row + 1} from there on"
            line = block.line if block.lines is None else int(block.lines[row])
            self.problems.meet(Malformed(block.file, line, None, got, expected + hint))
        return good

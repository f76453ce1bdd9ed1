r"""Comparison of two models by their losses on the same rows, valid at whatever row one looks.

Two statements, for any stream, without independence or stationarity:

1. of the average over rows, by importance, of $E[d_t|past]$, with $d_t$ the loss of B minus that of A, a confidence
   sequence (:mod:`forel.evidence.means`). Importances must be known before labels. For log-loss, d is the difference of
   losses of probabilities within [0.01, 0.99]. For other losses it is the difference divided by the sum, which needs no
   range of labels. Sums of losses may point the other way, as rows of large losses dominate them: sentences say so;
2. of log-loss, if labels had B's probabilities, the total loss of B would ever be log(1/α) larger than that of A with a
   probability of at most α: the likelihood ratio is a martingale then (Ville). It needs no bound on losses.
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.evidence.means import COLUMNS, MeanSequence, finite_rows
from forel.markup import counted, number_text
from forel.validation import refuse

__all__ = ["Comparison", "Kind", "least_and_largest"]

Kind = Literal["log", "relative"]
EPSILON = 0.01  # least probability of labels in comparisons of log-loss
LEAST, LARGEST = -math.log1p(-EPSILON), -math.log(EPSILON)
INFINITE = 1e9  # nats, in place of the loss of a label whose probability was 0
DIFFERENCES = {
    "log": "log-loss of b - log-loss of a, of probabilities within 0.01 and 0.99",
    "relative": "(loss of b - loss of a) / (loss of a + loss of b) of each row, averaged by importance",
}
MEAN, DECIDED, RATIO = slice(COLUMNS), slice(COLUMNS, COLUMNS + 2), COLUMNS + 2
REFUTED, TOTALS = slice(COLUMNS + 3, COLUMNS + 5), slice(COLUMNS + 5, None)


def least_and_largest(low: float, high: float, unit: float = 1.0) -> tuple[str, str]:
    """Return two numbers as text, the first rounded down and the second up, with equally many digits.

    >>> least_and_largest(0.0705, 0.13001), least_and_largest(0.0000123, 0.01)
    (('0.070', '0.131'), ('0.000012', '0.010000'))
    """
    low, high = low * unit, high * unit
    smallest = min((abs(v) for v in (low, high) if v), default=1.0)
    digits = min(max(1 - math.floor(math.log10(smallest)), 3 if unit == 1 else 1), 12)
    scale = 10.0**digits
    return f"{math.floor(low * scale) / scale:.{digits}f}", f"{math.ceil(high * scale) / scale:.{digits}f}"


class Comparison:
    """Which of two models A and B has the smaller losses.

    Parameters
    ----------
    kind : "log" for log-loss, "relative" for other losses, which are at least 0
    level : the probability of a wrong statement, at whatever rows one looks

    >>> import numpy as np
    >>> labels = np.arange(2000) % 10 < 3
    >>> loss = lambda p: -np.log(np.where(labels, p, 1 - p))
    >>> compared = Comparison()
    >>> compared.add(loss(0.3), loss(0.6))
    >>> print(compared.sentence())
    A is better than B by 0.105 to 0.263 per row in log-loss (probabilities within 0.01 and 0.99), at level 5 %, no
    matter when you looked; decided after 490 rows. The probabilities of B are refuted after 19 rows
    """

    def __init__(self, kind: Kind = "log", level: float = 0.05) -> None:
        if kind not in ("log", "relative"):
            raise refuse("kind", kind, "log or relative")
        self.kind, self.level = kind, level
        self.largest_difference = most = LARGEST - LEAST if kind == "log" else 1.0
        self._means = MeanSequence(-most, most, level)
        # Sums of d; the first row that decided, and for which model, 1 or −1; Σ (loss of B − loss of A); the rows at
        # which the probabilities of A and of B were refuted; Σ wa and Σ wb of the losses as they are.
        self.state = np.zeros(COLUMNS + 7)
        self._means.state = self.state[None, MEAN]

    def add(self, losses_a: ArrayLike, losses_b: ArrayLike, importance: ArrayLike | None = None) -> None:
        """Add the losses of A and B of each row, and its importance; log-losses of probability 0 may be infinite."""
        a, b = (np.ascontiguousarray(each, np.float64) for each in (losses_a, losses_b))
        if a.ndim != 1 or a.shape != b.shape:
            raise refuse("losses", f"shapes {a.shape} and {b.shape}", "one loss of each model for each row")
        for name, each in (("losses_a", a), ("losses_b", b)):
            if not (each >= 0).all():
                row = int(np.argmin(each >= 0))
                raise refuse(f"row {row} of {name}", float(each[row]), "a loss of at least 0")
        w = np.ones(a.size) if importance is None else finite_rows("importance", importance, a.size)
        a, b, w = a[w != 0], b[w != 0], w[w != 0]
        totals = np.column_stack([self.state[TOTALS], (w * a, w * b)])
        self.state[TOTALS] = np.cumsum(totals, axis=1)[:, -1]  # in order, whatever the blocks
        if self.kind == "log":
            self._follow_ratio(np.minimum(b, INFINITE) - np.minimum(a, INFINITE))
        for sums in self._means.follow(self.differences(a, b), weights=w):
            decided = self.state[DECIDED]
            if not decided[0] and (found := self._means.proves(np.abs(sums.total), sums)).any():
                first = int(np.argmax(found))
                decided[:] = sums.rows[first], np.sign(sums.total[first])

    def differences(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is compared: bounded differences of the losses of rows."""
        if self.kind == "log":
            return np.asarray(np.clip(b, LEAST, LARGEST) - np.clip(a, LEAST, LARGEST))
        largest = np.maximum(a, b)
        part = [np.divide(x, largest, out=np.zeros(x.size), where=largest > 0) for x in (a, b)]
        relative = np.divide(part[1] - part[0], part[0] + part[1], out=np.zeros(a.size), where=largest > 0)
        return np.asarray(relative)

    def _follow_ratio(self, difference: NDArray[np.float64]) -> None:
        ratio = np.cumsum(np.append(self.state[RATIO], difference))
        refuted, needed = self.state[REFUTED], math.log(1 / self.level)
        for k, reached in enumerate((ratio[1:] <= -needed, ratio[1:] >= needed)):
            if not refuted[k] and reached.any():
                refuted[k] = self.rows + 1 + int(np.argmax(reached))
        self.state[RATIO] = ratio[-1]

    @property
    def rows(self) -> int:
        """The number of rows of positive importance."""
        return int(self.state[0])

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval of the average of $E[d_t|past]$: above 0, A is better."""
        low, high = self._means.interval()
        return float(low[0]), float(high[0])

    @property
    def better(self) -> Literal["A", "B"] | None:
        """The model that is better on these rows; None if neither is shown to be."""
        low, high = self.interval()
        return "A" if low > 0 else "B" if high < 0 else None

    @property
    def decided_after(self) -> int | None:
        """The first row after which one model was shown to be better; None if none was."""
        return int(self.state[DECIDED][0]) or None

    @property
    def refuted_after(self) -> tuple[int | None, int | None]:
        """The first rows after which the probabilities of A, and of B, were refuted; None for those that were not."""
        of_a, of_b = self.state[REFUTED]
        return int(of_a) or None, int(of_b) or None

    @property
    def losses(self) -> tuple[float, float]:
        """The average losses of A and of B, per unit of importance, without bounds."""
        of_a, of_b = (self.state[TOTALS] / (self._means.sums.weight[0] or math.nan)).tolist()
        return of_a, of_b

    @property
    def smaller_loss(self) -> Literal["A", "B"] | None:
        """The model of the smaller average loss, which need not be the better one; None if they are equal."""
        of_a, of_b = self.losses
        return "A" if of_a < of_b else "B" if of_b < of_a else None

    def log_e_values(self) -> tuple[float, float]:
        """Return the logarithms of the e-values for A, and for B, being better: of evidence against no difference."""
        sums = self._means.sums
        of_a, of_b = (float(self._means.log_evidence(sign * sums.total, sums)[0]) for sign in (1, -1))
        return of_a, of_b

    def sentence(self, a: str = "A", b: str = "B") -> str:
        """Return what is shown; numbers are rounded to the safe side."""
        low, high = self.interval()
        over, per = ("by importance", "unit of importance") if self._means.weighted else ("over rows", "row")
        unit, of = 100.0, f" % of the sum of their losses on a row, averaged {over}"
        if self.kind == "log":
            unit, of = 1.0, f" per {per} in log-loss (probabilities within 0.01 and 0.99)"
        always = f"{of}, at level {100 * self.level:g} %, no matter when you looked"
        first = self.decided_after
        if self.better is None:
            most = [least_and_largest(0.0, max(end, 0.0), unit)[1] for end in (high, -low)]
            said = f"after {counted(self.rows, 'row')}, neither is shown to be better: {a} is better than {b} by at "
            said += f"most {most[0]}, and {b} than {a} by at most {most[1]}{always}"
            if first is not None:
                said += f"; {a if self.state[DECIDED][1] > 0 else b} was better on the first {counted(first, 'row')}"
        else:
            names, ends = ((a, b), (low, high)) if low > 0 else ((b, a), (-high, -low))
            least, largest = least_and_largest(*ends, unit)
            said = f"{names[0]} is better than {names[1]} by {least} to {largest}{always}"
            said += f"; decided after {counted(first or self.rows, 'row')}"
            if self.better != self.smaller_loss is not None:
                smaller, larger = map(number_text, sorted(self.losses))
                why = "without these limits" if self.kind == "log" else "which rows of large losses dominate"
                said += f"; but {names[1]} has the smaller average loss, {smaller} against {larger}, {why}"
        refuted = [
            f"The probabilities of {name} are refuted after {counted(row, 'row')}"
            for name, row in zip((a, b), self.refuted_after, strict=True)
            if row is not None
        ]
        return ". ".join([said, *refuted])

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        low, high = self.interval()
        (refuted_a, refuted_b), (for_a, for_b) = self.refuted_after, self.log_e_values()
        return {
            "kind": self.kind, "difference": DIFFERENCES[self.kind], "level": self.level, "rows": self.rows,
            "better": self.better, "low": low, "high": high,
            "decided_after": self.decided_after, "loss_a": self.losses[0], "loss_b": self.losses[1],
            "smaller_average_loss": self.smaller_loss, "log_e_value_a": for_a, "log_e_value_b": for_b,
            "a_refuted_after": refuted_a, "b_refuted_after": refuted_b,
        }  # fmt: skip

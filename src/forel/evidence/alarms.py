r"""Alarms when losses, calibration or new features change, with a stated rate of false alarms.

For a stream of numbers in [0, 1], let $m_t$ be the mean of row t given the past. Nothing changed for the worse if no
$m_t$ is above the average of those before, for which a confidence sequence (:mod:`forel.evidence.means`) has an upper
bound r. From every row j on, the product of $1 + \kappa(x_t/r_j - 1)$, $0 < \kappa < 1$, is then at most 1 in
expectation: it is the wealth of a bet on an increase. The sum of these products over all j is an *e-detector* (Shin,
Ramdas and Rinaldo 2024): with an alarm, and a restart, whenever it reaches c, at most one alarm in c rows is expected.
Here it is the largest product instead of the sum, which is smaller, averaged over several κ. References are above the
average in all but a fraction δ of the runs between alarms, so that the expected number A of false alarms in N rows is
at most N/c + δ(A + 1), which is 1 for c = N/0.9 and δ = 0.05. For d streams, c is multiplied and δ divided by d.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.evidence.means import RATES, costs, finite_rows, rates
from forel.jit import compiled_function
from forel.markup import counted
from forel.validation import refuse, whole

__all__ = ["Alarm", "Alarms", "NewFeatures"]

STREAMS = "loss", "labels above predictions", "labels below predictions", "new features"
RISE = 1.1  # of losses, and of new features, that is not a change
LIMITS = np.array([[RISE, 0.0], [1.0, 0.5], [1.0, 0.5], [RISE, 0.0]])  # factor, and least reference
LARGEST = -math.log(0.01)  # log-losses are clipped
WRONG = 0.05  # δ
WARM = 100  # rows whose mean loss is the unit of losses of numbers
BETS = np.geomspace(0.01, 0.9, 6)
MOST_SLOTS = 1 << 26  # of features for which a byte each is kept
HEAD, FOUND = 4 + len(STREAMS) * (5 + 3 * BETS.size), 16


@dataclass(frozen=True)
class Alarm:
    """A change for the worse: the row after which it was found, the row that it most likely followed, and of what.

    >>> print(Alarm(5210, 5000, "loss"))
    loss increased, most likely after row 5,000 (found after row 5,210)
    """

    row: int
    since: int
    what: str

    def __str__(self) -> str:
        verb = {"loss": "loss increased", "new features": "features that no row before had became more frequent"}
        said = verb.get(self.what, self.what)
        return f"{said}, most likely after row {self.since:,} (found after row {self.row:,})"


class Alarms:
    """Detectors of change in a stream of rows.

    Parameters
    ----------
    every : at most one false alarm is expected in this many rows
    numbers : whether losses are those of predicted numbers, with any unit, and not log-losses

    >>> import numpy as np
    >>> alarms = Alarms(100_000)
    >>> loss = np.random.default_rng(0).uniform(0, 1, 6000) + (np.arange(6000) >= 5000)
    >>> [(alarm.what, abs(alarm.since - 5000) < 50, alarm.row < 5200) for alarm in alarms.add(loss)]
    [('loss', True, True)]
    >>> alarms.sentence()
    '1 alarm in 6,000 rows: loss increased, most likely after row ...; at most 1 false alarm in 100,000 rows is ...'
    """

    def __init__(self, every: int = 1_000_000, numbers: bool = False) -> None:
        self.every, self.numbers = whole("every", every, low=1), numbers
        self.state = np.zeros(HEAD + 3 * FOUND)

    def add(
        self, losses: ArrayLike, errors: ArrayLike | None = None, unseen: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> list["Alarm"]:  # fmt: skip
        """Add rows, and return their alarms.

        Parameters
        ----------
        losses : the loss of each row, at least 0
        errors : label minus predicted probability of each row, from −1 to 1
        unseen : the share of its features that no row before had
        numbers : of the rows, from 1 on, if others lie between them
        """
        loss = np.ascontiguousarray(losses, np.float64)
        if loss.ndim != 1 or not (loss >= 0).all():
            raise refuse("losses", "others", "one loss of at least 0 for each row")
        values = np.full((loss.size, len(STREAMS)), -1.0)
        values[:, 0] = np.minimum(loss / LARGEST, 1.0)
        if errors is not None:
            error = np.clip(finite_rows("errors", errors, loss.size), -1, 1)
            values[:, 1], values[:, 2] = (1 + error) / 2, (1 - error) / 2
        if unseen is not None:
            values[:, 3] = np.clip(finite_rows("unseen", unseen, loss.size), 0, 1)
        known = self.rows + 1 + np.arange(loss.size) if numbers is None else numbers
        streams, before = len(STREAMS), self.count
        compiled_function("forel.evidence.kernels", "watch")(
            values, np.minimum(loss, 1e300), np.asarray(known, np.float64), BETS, rates(1.0), costs(1.0),
            math.log(RATES.size * streams / WRONG), streams * self.every / (1 - 2 * WRONG), LIMITS,
            WARM if self.numbers else 0, self.state[:HEAD], self._found,
        )  # fmt: skip
        return self.found[-new:] if (new := min(self.count - before, FOUND)) else []

    @property
    def _found(self) -> NDArray[np.float64]:
        return self.state[HEAD:].reshape(FOUND, 3)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.state[0])

    @property
    def count(self) -> int:
        """The number of alarms."""
        return int(self.state[3])

    @property
    def found(self) -> list[Alarm]:
        """The last alarms, at most 16, in order."""
        first = max(self.count - FOUND, 0)
        rows = (self._found[k % FOUND].tolist() for k in range(first, self.count))
        return [Alarm(int(row), int(since), STREAMS[int(stream)]) for row, since, stream in rows]

    def sentence(self) -> str | None:
        """Return the first and last alarms in a sentence with the rate of false ones; None without alarms."""
        if not self.count:
            return None
        last = str(self.found[-1])
        said = f"{counted(self.count, 'alarm')} in {counted(self.rows, 'row')}: {'the last: ' * (self.count > 1)}{last}"
        return f"{said}; at most 1 false alarm in {counted(self.every, 'row')} is expected"


class NewFeatures:
    """The share of the features of each row that no row before had.

    Parameters
    ----------
    slots : their number; of more than 2^26, nothing is known

    >>> new = NewFeatures(8)
    >>> new.add(np.array([0, 2, 4]), np.array([3, 5, 3, 6]))
    array([1. , 0.5])
    """

    def __init__(self, slots: int) -> None:
        self.seen = np.zeros(slots if slots <= MOST_SLOTS else 0, np.bool_)

    def add(self, indptr: NDArray[np.int64], indices: NDArray[np.integer]) -> NDArray[np.float64] | None:
        """Add rows, and return the share of each; None if nothing is known."""
        if not self.seen.size:
            return None
        new = ~self.seen[indices]
        places = np.flatnonzero(new)
        _, first = np.unique(indices[places], return_index=True)
        new[:] = False
        new[places[first]] = True
        self.seen[indices] = True
        counts = np.concatenate(([0], np.cumsum(new)))[indptr]
        return np.asarray((counts[1:] - counts[:-1]) / np.maximum(np.diff(indptr), 1))

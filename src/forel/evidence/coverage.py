r"""Intervals around predicted numbers that cover a given fraction of the labels of every stream.

Let $s_t = |y_t - \hat y_t|$, $S_t = \max_{i \le t} s_i$, and let row t be missed if $s_t > b_t + q_t$, where $b_t$ in
$[0, S_{t-1}]$ is any width chosen from the rows before, and $q_{t+1} = q_t + \eta_t(miss_t - \alpha)$, $q_1 = 0$ and
$\eta_t = cS_t$. This is online gradient descent on the pinball loss, with steps of the scale of the data.

*Theorem.* From the first $s_1 > 0$ on, for any labels and any predictions,
$|\sum_t(miss_t - \alpha)| \le (1/c + \max(\alpha, 1 - \alpha))J$ with
$J = 1 + \sum_{t \ge 2}(1 - S_{t-1}/S_t) \le 1 + \log(S_T/S_1)$.

*Proof.* With $a = \max(\alpha, 1 - \alpha)$, $|q_{t+1}| \le (1 + ca)S_t$: q increases only after a miss, where
$q_t < s_t - b_t \le S_t$, and decreases only after a covered row, where $q_t \ge s_t - b_t \ge -S_{t-1}$. As
$miss_t - \alpha = (q_{t+1} - q_t)/\eta_t$, the sum is $q_{T+1}/\eta_T + \sum_{t \ge 2} q_t(1/\eta_{t-1} - 1/\eta_t)$,
whose terms are at most $(1/c + a)$ and $(1/c + a)(1 - S_{t-1}/S_t)$. ∎

Here $b_t$ is a mixture by AdaHedge, on pinball losses, of quantiles that are followed with several rates.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.evidence.means import finite_rows
from forel.jit import compiled_function
from forel.markup import counted
from forel.validation import refuse

__all__ = ["Coverage"]

RATES = np.array([0.001, 0.003, 0.01, 0.03, 0.1])
CORRECTION = 0.02  # c
HEAD = 6


class Coverage:
    """Intervals of predicted numbers, each a prediction plus or minus a half width.

    Parameters
    ----------
    level : the fraction of labels to cover

    >>> import numpy as np
    >>> labels = np.random.default_rng(0).normal(size=20_000)
    >>> coverage = Coverage(0.9)
    >>> widths = coverage.add(np.zeros(20_000), labels)
    >>> bool(1.5 < coverage.half_width < 1.8), coverage.sentence()
    (True, 'intervals of level 90 %, adapted after each row, covered 89.98 % of 20,000 labels; on any with ... ± 0.9 %')
    """

    def __init__(self, level: float = 0.9) -> None:
        if not 0 < level < 1:
            raise refuse("interval", level, "a level between 0 and 1, such as 0.9")
        self.level = float(level)
        # Rows from the first error on, those covered, S, J, q, the mixability gap; quantiles and losses of the rates.
        self.state = np.zeros(HEAD + 2 * RATES.size)

    def add(self, predictions: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
        """Add rows, and return the half width of each, which is from the rows before; below 0 an interval is empty."""
        mean = finite_rows("predictions", predictions)
        scores = np.abs(finite_rows("labels", labels, mean.size) - mean)
        widths = np.empty(scores.size)
        arguments = scores, 1 - self.level, RATES, CORRECTION, self.state, widths
        compiled_function("forel.evidence.kernels", "cover")(*arguments)
        return widths

    @property
    def half_width(self) -> float:
        """The half width of the next row."""
        losses, largest, gap = self.state[HEAD + RATES.size :], self.state[2], self.state[5]
        excess = losses - losses.min()
        weights = np.exp(-excess * np.log(RATES.size) / gap) if gap > 0 else (excess == 0).astype(float)
        base = float(np.average(self.state[HEAD : HEAD + RATES.size], weights=weights))
        return float(max(min(max(base, 0.0), largest) + self.state[4], 0.0))

    @property
    def rows(self) -> int:
        """The number of rows from the first error on."""
        return int(self.state[0])

    @property
    def covered(self) -> int:
        """How many of these rows were in their intervals."""
        return int(self.state[1])

    @property
    def deviation_bound(self) -> float:
        """A bound on how far ``covered`` is from the level times the rows, on any stream with these jumps of errors."""
        return float((1 / CORRECTION + max(self.level, 1 - self.level)) * self.state[3])

    def segment(self) -> "Coverage":
        """Return intervals that continue with these widths, and count the rows from here on alone.

        For rows that follow others, the sum of the theorem has a further term $q_1/\\eta_0$ of the size of the others.
        """
        found = Coverage(self.level)
        found.state[:] = self.state
        found.state[:2] = 0
        found.state[3] = 2.0 * (self.state[2] > 0)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        names = "level", "half_width", "rows", "covered", "deviation_bound"
        return {name: getattr(self, name) for name in names}

    def sentence(self) -> str:
        """Return how many labels were covered, and what is proved."""
        if not self.rows:
            return f"intervals of level {100 * self.level:g} %: no label differed from its prediction"
        share, most = self.covered / self.rows, 100 * self.deviation_bound / self.rows
        said = f"intervals of level {100 * self.level:g} %, adapted after each row, covered {100 * share:.2f} % of "
        said += counted(self.rows, "label")
        proved = f"; on any with errors of these scales it is {100 * self.level:g} % ± {np.ceil(10 * most) / 10:.1f} %"
        return said + (proved if most < 100 * min(self.level, 1) else "")

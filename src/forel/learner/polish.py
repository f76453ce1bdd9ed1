r"""Loss floors that are polished: dual variables of a sample of the rows are chosen anew, at the end.

By weak duality any slopes $b_t$ of some rows, and $\theta a_t$ of the others with a the slopes of a lane, prove
$\sum_t v_t\ell_t(f_t \cdot x) \ge E_{others}(\theta) - \sum_t v_t\ell_t^\star(b_t) -
\|x\| \|\theta G_{others} + \sum_t v_t b_t f_t\|$, whatever an optimizer does. Those of $b_t = \ell_t'(f_t \cdot x)$
are best where x minimizes the loss of the sample plus $\langle\theta G_{others}, x\rangle$ among models of the norm
that the floor is for.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual import THETAS, DualPoint
from forel.losses.margin import MarginLoss
from forel.validation import Vector

__all__ = ["FACTORS", "SampledRows", "polished_points"]

FACTORS = (1.0, 3.0, 10.0)  # norms, in units of the learned one, for which points are sought
SEARCHES, STEPS = 7, 30  # penalties that are tried for a norm, and steps of the optimizer for each
EPS = 2.0**-23
ROUNDED = 512 * EPS  # bound on the effect of a rounded margin on the entropy of a slope, and on other conjugates


class SampledRows(NamedTuple):
    """A sample of the rows of a certificate.

    Parameters
    ----------
    indptr, slots, values, labels, importance : the rows
    margins : those of the certified lanes, from before each row was learned
    every : whether these are all rows
    """

    indptr: NDArray[np.int64]
    slots: NDArray[np.int64]
    values: NDArray[np.float64]
    labels: Vector
    importance: Vector
    margins: NDArray[np.float64]
    every: bool


def polished_points(
    loss: MarginLoss,
    sample: SampledRows,
    column: int,
    point: DualPoint,
    slots: NDArray[np.int64],
    gradients: Vector,
    scales: Vector,
    bias: bool,
    norm: float,
    error: float,
) -> tuple[DualPoint, ...]:
    """Return points of the dual problem; none for losses without a conjugate, or with slopes that jump.

    Parameters
    ----------
    loss, sample : the loss, and the rows
    column, point : of the margins of the lane whose slopes others keep, and its point
    slots, gradients, scales : the coordinates, Σ v a f there divided by scales, and the scales
    bias : whether the last coordinate is a bias
    norm, error : the learned norm, and a bound on the error of the norm of ``gradients``
    """
    slopes = np.asarray(loss.slope(sample.margins[:, column], sample.labels))
    if not sample.labels.size or not np.isfinite(loss.constants().smoothness) or norm <= 0:
        return ()
    shrunken = _energies(loss, sample, slopes)
    if shrunken is None:
        return ()
    problem = _Problem(loss, sample, slots, gradients, scales, bias)
    outside = problem.gradients - problem.pull(sample.importance * slopes)
    slack = ROUNDED * float(sample.importance @ (1 + np.abs(np.asarray(loss(0.0 * sample.labels, sample.labels)))))
    others = point.energy(THETAS) - shrunken - slack
    others = np.maximum(others, 0.0) if point.slopes is not None else others
    if sample.every:
        outside, others, problem.rest, error = 0 * outside, 0 * others, 0.0, 0.0
    found: list[DualPoint] = []
    x, penalty = np.zeros(problem.size), point.gradient_norm / norm
    for factor in FACTORS:
        best, theta = _Best(factor * norm), 1.0
        for _ in range(SEARCHES):
            x = problem.minimize(x, theta, outside, penalty)
            margins = problem.margins(x)
            b = np.asarray(loss.slope(margins, sample.labels))
            energy = float(sample.importance @ (np.asarray(loss(margins, sample.labels)) - b * margins)) - slack
            pulled = problem.pull(sample.importance * b)
            theta = best.add(energy, others, pulled, outside, problem.rest, bias, error)
            ratio = float(np.linalg.norm(x)) / (factor * norm)
            if abs(ratio - 1) < 0.02 or penalty < 1e-12 * point.gradient_norm / norm:
                break
            penalty *= min(max(ratio, 0.03), 30.0) ** 1.5
        if best.point is not None:
            found.append(best.point)
    return tuple(found)


class _Best:
    """The best point for a norm so far."""

    def __init__(self, norm: float) -> None:
        self.norm, self.floor, self.point = norm, -np.inf, None

    point: DualPoint | None

    def add(
        self, energy: float, others: Vector, pulled: Vector, outside: Vector, rest: float, bias: bool, error: float
    ) -> float:
        """Add slopes of the sample, and return by which θ those of the others are best multiplied."""
        squares = float(pulled @ pulled), float(pulled @ outside), float(outside @ outside) + rest**2
        norms = np.sqrt(np.maximum(squares[0] + 2 * THETAS * squares[1] + THETAS**2 * squares[2], 0.0))
        floors = energy + others - self.norm * (norms + error)
        best = int(np.argmax(floors))
        theta = float(THETAS[best])
        if floors[best] > self.floor:
            total = theta * outside + pulled
            weights = np.hypot(np.linalg.norm(total[:-1] if bias else total), theta * rest)
            own = abs(float(total[-1])) if bias else 0.0
            self.floor = float(floors[best])
            self.point = DualPoint(
                float(energy + others[best]), float(np.hypot(weights, own)) * (1 + 1e-12) + error,
                weights_gradient=float(weights) + error, bias_gradient=own + error,
            )  # fmt: skip
        return theta


class _Problem:
    """The sample as a sparse matrix of the coordinates that it has; all others are one more coordinate."""

    def __init__(
        self,
        loss: MarginLoss,
        sample: SampledRows,
        slots: NDArray[np.int64],
        gradients: Vector,
        scales: Vector,
        bias: bool,
    ) -> None:
        from scipy.sparse import csr_array  # slow to import

        places = np.searchsorted(slots, sample.slots)
        used = np.unique(places)
        if bias:
            used = np.union1d(used, [slots.size - 1])
        rows, entries = sample.labels.size, np.searchsorted(used, places)
        divided = np.divide(sample.values, scales[places], out=np.zeros(places.size), where=scales[places] > 0)
        matrix = csr_array((divided, entries, sample.indptr), shape=(rows, used.size))
        if bias:
            last = csr_array((np.ones(rows), np.full(rows, used.size - 1), np.arange(rows + 1)), shape=matrix.shape)
            matrix = matrix + last
        self.loss, self.sample, self.rows, self.columns = loss, sample, matrix.tocsr(), matrix.T.tocsr()
        self.gradients = gradients[used]
        self.rest = float(np.sqrt(max(float(gradients @ gradients) - float(self.gradients @ self.gradients), 0.0)))
        self.size = used.size + 1

    def margins(self, x: Vector) -> Vector:
        """Return the margins of a model."""
        return np.asarray(self.rows @ x[:-1])

    def pull(self, slopes: Vector) -> Vector:
        """Return Σ b f."""
        return np.asarray(self.columns @ slopes)

    def minimize(self, x: Vector, theta: float, outside: Vector, penalty: float) -> Vector:
        """Return a model with a small loss of the sample, plus the slopes of others and a penalty."""
        from scipy.optimize import minimize

        linear, weight, labels = (
            np.append(theta * outside, theta * self.rest),
            self.sample.importance,
            self.sample.labels,
        )

        def objective(x: Vector) -> tuple[float, Vector]:
            margins = self.margins(x)
            gradient = np.append(self.pull(weight * self.loss.slope(margins, labels)), 0.0) + linear + penalty * x
            value = float(weight @ np.asarray(self.loss(margins, labels)))
            return value + float(linear @ x) + penalty / 2 * float(x @ x), gradient

        options = {"maxiter": STEPS, "maxfun": 2 * STEPS, "gtol": 0.0, "ftol": 1e-9, "maxcor": 5}
        return np.asarray(minimize(objective, x, jac=True, method="L-BFGS-B", options=options).x)


def _energies(loss: MarginLoss, sample: SampledRows, slopes: Vector) -> Vector | None:
    """Return upper bounds on −Σ v ℓ*(θa) of the sample for each θ; None without a conjugate."""
    found = np.empty(THETAS.size)
    for k, theta in enumerate(THETAS.tolist()):
        conjugate = loss.conjugate(theta * slopes, sample.labels)
        if conjugate is None:
            return None
        found[k] = -float(sample.importance @ conjugate)
    return found

r"""Loss floors that are polished: dual variables of a sample of the rows are chosen anew, at the end.

By weak duality any slopes $b_t$ of some rows, and $\theta a_t$ of the others with a the slopes of a lane, prove
$\sum_t v_t\ell_t(f_t \cdot x) \ge E_{others}(\theta) - \sum_t v_t\ell_t^\star(b_t) -
\|x\| \|\theta G_{others} + \sum_t v_t b_t f_t\|$, whatever an optimizer does. Those of $b_t = \ell_t'(f_t \cdot x)$
are best where x minimizes the loss of the sample plus $\langle\theta G_{others}, x\rangle$ among models of the norm
that the floor is for.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual import THETAS, DualPoint
from forel.losses.margin import MarginLoss
from forel.validation import Vector

__all__ = ["FACTORS", "SampledRows", "polished_points"]

FACTORS = (1.0, 3.0, 10.0)  # norms, in units of the learned one, for which points are sought
SEARCHES = 7  # penalties that are tried for a norm
NEAR = 0.02, 0.05, 0.05  # relative errors of the norms of models with which searches end
OPTIONS = {"maxiter": 30, "maxfun": 60, "gtol": 0.0, "ftol": 1e-9, "maxcor": 5}
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
    slots, scales : the coordinates of the sample, in order, and their scales
    gradients : Σ v a f of these coordinates divided by scales, and the norm of that of all others
    bias : whether the last coordinate is a bias
    norm, error : the learned norm, and a bound on the error of the norm of ``gradients``
    """
    from scipy.optimize import minimize  # slow to import

    labels, weight = sample.labels, sample.importance
    slopes = np.asarray(loss.slope(sample.margins[:, column], labels))
    if not labels.size or not np.isfinite(loss.constants().smoothness) or norm <= 0:
        return ()
    shrunken = _energies(loss, sample, slopes)
    if shrunken is None:
        return ()
    rows = _matrix(sample, slots, scales, bias)
    columns = rows.T.tocsr()
    outside = gradients - columns @ (weight * slopes)
    slack = ROUNDED * float(weight @ (1 + np.abs(np.asarray(loss(0.0 * labels, labels)))))
    others = point.energy(THETAS) - shrunken - slack
    others = np.maximum(others, 0.0) if point.slopes is not None else others
    if sample.every:
        outside, others, error = 0 * outside, 0 * others, 0.0

    def objective(x: Vector, theta: float, penalty: float) -> tuple[float, Vector]:
        """Return the loss of the sample, plus the slopes of others and a penalty, and its gradient."""
        margins = rows @ x
        gradient = columns @ (weight * loss.slope(margins, labels)) + theta * outside + penalty * x
        value = float(weight @ np.asarray(loss(margins, labels)))
        return value + theta * float(outside @ x) + penalty / 2 * float(x @ x), gradient

    found: list[DualPoint] = []
    x, penalty = np.zeros(gradients.size), point.gradient_norm / norm
    for factor, near in zip(FACTORS, NEAR, strict=True):
        size = factor * norm
        best, largest, theta = None, -np.inf, 1.0
        for _ in range(SEARCHES):
            x = minimize(objective, x, (theta, penalty), jac=True, method="L-BFGS-B", options=OPTIONS).x
            margins = rows @ x
            b = np.asarray(loss.slope(margins, labels))
            energy = float(weight @ (np.asarray(loss(margins, labels)) - b * margins)) - slack
            pulled = columns @ (weight * b)
            squares = pulled @ pulled + 2 * THETAS * (pulled @ outside) + THETAS**2 * (outside @ outside)
            floors = energy + others - size * (np.sqrt(np.maximum(squares, 0.0)) + error)
            k = int(np.argmax(floors))
            theta = float(THETAS[k])
            if floors[k] > largest:
                pull = float(np.linalg.norm(theta * outside + pulled)) * (1 + 1e-12) + error
                best, largest = DualPoint(float(energy + others[k]), pull), float(floors[k])
            ratio = float(np.linalg.norm(x)) / size
            if abs(ratio - 1) < near or penalty < 1e-12 * point.gradient_norm / norm:
                break
            penalty *= min(max(ratio, 0.03), 30.0) ** 1.5
        if best is not None:
            found.append(best)
    return tuple(found)


def _matrix(sample: SampledRows, slots: NDArray[np.int64], scales: Vector, bias: bool) -> Any:
    """Return the sample as a sparse matrix of its coordinates, and of one more that stands for all others."""
    from scipy.sparse import csr_array  # slow to import

    places, count = np.searchsorted(slots, sample.slots), sample.labels.size
    divided = np.divide(sample.values, scales[places], out=np.zeros(places.size), where=scales[places] > 0)
    shape = count, slots.size + 1
    matrix = csr_array((divided, places, sample.indptr), shape=shape)
    if bias:
        matrix = matrix + csr_array((np.ones(count), np.full(count, slots.size - 1), np.arange(count + 1)), shape=shape)
    return matrix.tocsr()


def _energies(loss: MarginLoss, sample: SampledRows, slopes: Vector) -> Vector | None:
    """Return upper bounds on −Σ v ℓ*(θa) of the sample for each θ; None without a conjugate."""
    found = np.empty(THETAS.size)
    for k, theta in enumerate(THETAS.tolist()):
        conjugate = loss.conjugate(theta * slopes, sample.labels)
        if conjugate is None:
            return None
        found[k] = -float(sample.importance @ conjugate)
    return found

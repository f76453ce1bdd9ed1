r"""Loss floors that are polished: dual variables of a sample of the rows are chosen anew, at the end.

By weak duality any slopes $b_t$ of some rows, and $\theta a_t$ of the others with a the slopes of a lane, prove
$\sum_t v_t\ell_t(f_t \cdot x) \ge E_{others}(\theta) - \sum_t v_t\ell_t^\star(b_t) -
\|x\| \|\theta G_{others} + \sum_t v_t b_t f_t\|$, whatever an optimizer does. Those of $b_t = \ell_t'(f_t \cdot x)$
are best where x minimizes the loss of the sample plus $\langle\theta G_{others}, x\rangle$ among models of the norm
that the floor is for. Newton's method finds such x for a few penalties; its points are all valid, minima or not.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual import THETAS, DualPoint
from forel.losses.margin import MarginLoss
from forel.validation import Vector

__all__ = ["FACTORS", "SampledRows", "polished_points"]

FACTORS = (1.0, 3.0, 10.0)  # norms, in units of the learned one, for which points are sought
SEARCHES = 7  # penalties that are tried for a norm
NEAR = 0.02, 0.05, 0.05  # relative errors of the norms of models with which searches end
STEPS, PRODUCTS, HALVINGS = 4, 8, 6  # of Newton's method, of conjugate gradients in a step, and of a step's length
SOLVED, GAIN = 0.1, 1e-6  # relative squared residual with which products end, and decrease with which steps end
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


@dataclass(frozen=True)
class _Problem:
    """The loss of a sample plus ⟨pull, x⟩; x has the coordinates of the sample and one that stands for all others.

    ``owners`` and ``places`` are the row and the coordinate of each of ``values``; ``bias`` is the coordinate that all
    rows have, if it is not negative.
    """

    loss: MarginLoss
    labels: Vector
    weight: Vector
    owners: NDArray[np.int64]
    places: NDArray[np.int64]
    values: Vector
    bias: int
    size: int

    def margins(self, x: Vector) -> Vector:
        """Return the margin of each row."""
        found = np.bincount(self.owners, self.values * x[self.places], self.labels.size)
        return found + (0.0 if self.bias < 0 else x[self.bias])

    def combined(self, factors: Vector, values: Vector | None = None) -> Vector:
        """Return the sum of all rows, or of other values in their places, times factors."""
        values = self.values if values is None else values
        found = np.bincount(self.places, values * factors[self.owners], self.size).astype(np.float64, copy=False)
        if self.bias >= 0:
            found[self.bias] += factors.sum()
        return found

    def minimized(self, x: Vector, margins: Vector, pull: Vector, penalty: float) -> tuple[Vector, Vector]:
        """Return a model of smaller loss, with ½·penalty·‖x‖² added, and its margins."""

        def value(x: Vector, margins: Vector) -> float:
            loss = float(self.weight @ np.asarray(self.loss(margins, self.labels)))
            return loss + float(pull @ x) + penalty / 2 * float(x @ x)

        least = value(x, margins)
        for _ in range(STEPS):
            step, change = self._newton_step(x, margins, pull, penalty)
            for halving in range(HALVINGS):
                size = 0.5**halving
                if (found := value(x + size * step, margins + size * change)) < least:
                    break
            else:
                break
            x, margins, gain, least = x + size * step, margins + size * change, least - found, found
            if gain < GAIN * abs(least):
                break
        return x, margins

    def _newton_step(self, x: Vector, margins: Vector, pull: Vector, penalty: float) -> tuple[Vector, Vector]:
        """Return a step and the change of margins, by conjugate gradients in units of the diagonal of the Hessian."""
        slopes, near = np.asarray(self.loss.slope(margins, self.labels)), 1e-4 * (1 + np.abs(margins))
        curvature = np.maximum(np.asarray(self.loss.slope(margins + near, self.labels)) - slopes, 0.0) / near
        curvature *= self.weight
        inverse = 1 / (self.combined(curvature, self.values**2) + penalty)
        rest = -(self.combined(self.weight * slopes) + pull + penalty * x)
        direction, step, change = inverse * rest, np.zeros(x.size), np.zeros(margins.size)
        first = square = float(rest @ direction)
        for _ in range(PRODUCTS):
            if square <= SOLVED * first:
                break
            across = self.margins(direction)
            image = self.combined(curvature * across) + penalty * direction
            size = square / float(direction @ image)
            step, change, rest = step + size * direction, change + size * across, rest - size * image
            scaled = inverse * rest
            square, before = float(rest @ scaled), square
            direction = scaled + square / before * direction
        return step, change


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
    labels, weight = sample.labels, sample.importance
    slopes = np.asarray(loss.slope(sample.margins[:, column], labels))
    if not labels.size or not np.isfinite(loss.constants().smoothness) or norm <= 0:
        return ()
    shrunken = _energies(loss, sample, slopes)
    if shrunken is None:
        return ()
    places, owners = np.searchsorted(slots, sample.slots), np.repeat(np.arange(labels.size), np.diff(sample.indptr))
    values = np.divide(sample.values, scales[places], out=np.zeros(places.size), where=scales[places] > 0)
    given = owners, places, values, slots.size - 1 if bias else -1, slots.size + 1
    problem = _Problem(loss, labels, weight, *given)
    outside = gradients - problem.combined(weight * slopes)
    slack = ROUNDED * float(weight @ (1 + np.abs(np.asarray(loss(0.0 * labels, labels)))))
    others = point.energy(THETAS) - shrunken - slack
    others = np.maximum(others, 0.0) if point.slopes is not None else others
    if sample.every:
        outside, others, error = 0 * outside, 0 * others, 0.0

    found: list[DualPoint] = []
    x, margins, theta = np.zeros(gradients.size), np.zeros(labels.size), 1.0
    start = penalty = point.gradient_norm / norm
    sizes = norm * np.array(FACTORS)
    for number, near in enumerate(NEAR):
        for _ in range(SEARCHES):
            x, margins = problem.minimized(x, margins, theta * outside, penalty)
            b = np.asarray(loss.slope(margins, labels))
            energy = float(weight @ (np.asarray(loss(margins, labels)) - b * margins)) - slack
            pulled = problem.combined(weight * b)
            squares = pulled @ pulled + 2 * THETAS * (pulled @ outside) + THETAS**2 * (outside @ outside)
            floors = energy + others - sizes[:, None] * (np.sqrt(np.maximum(squares, 0.0)) + error)
            best = np.argmax(floors, axis=1)
            for k in set(best.tolist()):
                pull = float(np.linalg.norm(THETAS[k] * outside + pulled)) * (1 + 1e-12) + error
                found.append(DualPoint(float(energy + others[k]), pull))
            theta, ratio = float(THETAS[best[number]]), float(np.linalg.norm(x)) / float(sizes[number])
            if abs(ratio - 1) < near or penalty < 1e-12 * start:
                break
            penalty *= min(max(ratio, 0.03), 30.0) ** 1.5
    return tuple(found)


def _energies(loss: MarginLoss, sample: SampledRows, slopes: Vector) -> Vector | None:
    """Return upper bounds on −Σ v ℓ*(θa) of the sample for each θ; None without a conjugate."""
    found = np.empty(THETAS.size)
    for k, theta in enumerate(THETAS.tolist()):
        conjugate = loss.conjugate(theta * slopes, sample.labels)
        if conjugate is None:
            return None
        found[k] = -float(sample.importance @ conjugate)
    return found

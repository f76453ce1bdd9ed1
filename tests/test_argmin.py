"""Every argmin against its numerical twin, and against its neighbours."""


import numpy as np
import pytest

from forel import cvx
from forel.argmin import SOLVER, Argmin
from forel.argmin.table import GEOMETRIES, REFUSED, method, penalties, sets
from forel.checks import Unsupported
from forel.penalties import Indicator

N = 5
NAMES = [pytest.param(g, p, s, id=f"{g}, {p}, {s}") for g in GEOMETRIES for p in penalties(N) for s in sets(N)]


def strengths(shape, n, rng, spread=1.0):
    """A strength of the given shape, its entries or eigenvalues up to 10^±spread apart from 1."""
    if shape == "scalar":
        return float(10 ** rng.uniform(-spread, spread))
    diagonal = 10 ** rng.uniform(-spread, spread, n)
    if shape == "diagonal":
        return diagonal
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix = basis @ np.diag(diagonal) @ basis.T
    return (matrix + matrix.T) / 2


def cases(shape, n):
    """Slopes, strengths and weights: random, and where closed forms have gone wrong before."""
    rng = np.random.default_rng(7)
    yield "random", rng.normal(size=n), strengths(shape, n, rng), 1.3
    yield "strong pull", 30 * rng.normal(size=n), strengths(shape, n, rng), 0.7
    yield "already feasible", 1e-3 * rng.normal(size=n), strengths(shape, n, rng) * 50, 0.0
    yield "zero slope", np.zeros(n), strengths(shape, n, rng), 1.0
    yield "ties", np.full(n, -2.0), strengths(shape, n, rng, spread=0.0), 1.0
    yield "one large", np.eye(n)[0] * -100, strengths(shape, n, rng), 1.0
    yield "badly scaled", 10 ** rng.uniform(-3, 3, n) * rng.choice([-1, 1], n), strengths(shape, n, rng, 2.0), 1.0


class Twin:
    """The same objective written out for the solver, from the parts themselves."""

    def __init__(self, geometry, penalty, feasible, n):
        cp = cvx.cvxpy()
        self.geometry = geometry
        shape = {"scalar": (), "diagonal": (n,), "matrix": (n, n)}[geometry.shape]
        self.x, self.z, self.weight = cp.Variable(n), cp.Parameter(n), cp.Parameter(nonneg=True)
        self.factor = cp.Parameter(shape, nonneg=geometry.shape != "matrix")
        objective = self.z @ self.x + geometry.expression(self.factor, self.x)
        limits = feasible.constraints(self.x)
        if isinstance(penalty, Indicator):
            limits = [*limits, *penalty.feasible.constraints(self.x)]
        else:
            objective += self.weight * penalty.expression(self.x)
        self.problem = cp.Problem(cp.Minimize(objective), limits)

    def __call__(self, z, strength, weight):
        self.z.value, self.weight.value, self.factor.value = z, weight, self.geometry.factor(strength)
        x = cvx.solve(self.problem, self.x)
        return np.maximum(x, 0) if self.geometry.on_simplex else x


@pytest.mark.slow
@pytest.mark.parametrize(("geometry", "penalty", "feasible"), NAMES)
def test_every_combination_equals_its_twin_or_refuses(geometry, penalty, feasible):
    found = method(GEOMETRIES[geometry], penalties(N)[penalty], sets(N)[feasible])
    if found == REFUSED:
        with pytest.raises(Unsupported, match="use feasible=Simplex"):
            Argmin(GEOMETRIES[geometry], penalties(N)[penalty], sets(N)[feasible])
        return
    for n in (N, 1) if found != SOLVER else (3,):
        phi, psi, region = GEOMETRIES[geometry], penalties(n)[penalty], sets(n)[feasible]
        play, twin = Argmin(phi, psi, region), Twin(phi, psi, region, n)
        points = {name: play(*case) for name, *case in cases(phi.shape, n)}
        for name, z, strength, weight in cases(phi.shape, n):
            x = points[name]
            assert region.contains(x, 1e-12 if found != SOLVER else 1e-7), (name, n, x)

            def objective(u, z=z, strength=strength, weight=weight, phi=phi, psi=psi):
                charge = 0.0 if isinstance(psi, Indicator) else weight * psi(u)
                return z @ u + charge + phi.value(strength, u)

            other = twin(z, strength, weight)
            scale = 1 + abs(objective(x)) + np.abs(z) @ np.abs(x)
            assert objective(x) == pytest.approx(objective(other), abs=1e-7 * scale), (name, n, x, other)
            for y in points.values():  # all feasible, so none on the way to them may be better
                for step in (1.0, 0.1, 1e-3):
                    assert objective(x + step * (y - x)) >= objective(x) - 1e-7 * step * scale, (name, n, step)

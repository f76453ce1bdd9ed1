"""The fast learner: a linear model that learns online from sparse rows, in compiled code.

It is the one object of forel that changes in place. Its updates are those of ``forel.algorithms``, coordinate by
coordinate, touching only the features of a row; a parity test holds both together.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from forel.certificate import Certificate
from forel.checks import Unsupported, all_finite, constants, refuse, whole

__all__ = ["Linear", "Rows", "Settings", "rows_of"]

LOSSES = ("logistic", "squared", "hinge", "squared_hinge", "absolute")


@dataclass(frozen=True)
class Settings:
    r"""What is learned, and how: $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$ and its relatives.

    Parameters
    ----------
    loss : "logistic" (labels 0 to 1), "squared", "absolute", "hinge" or "squared_hinge" (labels −1 and 1)
    algorithm : "proximal" (FTRL-Proximal), "centered" (dual averaging), "mirror" (gradient descent, FOBOS)
    rate : "adagrad", "scale_free" (does not mind units), "constant", or "root" (α/√(t + 1))
    alpha, beta : of the rate
    l1, l2 : of the penalty λ1‖x‖₁ + (λ2/2)‖x‖²
    penalty_weight : "once" (as in the ad-click paper) or "every" round (the survey's composite objective)
    radius : weights stay in [−radius, radius]; None for no bound
    bias : whether there is a constant feature, which is not penalised

    alpha, beta, l1, l2 and radius may be sequences: one lane for each entry, all learned in one pass.

    >>> Settings(alpha=[0.1, 1.0], l1=0.5).lanes
    2

    Survey: sections 3.4 and 5
    """

    loss: str = "logistic"
    algorithm: Literal["proximal", "centered", "mirror"] = "proximal"
    rate: Literal["adagrad", "scale_free", "constant", "root"] = "adagrad"
    alpha: float | tuple[float, ...] = 0.1
    beta: float | tuple[float, ...] = 1.0
    l1: float | tuple[float, ...] = 0.0
    l2: float | tuple[float, ...] = 0.0
    penalty_weight: Literal["once", "every"] = "once"
    radius: float | tuple[float, ...] | None = None
    bias: bool = True

    def __post_init__(self) -> None:
        _choice("loss", self.loss, LOSSES)
        _choice("algorithm", self.algorithm, ("proximal", "centered", "mirror"))
        _choice("rate", self.rate, ("adagrad", "scale_free", "constant", "root"))
        _choice("penalty_weight", self.penalty_weight, ("once", "every"))
        for name in ("alpha", "beta", "l1", "l2", "radius"):
            given = getattr(self, name)
            if given is None and name == "radius":
                continue
            strict = name in ("alpha", "radius")
            expected = "positive numbers" if strict else "numbers of at least 0"
            held = constants(name, given, expected, low=np.finfo(np.float64).tiny if strict else 0.0)
            object.__setattr__(self, name, tuple(held.tolist()) if isinstance(held, np.ndarray) else held)
        lengths = {len(v) for v in self._per_lane() if isinstance(v, tuple)}
        if len(lengths) > 1:
            raise refuse("alpha, beta, l1, l2, radius", sorted(lengths), "sequences of one length, a lane each")
        penalized = bool(np.any(self.l1) or np.any(self.l2))
        every = penalized and self.penalty_weight == "every"
        if self.rate == "root" and (self.algorithm == "proximal" or (self.algorithm == "mirror" and every)):
            raise Unsupported(
                f"algorithm={self.algorithm!r} with rate='root' changes every weight in every round, which sparse rows "
                "do not allow; use rate='adagrad', or algorithm='centered'"
            )
        if self.rate == "scale_free" and self.algorithm == "mirror" and every:
            raise Unsupported("rate='scale_free' with a penalty every round needs algorithm='proximal' or 'centered'")

    def _per_lane(self) -> tuple[Any, ...]:
        return self.alpha, self.beta, self.l1, self.l2, self.radius

    @property
    def lanes(self) -> int:
        """How many models are learned side by side."""
        return next((len(v) for v in self._per_lane() if isinstance(v, tuple)), 1)

    def parameters(self, lanes: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return the lanes' parameters as the kernels take them: 1/α, β, offset, λ1, λ2, R."""
        largest = np.finfo(dtype).max
        radius = largest if self.radius is None else np.minimum(self.radius, largest)
        offset = 1.0 if self.rate == "root" else 0.0
        rows = (1 / np.asarray(self.alpha), self.beta, offset, self.l1, self.l2, radius)
        with np.errstate(over="ignore"):
            parameters = np.array([np.broadcast_to(row, lanes) for row in rows]).astype(dtype)
        if not all_finite(parameters):
            raise ValueError(
                f"alpha, beta, l1, l2: got {self.alpha, self.beta, self.l1, self.l2}, expected 1/alpha and the others "
                f"within the range of {np.dtype(dtype)}"
            )
        return parameters


class Rows(NamedTuple):
    """Validated sparse rows: what a kernel may be given."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.indptr.size - 1


def rows_of(X: Any, features: int, dtype: DTypeLike) -> Rows:
    """Return an array or sparse matrix as rows, checked, and without a copy where it has the right type already.

    Rows that were checked before are taken as they are.

    >>> rows_of([[0.0, 2.0], [3.0, 0.0]], 2, np.float64).indices
    array([1, 0], dtype=int32)
    """
    if isinstance(X, Rows):
        return X
    if sparse.issparse(X):
        matrix = X if X.format == "csr" else X.tocsr()
        _structure(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        dense = np.asarray(X)
        if dense.ndim != 2:
            raise ValueError(f"X: got shape {dense.shape}, expected two dimensions, a row an example")
        matrix = sparse.csr_array(dense)
    if matrix.shape[1] != features:
        raise ValueError(f"X: got {matrix.shape[1]} features, expected {features}, as at the start")
    with np.errstate(over="ignore"):
        values = matrix.data.astype(dtype, copy=False)
    if not all_finite(values):
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise ValueError(f"X: got {matrix.data[k]} in row {row}, column {matrix.indices[k]}, expected finite numbers")
    return Rows(matrix.indptr.astype(np.int64, copy=False), matrix.indices, values)


def _structure(matrix: Any) -> None:
    """Refuse a sparse matrix whose parts do not fit together; scipy lets them be set by hand."""
    indptr, indices = matrix.indptr, matrix.indices
    if indptr.size != matrix.shape[0] + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError("X: got an indptr that does not rise from 0, expected a valid CSR matrix")
    if indptr[-1] > indices.size or indices.size != matrix.data.size:
        raise ValueError("X: got indices and data of other lengths than indptr says, expected a valid CSR matrix")
    used = indices[: indptr[-1]]
    if used.size and (used.min() < 0 or used.max() >= matrix.shape[1]):
        bad = int(used.min() if used.min() < 0 else used.max())
        raise ValueError(f"X: got the column index {bad}, expected 0 to {matrix.shape[1] - 1}")


class Linear:
    """A linear model, or several side by side, learned one row at a time.

    Parameters
    ----------
    features : the number of features
    settings : what is learned, and how
    classes : with it, lane k learns class k against the rest, and labels are 0, 1, …, classes − 1
    dtype : float32, or float64 for twice the memory and more digits
    certified : whether to keep the sums from which :meth:`certificate` tells how much better a fixed model could have
        done; one more number for each feature and lane where regularizers are proximal

    >>> model = Linear(2, Settings(alpha=1.0, bias=False), dtype=np.float64)
    >>> float(model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])[0])  # progressive log-loss: predicted before learning
    1.386...
    >>> model.weights.ravel().round(3)
    array([ 0.333, -0.333])

    Survey: section 3.4
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        classes: int | None = None,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
    ) -> None:
        self.features = whole("features", features, low=1)
        self.settings = settings
        if dtype not in (np.float32, np.float64, "float32", "float64"):
            raise refuse("dtype", dtype, "float32 or float64")
        self.dtype = np.dtype(dtype)
        if classes is not None and settings.lanes > 1:
            raise refuse("classes", classes, "no sequences among the settings: each lane is a class")
        self.classes = None if classes is None else whole("classes", classes, low=2)
        self.lanes = settings.lanes if self.classes is None else self.classes
        self.certified = certified
        if certified and settings.algorithm == "mirror":
            raise Unsupported("algorithm='mirror' keeps no certificate; use 'proximal' or 'centered'")
        self._parameters = settings.parameters(self.lanes, self.dtype)
        self.reset()

    def reset(self) -> None:
        """Forget everything; memory that is not touched again is not used."""
        # One slot more than features: the last is the bias.
        self.state = np.zeros((self.features + 1, 3 if self._around else 2, self.lanes), self.dtype)
        self._reach = np.zeros(self.features + 1 if self.settings.rate == "scale_free" else 1, self.dtype)
        self._last = np.zeros(self.features + 1 if self._fades else 1, np.int64)
        self._proof = np.zeros((3, self.lanes))
        self.rounds = 0
        self.loss = np.zeros(self.lanes)

    @property
    def _around(self) -> bool:
        """Whether Σσx is kept too: with it and the dual state the certificate knows g_{1:t}."""
        return self.certified and self._rule == "proximal"

    @property
    def _fades(self) -> bool:
        return self.settings.algorithm == "mirror" and self.settings.penalty_weight == "every"

    def _kernel(self) -> Any:
        from forel.kernels.compose import Recipe, compose

        s = self.settings
        labels: Literal["shared", "classes"] = "shared" if self.classes is None else "classes"
        double = self.dtype == np.float64
        pieces = s.loss, self._rule, s.rate, s.penalty_weight, self.lanes, s.bias, labels, double, self.certified
        return compose(Recipe(*pieces))

    @property
    def _rule(self) -> Literal["centered", "proximal", "mirror"]:
        # A constant rate adds no strength after r_0, so that proximal and centered are the same algorithm.
        constant = self.settings.algorithm == "proximal" and self.settings.rate == "constant"
        return "centered" if constant else self.settings.algorithm

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict, suffer and learn from each row in turn; return each lane's sum of losses before learning.

        ``importance`` multiplies a row's loss, and so its gradient. A row of importance 2 is not the same as the row
        twice: the second time, a learner has already learned from the first.
        """
        rows = rows_of(X, self.features, self.dtype)
        labels = self._labels(y, rows.number)
        scale = self._importance(importance, rows.number)
        longest = int(np.diff(rows.indptr).max(initial=0)) + 1
        points, strengths = np.empty((2, longest, self.lanes), self.dtype)
        margin, slope = np.empty(self.lanes, self.dtype), np.empty(self.lanes, self.dtype)
        part, sums = np.zeros((2, self.lanes), self.dtype), np.zeros(self.lanes)
        self.rounds = int(
            self._kernel().learn(
                *rows, labels, scale, self.state, self._reach, self._last, self.rounds, self._parameters, sums,
                points, strengths, margin, slope, part, self._proof,
            )
        )  # fmt: skip
        self.loss += sums
        return sums

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margin of every row and lane."""
        rows = rows_of(X, self.features, self.dtype)
        out = np.empty((rows.number, self.lanes), self.dtype)
        self._kernel().predict(*rows, self.state, self._reach, self._last, self.rounds, self._parameters, out)
        return out

    def _read(self) -> NDArray[Any]:
        out = np.empty((self.features + 1, self.lanes), self.dtype)
        self._kernel().read(self.state, self._reach, self._last, self.rounds, self._parameters, out)
        return out

    @property
    def weights(self) -> NDArray[Any]:
        """The weights, a row a feature and a column a lane, exact zeros included."""
        return self._read()[:-1]

    @property
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in each lane; 0 without one."""
        constant: NDArray[Any] = self._read()[-1]
        return constant

    def certificate(self, lane: int = 0) -> Certificate:
        """Return what is proved of one lane so far: regret, its bound, and what any fixed model could have reached."""
        if not self.certified:
            raise ValueError("certified: got False, expected a model made with certified=True")
        if not 0 <= lane < self.lanes:
            raise refuse("lane", lane, f"0 to {self.lanes - 1}")
        used = self.features + int(self.settings.bias)
        parameters = self._parameters[:, lane].astype(np.float64)
        strength = _strength(
            self.settings, self.state[:used, 1, lane].astype(np.float64), self._reach, self.rounds, parameters
        )
        z = self.state[:used, 0, lane].astype(np.float64)
        around = self.state[:used, 2, lane].astype(np.float64) if self._around else np.zeros(used)
        penalized = np.ones(used)
        penalized[self.features :] = 0.0
        total = self.rounds if self.settings.penalty_weight == "every" else min(self.rounds, 1)
        return Certificate(
            rounds=self.rounds,
            loss=float(self.loss[lane]),
            played=float(self._proof[0, lane]),
            gradients=z + around,
            stability=float(self._proof[1, lane]),
            strength=np.broadcast_to(strength, used),
            linear=around,
            constant=float(self._proof[2, lane]),
            l1=total * parameters[3] * penalized,
            l2=total * parameters[4] * penalized,
            radius=None if self.settings.radius is None else float(parameters[5]),
            result="Theorem 10" if self._rule == "proximal" else "Theorem 1",
        )

    def _labels(self, y: ArrayLike, count: int) -> NDArray[Any]:
        labels = np.asarray(y)
        if labels.shape != (count,):
            raise ValueError(f"y: got shape {labels.shape}, expected one label for each of {count} rows")
        if labels.dtype.kind not in "fiub":
            raise refuse("y", labels.dtype, "numbers; encode classes as numbers first")
        domain = _domain(self.settings.loss, self.classes)
        return self._narrow("y", domain.check("y", labels))

    def _importance(self, importance: ArrayLike | None, count: int) -> NDArray[Any]:
        if importance is None:
            ones: NDArray[Any] = np.ones(count, self.dtype)
            return ones
        held = np.asarray(importance, dtype=np.float64)
        if held.shape != (count,):
            raise ValueError(f"importance: got shape {held.shape}, expected one number for each of {count} rows")
        if not all_finite(held) or held.min(initial=0.0) < 0:
            k = int(np.argmax(~(held >= 0) | ~np.isfinite(held)))
            raise ValueError(f"importance: got {held[k]} in row {k}, expected finite numbers of at least 0")
        return self._narrow("importance", held)

    def _narrow(self, name: str, held: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers in the state's type, or refuse one that it cannot hold."""
        with np.errstate(over="ignore"):
            narrow: NDArray[Any] = held.astype(self.dtype)
        if not all_finite(narrow):
            k = int(np.argmin(np.isfinite(narrow)))
            raise ValueError(f"{name}: got {held[k]} in row {k}, expected numbers within the range of {self.dtype}")
        return narrow


def _strength(settings: Settings, n: Any, reach: Any, rounds: int, p: Any) -> Any:
    """Return 1/η_T of every coordinate: the pieces of the kernels once more, for whole arrays."""
    if settings.rate == "scale_free":
        s = reach[: n.size].astype(np.float64)
        return s * (p[1] * s + np.sqrt(n)) * p[0]
    if settings.rate == "adagrad":
        return (p[1] + np.sqrt(n)) * p[0]
    return p[0] if settings.rate == "constant" else np.sqrt(rounds + p[2]) * p[0]


def _domain(loss: str, classes: int | None) -> Any:
    from forel.losses import Choice, Classes, Interval

    if classes is not None:
        return Classes(classes)
    return {"logistic": Interval(0, 1), "hinge": Choice((-1, 1)), "squared_hinge": Choice((-1, 1))}.get(
        loss, Interval()
    )


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise refuse(name, value, f"one of {', '.join(allowed)}")

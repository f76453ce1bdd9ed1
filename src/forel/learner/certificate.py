r"""Certificates: regret, its bound, and lower bounds on the loss of fixed models, from a few running sums.

With $S = \sum_t g_t \cdot x_t$, $g_{1:T}$, and the strength and linear part of $r_{0:T}$, the regret to any fixed model
is $S - g_{1:T} \cdot x^*$ for the linearized losses, which bounds that for the losses themselves; its maximum over a
ball is a dual norm. The bound is a quadratic in the comparator. For FTRL it is that of the Strong FTRL Lemma,
$r_{0:T}(x^*) + \alpha_{1:T}\Psi(x^*) + \sum_t (h_{0:t}(x_t) - h_{0:t}(x_{t+1}) - r_t(x_t))$; the sum telescopes to
$S - h_{0:T}(x_{T+1})$, which needs no more sums. The theorems that follow from the lemma replace the terms of that sum
by $\frac12\|g_t\|_\star^2$, which is the same without a penalty or a box and never smaller. For Mirror Descent it
is Theorem 12, with $\frac12\sum_t\|g_t\|_\star^2$ as a running sum.

Loss floors need only convexity: for any slopes $a_t$ at margins $m_t$ and rows $f_t$ of importance $v_t$,
$\sum_t v_t \ell_t(f_t \cdot x) \ge \sum_t v_t(\ell_t(m_t) - a_t m_t) + x \cdot \sum_t v_t a_t f_t$.
"""

import decimal
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.theory.norms import L1, L2, LINF
from forel.validation import Unsupported, Vector, non_negative, vector

__all__ = ["Certificate", "LossFloor", "Snapshot"]

DUALS = {"l2": L2, "l1": LINF, "box": L1}
LARGE = 1e9  # from here on, numbers are printed with an exponent
HUGE = 1e280  # from here on, sums of losses may have overflowed


@dataclass(frozen=True, eq=False)
class Certificate:
    """Regret to fixed models after a number of rounds; a model's last coordinate is its bias, where it has one.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances, by which averages are taken
    loss : the total loss on them
    lower : the total loss of any model is at least lower + gradients · model
    gradients : g_{1:T}
    rounding, slack : bounds on the rounding errors of g_{1:T}, in the Euclidean norm, and of ``lower``
    strength, linear, constant, l1, l2, radius : coefficients of the bound on the regret
    result, void : the result that proves the bound, and why a hypothesis of it fails, if so
    least : a lower bound on the loss of any row
    bias : whether the last coordinate is a bias
    floor_void : why there is no lower bound on losses, if so

    >>> from forel.learner.linear import Linear, Settings
    >>> model = Linear(2, Settings(alpha=0.5, bias=False), certified=True)
    >>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]] * 50, [1, 0] * 50)
    >>> proof = model.certificate()
    >>> proof.regret([1.0, -1.0]) <= proof.bound([1.0, -1.0])
    True
    >>> proof.loss_floor(l2=2.0) < proof.loss / proof.rounds
    True

    Survey: Lemma 5 and Theorem 12
    """

    rounds: int
    weight: float
    loss: float
    lower: float
    gradients: Vector
    strength: Vector
    linear: Vector
    constant: float
    l1: Vector
    l2: Vector
    radius: float | None
    result: str
    void: str = ""
    rounding: float = 0.0
    slack: float = 0.0
    least: float = 0.0
    bias: bool = False
    floor_void: str = ""

    def regret(self, model: ArrayLike) -> float:
        r"""Return the linearized regret $\sum_t g_t \cdot (x_t - x^*)$, which bounds the regret of the losses."""
        return self.loss - self.lower - float(self.gradients @ self._model(model))

    def bound(self, model: ArrayLike) -> float:
        """Return the bound on the linearized regret; the penalty counts as part of the regularizer."""
        if self.void:
            raise Unsupported(f"{self.result} is void: {self.void}")
        x = self._model(model)
        if self.radius is not None and LINF(x) > self.radius * (1 + 1e-6):
            raise ValueError(
                f"model: got a weight of {LINF(x):.6g}, outside the radius {self.radius:.6g}, where {self.result} is "
                "void; ask of a model within it"
            )
        regularizer = 0.5 * float((self.strength * x) @ x) - float(self.linear @ x) + self.constant
        penalty = float(self.l1 @ np.abs(x)) + 0.5 * float((self.l2 * x) @ x)
        return regularizer + penalty

    def worst(self, *, l2: float | None = None, l1: float | None = None, box: float | None = None) -> float:
        """Return the largest regret against any model in a ball: ‖x‖₂ ≤ l2, ‖x‖₁ ≤ l1 or |x_i| ≤ box, exactly one."""
        name, size = _ball(l2=l2, l1=l1, box=box)
        return self.loss - self.lower + size * DUALS[name](self.gradients)

    def loss_floor(self, *, l2: float | None = None, l1: float | None = None, box: float | None = None) -> float:
        """Return a lower bound on the average loss of every fixed model in a ball, on the rows so far.

        The bound on rounding errors is subtracted.
        """
        if self.floor_void:
            raise Unsupported(f"no loss floor: {self.floor_void}")
        name, size = _ball(l2=l2, l1=l1, box=box)
        rounding = self.rounding * (math.sqrt(self.gradients.size) if name == "box" else 1.0)
        total = self.lower - self.slack - size * (DUALS[name](self.gradients) + rounding)
        return total / (self.weight or 1.0)

    def summary(self, model: ArrayLike) -> str:
        """Return the loss floor of all models of at most a model's norm, such as the learned one's, in a sentence.

        >>> import numpy as np
        >>> from forel.learner.linear import Linear, Settings
        >>> model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
        >>> _ = model.learn(np.ones((100, 1)), [1] * 60 + [0] * 40)
        >>> model.certificate().summary(model.weights)
        'no fixed model of norm at most 1.643 could have had an average loss below 0.1949 on these 100 rows; ...'
        """
        lower, gradients = self.lower - self.slack, L2(self.gradients)
        floor = LossFloor(
            self.rounds, self.weight, self.loss, lower, gradients, self.rounding, self.least, self.bias, self.floor_void
        )
        return floor.summary(L2(np.asarray(model, dtype=np.float64).ravel()))

    def _model(self, model: ArrayLike) -> Vector:
        return vector("model", np.asarray(model, dtype=np.float64).ravel(), self.gradients.size)


def _ball(**radii: float | None) -> tuple[str, float]:
    """Return the norm for which a radius is given, and the radius."""
    given = {name: size for name, size in radii.items() if size is not None}
    if len(given) != 1:
        raise ValueError(f"{', '.join(radii)}: got {len(given)} of them, expected exactly one")
    ((name, size),) = given.items()
    return name, non_negative(name, size)


@dataclass(frozen=True)
class Snapshot:
    """The sums of a certificate at some moment; differences to later sums are about the rows in between.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances
    sums : the running sums, a column for each lane
    slots, gradients : the coordinates of those rows, and g_{1:t} there, a column for each lane
    mixture_loss, mixture_rows : the loss of a mixture, and the number of rows of its first pass
    """

    rounds: int = 0
    weight: float = 0.0
    sums: NDArray[np.float64] | None = None
    slots: NDArray[np.int64] | None = None
    gradients: NDArray[np.float64] | None = None
    mixture_loss: float = 0.0
    mixture_rows: int = 0


@dataclass(frozen=True)
class LossFloor:
    r"""A lower bound on the average loss of fixed models of norm R, $(E - R\|g_{1:T}\|)/\sum_t v_t$.

    Parameters
    ----------
    rows, weight : the number of rows, and the sum of their importances
    loss : the total loss of the learner
    lower : a lower bound on $E = \sum_t v_t(\ell_t(m_t) - a_t m_t)$
    gradient_norm, rounding : the norm of g_{1:T}, and a bound on its rounding error
    least : a lower bound on the loss of any row
    bias : whether the norm includes a bias
    void : why there is no lower bound, if so

    >>> print(LossFloor(10, 10.0, 5.0, 4.0, 1.0).summary(1.99999))
    no fixed model of norm at most 2 could have had an average loss below 0.2000 on these 10 rows; this one had 0.5000
    """

    rows: int
    weight: float
    loss: float
    lower: float
    gradient_norm: float
    rounding: float = 0.0
    least: float = 0.0
    bias: bool = False
    void: str = ""

    def at(self, norm: float) -> float:
        """Return the floor for models of at most this norm."""
        return (self.lower - norm * (self.gradient_norm + self.rounding)) / (self.weight or 1.0)

    def summary(self, norm: float) -> str:
        """Return the floor for models of at most this norm in a sentence, which is true of the numbers as printed."""
        shown = _upward(norm)
        models = f"fixed models of norm at most {shown}{', bias included,' if self.bias else ''}"
        own, rows = self.loss / (self.weight or 1.0), f"these {self.rows:,} rows"
        mine = f"{own:.4f}" if abs(own) < LARGE else f"{own:.3E}"
        floor = self.at(float(shown))
        void = self.void or ("" if max(abs(floor), abs(own)) < HUGE else "sums left the range of double precision")
        if void:
            return f"nothing is proved of the losses of {models} on {rows}, because {void}"
        if not floor > self.least:
            return f"no average loss is ruled out for {models} on {rows}; this one had {mine}"
        low = _downward(floor)
        models = models.replace("models", "model")
        return f"no {models} could have had an average loss below {low} on {rows}; this one had {mine}"


def _upward(value: float) -> str:
    """Return a number with four digits that is not smaller.

    >>> _upward(18.3512), _upward(2.0), _upward(123456.7), _upward(0.0), _upward(1.23456e30)
    ('18.36', '2', '123500', '0', '1.235E+30')
    """
    text = _directed(value, 3 - _exponent(value), decimal.ROUND_CEILING)
    return text if "." not in text or "E" in text else text.rstrip("0").rstrip(".")


def _downward(value: float) -> str:
    """Return a number with four decimals, and at least four digits, that is not larger.

    >>> _downward(0.35489), _downward(-0.00001), _downward(7631.94999), _downward(0.000123456), _downward(0.0)
    ('0.3548', '-0.00001001', '7631.9499', '0.0001234', '0.0000')
    """
    return _directed(value, max(4, 3 - _exponent(value)), decimal.ROUND_FLOOR)


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _directed(value: float, places: int, rounding: str) -> str:
    """Return a number rounded in one direction to ``places`` decimals; a large one to four digits with an exponent."""
    with decimal.localcontext(prec=1100):  # enough for every double
        if abs(value) >= LARGE:
            short = decimal.Context(prec=4, rounding=rounding).create_decimal(decimal.Decimal(value))
            return f"{short:.3E}"
        return f"{decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-places), rounding=rounding):f}"

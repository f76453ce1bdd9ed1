"""Lower bounds on the average loss of fixed models by their norm, in sentences that are true as printed."""

import decimal
import math
from dataclasses import dataclass, replace
from typing import Any

from forel.data.features.hashing import expected_collisions
from forel.learner.dual import DualPoint

__all__ = ["Frontier", "LossFloor"]

LARGE = 1e9  # numbers from here on are printed with an exponent
SMALL = 1e-9  # and so are numbers below this
HUGE = 1e280  # sums of losses from here on may have overflowed
NEGLIGIBLE = 1e-6  # fraction of the learner's loss below which a floor is not printed
COMPARED = (0.01, 0.1, 0.3, 3.0, 10.0)  # norms, in units of the learned one, at which points are compared
GOAL = 0.9  # fraction of the learner's loss for which the needed weights are printed
LEAST_RATIO = 1.1  # of the needed weights to the learned ones, below which they are not printed
FACTORS = (10, 3, 1)  # times the learned weights for which floors are compared
REMAINING = (0.8, 0.5, 0.0)  # fractions of the learner's loss: the largest factor that leaves one of them is printed


@dataclass(frozen=True)
class Frontier:
    """Certified loss by norm, for plots.

    Parameters
    ----------
    norm, loss : the norm of the learned model, and the average loss of the learner
    scaled : whether norms are scaled
    points : norms, and lower bounds on the average loss of every fixed model of at most this norm
    """

    norm: float
    loss: float
    scaled: bool
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class LossFloor:
    """Lower bounds on the average loss of fixed models by their norm, the largest over some points of the dual problem.

    Parameters
    ----------
    rows, weight : the number of rows, and the sum of their importances
    loss : the total loss of the learner
    norm : the norm of the learned model
    points : the points of the dual problem
    least : a lower bound on the loss of any row
    bias : whether models have a bias, which is part of the norm
    scaled : whether each weight is multiplied by the largest absolute value of its feature in the norm
    void : why there is no lower bound; empty if there is one
    learner, setting : whose loss and whose norm these are; an empty setting is that of the learner
    features : the features of the models
    counts : whether all importances are 1, so that averages are per row
    collide : whether features may share slots

    >>> print(LossFloor(8, 8.0, 4.0, 1.99999, (DualPoint(3.75, 0.0625),)).summary())
    this model had an average loss of 0.5000 on these 8 rows. No fixed linear model of these features with weights up to
    3 times as large as its own (in norm) could have had one below 0.4218: at least 84 % of it would remain, so look for
    better features. One below 0.4500 would need weights at least 1.1 times as large
    """

    rows: int
    weight: float
    loss: float
    norm: float
    points: tuple[DualPoint, ...]
    least: float = 0.0
    bias: bool = False
    scaled: bool = False
    void: str = ""
    learner: str = "this model"
    setting: str = ""
    features: str = "these features"
    counts: bool = True
    collide: bool = False

    def of_hashed_features(self, slots: int, used: int, collisions: int | None = None) -> "LossFloor":
        """Return the floor of models of hashed features, of which some slots have several names.

        Parameters
        ----------
        slots, used : how many slots there are, and how many of them occurred
        collisions : how many have several names; None for an estimate

        >>> floor = LossFloor(0, 0.0, 0.0, 0.0, ())
        >>> floor.of_hashed_features(1 << 22, 11_908).features
        'these 2^22 hashed features (about 17 slots have several names)'
        >>> floor.of_hashed_features(1 << 22, 11_908, 20).features
        'these 2^22 hashed features (20 slots have several names)'
        >>> floor.of_hashed_features(1 << 22, 11_908, 0).collide
        False
        """
        power = slots.bit_length() - 1
        size, about = f"2^{power}" if slots == 1 << power else f"{slots:,}", ""
        if collisions is None and slots == 1 << power:
            collisions, about = round(expected_collisions(used, power)), "about "
        several = "1 slot has" if collisions == 1 else f"{collisions or 0:,} slots have"
        counted = f" ({about}{several} several names)" if collisions else ""
        return replace(self, features=f"these {size} hashed features{counted}", collide=collisions != 0)

    def with_points(self, points: tuple[DualPoint, ...]) -> "LossFloor":
        """Return the floor with further points of the dual problem of the same rows."""
        return replace(self, points=self.points + points, void="" if points else self.void)

    def tightest(self) -> "LossFloor":
        """Return the floor with only the points that give the largest floor at some norm around the learned one."""
        if self.void or len(self.points) < 2 or not 0 < self.norm < HUGE:
            return self
        norms = [float(_upward(self.norm)), *(self.norm * factor for factor in COMPARED)]
        best = {max(self.points, key=lambda point: point.floor(norm)) for norm in norms}
        best.add(max(self.points, key=lambda point: point.needed_norm(float(self._goal) * self.weight)))
        return replace(self, points=tuple(point for point in self.points if point in best))

    @property
    def _goal(self) -> str:
        """The average loss for which the needed norm is printed."""
        return _downward(self.average - (1 - GOAL) * abs(self.average))

    @property
    def average(self) -> float:
        """The average loss of the learner."""
        return self.loss / (self.weight or 1.0)

    def at(self, norm: float) -> float:
        """Return a lower bound on the average loss of every fixed model of at most this norm."""
        return max(point.floor(norm) for point in self.points) / (self.weight or 1.0)

    def needed_norm(self, average: float) -> float:
        """Return a lower bound on the norm of every fixed model whose average loss is smaller than ``average``."""
        total = average * (self.weight or 1.0)
        return max(point.needed_norm(total) for point in self.points)

    def frontier(self) -> Frontier | None:
        """Return floors from a hundredth to ten times the learned norm; None if fewer than two are not trivial.

        >>> LossFloor(8, 8.0, 4.0, 2.0, (DualPoint(3.75, 0.0625),)).frontier().points[0]
        (0.02, 0.46859375)
        """
        if self.void or not self.weight or not 0 < self.norm < HUGE:
            return None
        norms = [float(f"{self.norm * 10 ** (k / 20):.6g}") for k in range(-40, 21)]
        points = tuple((norm, floor) for norm in norms if self._trivial < (floor := self.at(norm)) < HUGE)
        return Frontier(self.norm, self.average, self.scaled, points) if len(points) > 1 else None

    def summary(self) -> str:
        """Return the loss of the learner, how much of it would remain, and the weights that a tenth less needs."""
        models = f"fixed linear models of {self.features}"
        on = "on this row" if self.rows == 1 else f"on these {f'{self.rows:,} ' * bool(self.rows)}rows"
        if void := self.void or self._undefined():
            return f"nothing is proved of the losses of {models} {on}, because {void}"
        loss = "average loss" if self.counts else "average loss per unit of importance"
        first = f"{self.learner} had an {loss} of {self._shown_average} {on}"
        factor, floor = self._strongest()
        if floor is None:
            return f"{first}. No average loss is ruled out for {models} {self._size(1)}{self._inverse()}"
        model = models.replace("models", "model")
        second = f"No {model} {self._size(factor)} could have had one below {floor}: {self._advice(float(floor))}"
        return f"{first}. {second}{self._inverse()}"

    def to_json(self) -> dict[str, Any] | None:
        """Return the numbers behind the sentence: norms and the floor at the learned one; None without a floor.

        >>> LossFloor(8, 8.0, 4.0, 2.0, (DualPoint(3.75, 0.0625),)).to_json()["floor"]
        0.4531
        """
        if (floor := self.proved) is None:
            return None
        needed = self.needed_norm(float(self._goal))
        return {
            **{name: getattr(self, name) for name in ("rows", "weight", "average", "norm", "scaled", "features")},
            "floor": floor,
            "goal": float(self._goal),
            "needed_norm": needed if math.isfinite(needed) else None,
            "verdict": self.verdict,
        }

    @property
    def verdict(self) -> str:
        """What to do, in one sentence with its reason; empty where nothing is proved.

        >>> LossFloor(8, 8.0, 4.0, 2.0, (DualPoint(3.95, 0.0625),)).verdict
        'Good: other fixed weights, no larger than these, could save at most 5 % of the loss. Look for features.'
        """
        if self.least < 0 or (floor := self.proved) is None:
            return ""
        above = self._average_above
        percent = math.ceil(100 * (above - floor) / above)
        weights = "fixed weights, no larger than these,"
        if floor >= above:
            return f"No {weights} would have been better. Look for drift."
        if percent <= 100 * (1 - GOAL) + 1e-9:
            return f"Good: other {weights} could save at most {percent} % of the loss. Look for features."
        return f"Open: other {weights} could save up to {percent} % of the loss. Try more passes or rates."

    @property
    def proved(self) -> float | None:
        """The lower bound for models of at most the learned norm, rounded down to four decimals; None without one.

        >>> LossFloor(8, 8.0, 4.0, 2.0, (DualPoint(3.75, 0.0625),)).proved
        0.4531
        """
        norm = float(_upward(self.norm))
        if self.void or self._undefined() or not self.at(norm) > self._trivial:
            return None
        return float(_directed(self.at(norm), 4, decimal.ROUND_FLOOR))

    @property
    def _trivial(self) -> float:
        """The average loss below which a floor says nothing."""
        return max(self.least, self.average - abs(self.average)) + NEGLIGIBLE * abs(self.average)

    @property
    def _shown_average(self) -> str:
        return f"{self.average:.4f}" if abs(self.average) < LARGE else f"{self.average:.3E}"

    @property
    def _average_above(self) -> float:
        """The average loss, rounded up by more than rounding errors and the printed digits."""
        return max(self.average + 2e-6 * abs(self.average), float(self._shown_average) + 5e-5)

    def _strongest(self) -> tuple[int, str | None]:
        """Return how many times the learned weights are compared, and the printed floor; None without one."""
        norm = float(_upward(self.norm))
        floors = {factor: self.at(factor * norm) for factor in FACTORS}
        for part in REMAINING if self.least >= 0 else ():
            for factor, floor in floors.items():
                if floor >= max(part * self.average, self._trivial):
                    return factor, _downward(floor)
        return 1, _downward(floors[1]) if floors[1] > self._trivial or self.least < 0 else None

    def _advice(self, floor: float) -> str:
        """Return how much of the learner's loss a floor leaves, and what to do about it."""
        above = self._average_above
        if floor >= above:
            return "no such model would have been better: look for drift"
        if self.least >= 0 and floor >= REMAINING[0] * above:
            percent = math.floor(100 * floor / above)
            return f"at least {percent} % of it would remain, so look for better features"
        remedies = "more passes, more rates or fewer collisions" if self.collide else "more passes or more rates"
        return f"up to {_upward(above - floor)} of it may be left for {remedies}"

    def _size(self, factor: int) -> str:
        """Return how large the weights of models are."""
        size = "no larger than" if factor == 1 else f"up to {factor} times as large as"
        whose = f"those of {self.setting}" if self.setting else "its own"
        return f"with weights {size} {whose} (in {'scaled ' * self.scaled}norm{', bias included' * self.bias})"

    def _undefined(self) -> str:
        """Why averages are not defined; empty if they are."""
        if not self.weight:
            return "no row has a positive importance"
        finite = max(abs(self.at(float(_upward(self.norm)))), abs(self.average)) < HUGE
        return "" if finite else "sums left the range of double precision"

    def _inverse(self) -> str:
        """Return a sentence on the weights that a smaller loss would need, or that none has it; empty without one."""
        goal = self._goal
        if not float(goal) > self.least:
            return ""
        if float(goal) <= max(point.least for point in self.points) / (self.weight or 1.0):
            return f". No fixed linear model with weights of any size could have had one below {goal}"
        ratio = self.needed_norm(float(goal)) / float(_upward(self.norm)) if self.norm else math.inf
        if not LEAST_RATIO <= ratio < LARGE:
            return ""
        times = _trimmed(_directed(ratio, max(0, 1 - _exponent(ratio)), decimal.ROUND_FLOOR))
        return f". One below {goal} would need weights at least {times} times as large"


def _upward(value: float) -> str:
    """Round a number up to four digits.

    >>> _upward(18.3512), _upward(2.0), _upward(123456.7), _upward(0.0), _upward(1.23456e30)
    ('18.36', '2', '123500', '0', '1.235E+30')
    """
    return _trimmed(_directed(value, 3 - _exponent(value), decimal.ROUND_CEILING))


def _downward(value: float) -> str:
    """Round a number down to four decimals, and at least four digits.

    >>> _downward(0.35489), _downward(-0.00001), _downward(7631.94999), _downward(0.000123456), _downward(0.0)
    ('0.3548', '-0.00001001', '7631.9499', '0.0001234', '0.0000')
    """
    return _directed(value, max(4, 3 - _exponent(value)), decimal.ROUND_FLOOR)


def _trimmed(text: str) -> str:
    """Return a number without trailing zeros after the decimal point."""
    return text if "." not in text or "E" in text else text.rstrip("0").rstrip(".")


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _directed(value: float, places: int, rounding: str) -> str:
    """Round a number in one direction to ``places`` decimals; a large or small one to four digits with an exponent."""
    with decimal.localcontext(prec=1100):  # enough for every double
        if value and not SMALL <= abs(value) < LARGE:
            short = decimal.Context(prec=4, rounding=rounding).create_decimal(decimal.Decimal(value))
            return f"{short:.3E}"
        return f"{decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-places), rounding=rounding):f}"

"""The experts of a river model: their losses, and the rule that mixes their margins into one prediction."""

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.learner.growing import ledger_of_classes
from forel.learner.ledger import Ledger
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.pooling import Pooling
from forel.learner.settings import Settings
from forel.losses.margin import Mixing

__all__ = ["Experts", "MixedRow"]


class MixedRow(Protocol):
    """The margins of one row, mixed in place; not safe for concurrent use."""

    def learn(self, label: float, weight: float) -> None:
        """Add the losses of the row to the ledger."""
        ...

    def predict(self) -> Any:
        """Return the mixture's margin, or an array with one for each class."""
        ...


class Experts:
    """The ledger of a mixture, which changes in place, and the rule that mixes margins.

    Parameters
    ----------
    settings : the settings that are mixed
    classes : the number of classes; None for one margin
    ledger : the losses so far; None for a new mixture

    >>> experts = Experts(Settings(alpha=(0.1, 1.0)))
    >>> experts.learn(np.array([[0.0, 2.0]]), np.array([1.0]), np.array([1.0]))
    >>> experts.best, experts.ledger.losses.round(2)
    (1, array([0.69, 0.13]))
    """

    def __init__(self, settings: Settings, classes: int | None = None, ledger: Ledger | None = None) -> None:
        self.pooling = Pooling(settings, classes, False, None)
        self.ledger = self.pooling.ledger(settings.lanes) if ledger is None else ledger

    @property
    def settings(self) -> Settings:
        """The settings that are mixed."""
        return self.pooling.settings

    @property
    def best(self) -> int:
        """The setting with the smallest loss."""
        return int(np.argmin(self.ledger.losses[: self.settings.lanes]))

    @property
    def columns(self) -> int:
        """The number of margins of a row, without those of lanes that have no class yet."""
        return self.settings.lanes * (self.pooling.classes or 1)

    def copied(self) -> "Experts":
        """Return a copy."""
        return Experts(self.settings, self.pooling.classes, self.ledger.copy())

    def learn(self, margins: NDArray[Any], labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Add the losses of rows to the ledger, from their margins before learning."""
        weight, ledger = weight.astype(np.float64), self.ledger
        self.pooling.mix(margins[:, : self.columns], labels.astype(np.float64), weight, ledger)
        ledger.rows += len(weight)
        for each in weight.tolist():
            ledger.weight += each

    def predict(self, margins: NDArray[Any]) -> NDArray[Any]:
        """Return the mixture's margins of rows; for several classes, log-probabilities where the loss has any."""
        return self.pooling.predict(margins[:, : self.columns], self.ledger)

    def row(self, out: NDArray[Any]) -> MixedRow:
        """Return the mixer of one row, whose margins the kernel writes to ``out``."""
        bayes = self.pooling.mixing is Mixing.BAYES and self.pooling.classes is None
        return BayesRow(self, out) if bayes else AnyRow(self, out)

    def with_classes(self, classes: int) -> "Experts":
        """Return the experts for one more class; a third class drops filters and mixers."""
        if self.pooling.classes is not None:
            return Experts(self.settings, classes, self.ledger)
        ledger = ledger_of_classes(self.ledger, self.settings)
        return Experts(replace(self.settings, filters=(), full_filters=()), classes, ledger)

    def mixture(self, linear: Linear) -> Mixture:
        """Return a mixture of linear models with these weights, which shares their state."""
        return Mixture.from_linear(linear, self.ledger)


class AnyRow:
    """Mixes one row by any rule."""

    __slots__ = ("experts", "out")

    def __init__(self, experts: Experts, out: NDArray[Any]) -> None:
        self.experts, self.out = experts, out[None, :]

    def learn(self, label: float, weight: float) -> None:
        """Add the losses of the row to the ledger."""
        self.experts.learn(self.out, np.array([label]), np.array([weight]))

    def predict(self) -> Any:
        """Return the mixture's margin, or an array with one for each class."""
        found = self.experts.predict(self.out)[0]
        return found.item() if found.size == 1 else found


class BayesRow:
    """Mixes one row of two classes by exponential weights, in one compiled call."""

    __slots__ = ("answer", "given", "ledger", "margins", "mix", "out", "scratch")

    def __init__(self, experts: Experts, out: NDArray[Any]) -> None:
        from forel.learner.kernels.kernel import routine

        self.out, self.ledger = out, experts.ledger
        self.margins, self.given, self.answer = np.zeros((1, out.size)), np.zeros(2), np.zeros(1)
        mixers = self.ledger.mixers
        parameters = np.array([(mixer.variance, mixer.memory) for mixer in mixers]).reshape(len(mixers), 2)
        self.scratch = parameters, self.ledger.array, np.zeros((1, len(mixers))), np.zeros((1, out.size + len(mixers)))
        self.mix = routine("expert_row", "mix_row")

    def learn(self, label: float, weight: float) -> None:
        """Add the losses of the row to the ledger."""
        self._mixed(label, weight)
        self.ledger.rows += 1
        self.ledger.weight += weight

    def predict(self) -> Any:
        """Return the mixture's margin."""
        return self._mixed(0.0, -1.0)

    def _mixed(self, label: float, weight: float) -> float:
        self.margins[0] = self.out
        self.given[0], self.given[1] = label, weight
        self.mix(self.margins, self.given, *self.scratch, self.answer)
        return float(self.answer[0])

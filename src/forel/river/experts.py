"""The experts of a river model: their losses, and the rule that mixes their margins into one prediction."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.mixers import Mixers
from forel.learner.mixture import Mixture
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.learner.state import State
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
    """The mixture of a river model, which changes in place.

    Parameters
    ----------
    settings : the settings that are mixed
    classes : the number of classes; None for one margin
    mixture : the losses so far; None for a new mixture

    >>> experts = Experts(Settings(alpha=(0.1, 1.0)))
    >>> experts.learn(np.array([[0.0, 2.0]]), np.array([1.0]), np.array([1.0]))
    >>> experts.best, experts.mixture.ledger.losses.round(2)
    (1, array([0.69, 0.13]))
    """

    def __init__(self, settings: Settings, classes: int | None = None, mixture: Mixture | None = None) -> None:
        self.mixture = Mixture(settings, classes) if mixture is None else mixture

    @property
    def settings(self) -> Settings:
        """The settings that are mixed."""
        return self.mixture.settings

    @property
    def best(self) -> int:
        """The setting with the smallest loss."""
        return int(np.argmin(self.mixture.ledger.losses[: self.settings.n_settings]))

    @property
    def columns(self) -> int:
        """The number of margins of a row, without those of lanes that have no class yet."""
        return self.settings.n_settings * (self.mixture.classes or 1)

    def copied(self) -> "Experts":
        """Return a copy."""
        return Experts(self.settings, self.mixture.classes, self.mixture.copy())

    def learn(self, margins: NDArray[Any], labels: NDArray[Any], weight: NDArray[Any]) -> None:
        """Add the losses of rows to the ledger, from their margins before learning."""
        rows = Rows(np.zeros(len(margins) + 1, np.int64), np.empty(0), np.empty(0))
        given = Examples(rows, labels.astype(np.float64), weight.astype(np.float64))
        self.mixture.learn(given, margins[:, : self.columns])

    def predict(self, margins: NDArray[Any]) -> NDArray[Any]:
        """Return the mixture's margins of rows; for several classes, log-probabilities where the loss has any."""
        return self.mixture.mixed(margins[:, : self.columns])

    def row(self, out: NDArray[Any]) -> MixedRow:
        """Return the mixer of one row, whose margins the kernel writes to ``out``."""
        bayes = self.mixture.rule is Mixing.BAYES and self.mixture.classes is None
        return BayesRow(self, out) if bayes else AnyRow(self, out)

    def with_classes(self, classes: int) -> "Experts":
        """Return the experts for one more class; a third class drops filters and mixers."""
        mixture = self.mixture.with_classes(classes)
        return Experts(mixture.settings, classes, mixture)

    def learner(self, state: State) -> Learner:
        """Return a mixture of linear models with these weights, which shares their state."""
        return Learner.of(state, self.mixture, self.mixture.classes)


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

        self.out, self.ledger = out, experts.mixture.ledger
        self.margins, self.given, self.answer = np.zeros((1, out.size)), np.zeros(2), np.zeros(1)
        mixers = experts.mixture.mixers or Mixers((), out.size, Mixing.BAYES)
        count = len(mixers.names)
        margins = np.zeros((1, count)), np.zeros((1, out.size + count))
        self.scratch = mixers.parameters, mixers.states, self.ledger.array, *margins
        self.mix = routine("expert_row", "mix_row")

    def learn(self, label: float, weight: float) -> None:
        """Add the losses of the row to the ledger."""
        self._mixed(label, weight)
        self.ledger.rows += 1
        self.ledger.total_importance += weight

    def predict(self) -> Any:
        """Return the mixture's margin."""
        return self._mixed(0.0, -1.0)

    def _mixed(self, label: float, weight: float) -> float:
        self.margins[0] = self.out
        self.given[0], self.given[1] = label, weight
        self.mix(self.margins, self.given, *self.scratch, self.answer)
        return float(self.answer[0])

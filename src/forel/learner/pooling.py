"""Pooling: one prediction from those of several settings, and the bound on the cost of mixing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import summed
from forel.learner.ledger import LOSS_LIMIT, UNSEEN, Ledger
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.losses.sigmoid import in_blocks, log_normalized, log_normalized_sigmoid
from forel.validation import number, refuse

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Pooling"]

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Pooling:
    """The rule by which the margins of several settings are mixed.

    Parameters
    ----------
    settings : the settings that are mixed
    classes : the number of classes; None for one margin
    joint : whether all classes share one loss
    share : the share of fixed share; None without it

    >>> Pooling(Settings("absolute"), None, False, None).clips
    True
    """

    settings: Settings
    classes: int | None
    joint: bool
    share: float | None

    def __post_init__(self) -> None:
        if self.share is not None:
            largest = (self.settings.lanes - 1) / self.settings.lanes
            number("share", self.share, f"a number above 0 and at most {largest:g}", low=1e-12, high=largest)
            loss = self.settings.loss_function
            if loss.mixing is not Mixing.BAYES or loss.joint or self.classes is not None:
                raise refuse("share", self.share, "None, but for log-loss of two classes")

    @property
    def mixing(self) -> Mixing:
        """The kind of mixing that the loss allows."""
        return self.settings.loss_function.mixing

    @property
    def tracks(self) -> bool:
        """Whether fixed share is one of the experts, and not the rule."""
        return self.settings.tracker and self.share is None

    def ledger(self, count: int) -> Ledger:
        """Return the ledger of a mixture of this number of settings before the first row."""
        ledger = Ledger(count, self.share is not None, self.settings.mixers, self.tracks)
        if all(self.settings.loss_function.link.clipping):
            ledger.lowest, ledger.highest = UNSEEN
        return ledger

    @property
    def clips(self) -> bool:
        """Whether predictions are clipped to the range of earlier labels, which does not increase the loss of those."""
        return any(self.settings.loss_function.link.clipping)

    def mix(
        self, margins: NDArray[Any], labels: NDArray[Any], importance: NDArray[Any], ledger: Ledger
    ) -> NDArray[Any]:
        """Return the mixture's margins, one column per class, and add the losses of rows to the ledger.

        Rows of negative importance are predicted only.
        """
        from forel.learner.kernels.kernel import routine

        out, sums = np.empty((len(margins), self.classes or 1)), ledger.sums
        if self.mixing is Mixing.EXP_CONCAVE:
            self._mix_squared(margins, labels, importance, ledger, out[:, 0])
            return out
        if ledger.mixers:
            mixers = self._mixers(margins, ledger)
            margins = np.asarray(margins, np.float64)  # of one type, so that the routine is compiled once
            routine("geometric", "mix")(margins, labels, importance, *mixers)
            margins = np.column_stack([margins, mixers[-1]])
        if self.share is not None:
            routine("mixing", "fixed_share")(margins, labels, importance, self.share, sums, out[:, 0])
            return out
        if self.mixing is Mixing.BAYES and self.classes is None:
            routine("bayes", "bayes")(margins.ravel(), margins.shape[1], labels, importance, sums, out[:, 0])
            return out
        if self.mixing is Mixing.BAYES and margins.shape[1] == self.classes and not (importance >= 0).any():
            return self._log_probabilities(margins)[:, :, 0]  # one setting: nothing to mix
        if self.mixing is Mixing.BAYES:
            routine("mixing", "bayes_classes")(self._log_probabilities(margins), labels, importance, sums, out)
            return out
        each = self._by_class(margins)
        if self.clips:
            low, high = self._range(labels, importance, ledger)
            each = np.clip(each, low[:, None, None], high[:, None, None])
        routine("mixing", "adahedge")(each, self._losses(each, labels), importance, sums, out)
        losses = np.maximum(importance, 0.0) * self._losses(out[:, :, None], labels)[:, 0]
        ledger.loss = summed(ledger.loss, losses)
        return out

    def _mix_squared(
        self, margins: NDArray[Any], labels: NDArray[Any], importance: NDArray[Any], ledger: Ledger, out: Array
    ) -> None:
        """Do the same for squared loss, with all predictions clipped to the range of labels before each row."""
        from forel.learner.kernels.kernel import routine

        low, high = self._range(labels, importance, ledger)
        every = np.clip(margins.astype(np.float64), low[:, None], high[:, None])
        if ledger.mixers:
            parameters, states, mixed = self._mixers(margins, ledger)
            own = parameters, states, ledger.residuals, mixed
            routine("ridge", "mix")(every, labels, importance, low, high, *own)
            every = np.column_stack([every, mixed])
        routine("mixing", "squared")(every, labels, importance, high - low, ledger.sums, out)

    @staticmethod
    def _mixers(margins: NDArray[Any], ledger: Ledger) -> tuple[Array, Array, Array]:
        """Return the parameters and states of mixers, and an array for their margins."""
        parameters = np.array([(mixer.variance, mixer.memory) for mixer in ledger.mixers])
        return parameters, ledger.mixer_states, np.empty((len(margins), len(ledger.mixers)))

    def predict(self, margins: NDArray[Any], ledger: Ledger) -> NDArray[Any]:
        """Return the mixture's margins without changing the ledger."""
        # A copy of the ledger, because the arrays of a model may be read-only.
        return self.mix(margins, np.zeros(len(margins)), np.full(len(margins), -1.0), ledger.copy())

    def weights(self, ledger: Ledger) -> Array:
        """Return the weight of each setting in the next prediction."""
        if self.share is not None:
            return ledger.weights.copy()
        rate, behind = self.rate(ledger), ledger.losses - ledger.losses.min()
        weights = np.exp(-behind * rate) if np.isfinite(rate) else 1.0 * (behind == 0)
        normalized: Array = weights / weights.sum()
        return normalized

    def flat_weights(self, ledger: Ledger) -> Array:
        """Return the weights of experts without fixed share, whose weight they have in proportion to those it uses."""
        weights = self.weights(ledger)
        return weights[:-1] + weights[-1] * ledger.weights if ledger.tracker else weights

    def bound(self, ledger: Ledger) -> tuple[str, float, str]:
        """Return the result that bounds the regret to the best setting, the bound, and why it is void, if it is."""
        from forel.experts import FixedShare

        count = ledger.experts
        if self.share is not None:
            settings = self.settings
            rule = FixedShare(share=self.share)
            count = max(count, len(settings.expert_kinds) - settings.tracker)  # with those that were dropped
            void = "a row's importance was above 1, for which there is no bound with a share"
            return rule.result, rule.cost(count, ledger.rows, 0), void if ledger.largest_importance > 1 else ""
        if self.mixing is Mixing.CONVEX:
            return f"AdaHedge, {self.mixing.value}", 2 * ledger.gap, ""
        rate = self.rate(ledger)
        limit = float(np.log(count)) / rate if rate else 0.0
        return f"exponential weights, {self.mixing.value}", limit + ledger.gap, ""

    def guarantee(self, ledger: Ledger, names: tuple[str, ...]) -> "Guarantee":
        """Return the regret of the mixture to its best expert, and the bound on it."""
        from forel.experts import Guarantee

        rows, losses, best = ledger.rows, ledger.losses, int(np.argmin(ledger.losses))
        result, limit, void = self.bound(ledger)
        if max(abs(ledger.loss), losses.max(), limit) >= LOSS_LIMIT:
            void = "a loss left the range of double precision; scale the features"
        other = losses[best].item()
        limit += EPS * (rows + 8) * (abs(ledger.loss) + abs(other))  # rounding errors of sums
        clipped = ", predictions clipped to the labels seen before," if self.clips else ""
        kind = "experts" if self.settings.filters else "settings"
        against = f"the best of {losses.size} {kind}{clipped} over {rows:,} rows, which is {names[best]}"
        counts = rows and ledger.weight == rows and ledger.largest_importance <= 1  # all importances are 1
        weight = None if counts else ledger.weight
        return Guarantee(result, against, rows, ledger.loss, other, float(limit), void, weight)

    def without_last(self, ledger: Ledger, count: int) -> Ledger:
        """Return the ledger without the last settings; what their prior weight costs is added to what the bound allows.

        Until now the loss is at most that of a remaining expert plus (log K)/η, with K all experts.
        """
        new, rate = ledger.without_last(count), self.rate(ledger)
        new.gap += float(np.log(ledger.experts / new.experts)) / rate if rate else 0.0
        return new

    def rate(self, ledger: Ledger) -> float:
        """Return the learning rate η of the weights, which are proportional to e^{−ηL}."""
        if self.mixing is Mixing.CONVEX:
            return float(np.log(self.settings.lanes)) / ledger.gap if ledger.gap > 0 else 0.0
        largest = max(1.0, ledger.largest_importance)
        if self.mixing is Mixing.BAYES:
            return 1 / largest
        low, high = ledger.label_range
        span = high - low
        certain = 1 / (largest * span * span) if span > 0 else np.inf
        return max(certain, float(np.log(ledger.experts)) / ledger.gap if ledger.gap > 0 else np.inf)

    def _range(self, labels: NDArray[Any], importance: NDArray[Any], ledger: Ledger) -> tuple[Array, Array]:
        """Return the smallest and the largest label before each row as margins; 0 before the first label.

        If predictions are not clipped below, the largest label is at least 0 as a margin.
        """
        link, learned = self.settings.loss_function.link, importance >= 0
        labels = link.inverse(labels)
        high = np.maximum.accumulate(np.append(ledger.highest, np.where(learned, labels, -np.inf)))
        ledger.highest = high[-1]
        if not link.clipping.below:
            return np.full(len(labels), -np.inf), high[:-1]
        low = np.minimum.accumulate(np.append(ledger.lowest, np.where(learned, labels, np.inf)))
        ledger.lowest = low[-1]
        unseen = low > high
        return np.where(unseen, 0.0, low)[:-1], np.where(unseen, 0.0, high)[:-1]

    def _by_class(self, margins: NDArray[Any]) -> Array:
        """Return margins by row, class and setting."""
        classes = self.classes or 1
        return margins.astype(np.float64).reshape(len(margins), classes, margins.shape[1] // classes)

    def _log_probabilities(self, margins: NDArray[Any]) -> Array:
        """Return the logarithms of probabilities by row, class and setting."""
        normalized = log_normalized if self.joint else log_normalized_sigmoid

        def normalize(part: Array) -> Array:
            # Reductions over the last axis are several times as fast as over the one in the middle.
            return normalized(np.ascontiguousarray(part.transpose(0, 2, 1))).transpose(0, 2, 1)

        return in_blocks(normalize, self._by_class(margins))

    def _losses(self, margins: NDArray[Any], labels: NDArray[Any]) -> Array:
        """Return losses by row and setting, summed over classes, from margins by row, class and setting."""
        targets = labels[:, None, None]
        if self.classes is not None:
            is_class = targets == np.arange(self.classes)[None, :, None]
            targets = np.where(is_class, 1.0, -1.0 if self.settings.signed else 0.0)
        with np.errstate(over="ignore"):
            values = np.asarray(self.settings.loss_function(margins.astype(np.float64), targets), np.float64)
        return np.ascontiguousarray(np.minimum(values.sum(axis=1), LOSS_LIMIT))

r"""Mixtures: experts learned in parallel and weighted by their losses, without tuning.

Log-loss: with $p_{t,k}$ the probability of expert k, the mixture predicts $p_t = \sum_k w_{t,k} p_{t,k}$ with
$w_{t,k} \propto e^{-\ell_{1:t-1,k}}$, and its total loss exceeds that of the best of K experts by at most $\log K$.
Squared loss, with predictions clipped to the range of labels seen so far, of length b − a: the same with a rate η, by
at most $\log K/\eta + \Delta$, with Δ the measured cost of rates above $1/(b-a)^2$ and of labels outside the range of
those before them; η is $\log K/\Delta$, or $1/(b-a)^2$ if that is more. Other losses: margins are mixed by AdaHedge.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.curve_experts import CurveExperts
from forel.learner.experts import ExpertGroup, Inputs
from forel.learner.full_filters import FullFilters
from forel.learner.kernels.ledger_layout import (
    EMPTY_RANGE,
    GAP,
    HEAD,
    HIGHEST,
    IMPORTANCE,
    LOSS,
    LOSS_LIMIT,
    LOWEST,
    ROWS,
    TOTAL,
)  # fmt: skip
from forel.learner.mixers import Mixers
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.learner.state import summed
from forel.losses.margin import Mixing
from forel.losses.sigmoid import in_blocks, log_normalized, log_normalized_sigmoid
from forel.markup import counted
from forel.validation import number, refuse

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Ledger", "Mixture"]

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


def _field(index: int, meaning: str) -> Any:
    """Return a property for one of the first numbers of a ledger."""

    def get(self: "Ledger") -> float:
        return float(self.array[index])

    def put(self: "Ledger", value: float) -> None:
        self.array[index] = value

    return property(get, put, doc=meaning)


class Ledger:
    """The running sums of a mixture in one array, which compiled code updates in place.

    Parameters
    ----------
    inputs : the number of settings and of experts in groups that are not stacked
    stacked : the number of experts in stacked groups
    fixed_share_expert : whether fixed share over all other experts is one more expert, the last
    shares : whether fixed share is the rule, so that the weights of experts are kept

    >>> ledger = Ledger(2, shares=True)
    >>> ledger.array.size, ledger.weights
    (11, array([0.5, 0.5]))
    """

    loss = _field(LOSS, "The loss of the mixture, summed over all rows.")
    largest_importance = _field(IMPORTANCE, "The largest importance of a row.")
    gap = _field(GAP, "The mixability gap of AdaHedge; of exponential weights, the excess over what their rate allows.")
    lowest = _field(LOWEST, "The smallest label of all rows as a margin; above ``highest`` before the first one.")
    highest = _field(HIGHEST, "The largest label as a margin; at least 0 where predictions are not clipped below.")
    total_importance = _field(TOTAL, "The sum of the importances of all rows.")

    def __init__(self, inputs: int, stacked: int = 0, fixed_share_expert: bool = False, shares: bool = False) -> None:
        self.inputs, self.stacked, self.fixed_share_expert, self.shares = inputs, stacked, fixed_share_expert, shares
        self.experts = inputs + stacked + fixed_share_expert
        self.array: Array = np.zeros(HEAD + (2 if shares or fixed_share_expert else 1) * self.experts)
        self.weights[:] = 1 / (self.experts - fixed_share_expert)

    def copy(self) -> "Ledger":
        """Return a copy."""
        new = copy(self)
        new.array = self.array.copy()
        return new

    def without_inputs(self, first: int, count: int) -> "Ledger":
        """Return the numbers without those of some inputs, whose weight the others share in proportion."""
        new = Ledger(self.inputs - count, self.stacked, self.fixed_share_expert, self.shares)
        some = slice(first, first + count)
        new.array[:HEAD], new.losses[:] = self.array[:HEAD], np.delete(self.losses, some)
        if self.weights.size:
            shared = np.delete(self.weights, some)
            new.weights[:] = shared / shared.sum()
        if self.fixed_share_expert:
            new.array[-1] = self.array[-1]  # the number of rows that it learned from
        return new

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.array[ROWS])

    @rows.setter
    def rows(self, value: int) -> None:
        self.array[ROWS] = value

    @property
    def label_range(self) -> tuple[float, float]:
        """The smallest and the largest label as margins; both 0 before the first one."""
        return (self.lowest, self.highest) if self.lowest <= self.highest else (0.0, 0.0)

    @property
    def losses(self) -> Array:
        """The loss of each expert, summed over all rows, settings first: a view."""
        return self.array[HEAD : HEAD + self.experts]

    @property
    def weights(self) -> Array:
        """The weights of experts under fixed share, itself not among them: a view, empty without fixed share."""
        return self.array[HEAD + self.experts : -1 if self.fixed_share_expert else None]


class Mixture:
    """The experts of a learner beyond its settings, the losses of all experts, and the rule that mixes them.

    A group of experts that cannot continue is dropped. Its weight goes to the other experts in proportion, and the
    guarantee includes what its prior weight costs.

    Parameters
    ----------
    settings : the settings that are mixed
    classes : the number of classes; None for one margin
    share : the share of fixed share as the rule; None without it
    curves : features of further experts, for one margin of log-loss or squared loss; None for none
    dtype : of the state of these experts
    further : returns one more group of experts; None for none

    >>> Mixture(Settings("absolute")).clips
    True
    """

    def __init__(
        self,
        settings: Settings,
        classes: int | None = None,
        share: float | None = None,
        curves: Curves | None = None,
        dtype: Any = np.float32,
        further: "Callable[[], ExpertGroup] | None" = None,
    ) -> None:
        self.settings, self.classes, self.share, self.curves, self.dtype = settings, classes, share, curves, dtype
        self._further = further
        loss = settings.loss_function
        self.rule, self.joint = loss.mixing, loss.joint
        self.clips = any(loss.link.clipping)  # to the range of earlier labels, which does not increase their loss
        if share is not None:
            largest = (settings.n_settings - 1) / settings.n_settings
            number("share", share, f"a number above 0 and at most {largest:g}", low=1e-12, high=largest)
            if self.rule is not Mixing.BAYES or self.joint or classes is not None:
                raise refuse("share", share, "None, but for log-loss of two classes")
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first row."""
        own, logistic = self.settings, self.rule is Mixing.BAYES
        self.groups: list[ExpertGroup] = []
        if own.full_filters:
            self.groups.append(FullFilters(own.full_filters, logistic, own.bias))
        if self._further is not None:
            self.groups.append(self._further())
        elif self.curves is not None:
            self.groups.append(CurveExperts(self.curves, replace(own, full_filters=()), logistic, self.dtype))
        inputs = own.n_settings + sum(len(group.names) for group in self.groups)
        if own.mixers:
            self.groups.append(Mixers(own.mixers, inputs, self.rule))
        stacked = sum(len(group.names) for group in self.groups if group.stacked)
        self.ledger = Ledger(inputs, stacked, own.fixed_share_expert and self.share is None, self.share is not None)
        if all(own.loss_function.link.clipping):
            self.ledger.lowest, self.ledger.highest = EMPTY_RANGE
        self._keys = [group.key for group in self.groups]  # of arrays in model files
        if self.curves is not None:
            self._keys.insert(bool(own.full_filters), "curves")

    def copy(self) -> "Mixture":
        """Return a copy."""
        new = copy(self)
        new.groups, new.ledger = [group.copy() for group in self.groups], self.ledger.copy()
        return new

    @property
    def full_filters(self) -> FullFilters | None:
        """The full-covariance filters; None if there are none, or no longer any."""
        return next((group for group in self.groups if isinstance(group, FullFilters)), None)

    @property
    def curve_experts(self) -> CurveExperts | None:
        """The experts on curves; None if there are none."""
        return next((group for group in self.groups if isinstance(group, CurveExperts)), None)

    @property
    def mixers(self) -> Mixers | None:
        """The mixers; None if there are none."""
        return next((group for group in self.groups if isinstance(group, Mixers)), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts: settings by the parameters in which they differ, then the others."""
        added = tuple(name for group in self.groups for name in group.names)
        return self.settings.names + added + (("fixed share",) if self.ledger.fixed_share_expert else ())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each expert: "setting", "filter", "full filter", "mixer" or "fixed share"."""
        own = ("setting",) * self.settings.first_filter + ("filter",) * len(self.settings.filters)
        added = tuple(group.kind for group in self.groups for _ in group.names)
        return own + added + (("fixed share",) if self.ledger.fixed_share_expert else ())

    def learn(self, given: Examples, margins: NDArray[Any], again: bool = False) -> NDArray[Any]:
        """Return the mixture's margins, let groups of experts learn, and add losses to the ledger.

        Parameters
        ----------
        given : the rows
        margins : of settings, a column for each lane
        again : whether rows are those of an earlier pass, which only groups that are not stacked learn
        """
        ledger = self.ledger
        if not again:
            learned = given.importance[given.importance >= 0]
            ledger.rows += learned.size
            ledger.total_importance = summed(ledger.total_importance, learned)
        none = Inputs(*(np.empty((0, 0)),) * 3, again)
        columns = [margins, *(group.learn(given, none) for group in self._independent)]
        start, out = 0, []
        while True:
            stop = min(map(len, columns))
            every = self._joined([column[start:stop] for column in columns])
            out.append(self._mix(given.labels[start:stop], given.importance[start:stop], every, again))
            if stop == given.rows.number:
                return out[0] if len(out) == 1 else np.concatenate(out)
            for k in reversed([k for k, column in enumerate(columns) if len(column) == stop]):
                self._drop(self._independent[k - 1])
                del columns[k]
            start = stop

    @property
    def _independent(self) -> list[ExpertGroup]:
        """The groups that are not stacked, in the order of their columns after those of the settings."""
        return [group for group in self.groups if not group.stacked]

    def _joined(self, columns: list[NDArray[Any]]) -> NDArray[Any]:
        """Return the margins of settings and groups side by side, for several classes by class."""
        if len(columns) == 1:
            return columns[0]
        if self.classes is None:
            return np.hstack(columns)
        count = len(columns[0])
        return np.concatenate([one.reshape(count, self.classes, -1) for one in columns], axis=2).reshape(count, -1)

    def predict(self, rows: Rows, margins: NDArray[Any]) -> NDArray[Any]:
        """Return the mixture's margins of rows; nothing changes."""
        none = Inputs(*(np.empty((0, 0)),) * 3)
        return self.mixed(self._joined([margins, *(group.predict(rows, none) for group in self._independent)]))

    def mixed(self, margins: NDArray[Any]) -> NDArray[Any]:
        """Return the mixture's margins of rows with these margins of its settings and independent groups."""
        count = len(margins)
        return self._mix(np.zeros(count), np.full(count, -1.0), margins, True)

    def _mix(self, labels: Array, importance: Array, margins: NDArray[Any], again: bool) -> NDArray[Any]:
        """Mix margins, a column for each input, and add losses to the ledger unless ``again``."""
        from forel.learner.kernels.kernel import routine

        # A copy if nothing is to change, because the arrays of a model may be read-only.
        ledger, count = self.ledger.copy() if again else self.ledger, len(margins)
        importance = np.full(count, -1.0) if again else importance
        out = np.empty((count, self.classes or 1))
        low = high = np.zeros(0)
        if self.rule is Mixing.EXP_CONCAVE:
            low, high = self._range(labels, importance, ledger)
            margins = np.clip(margins.astype(np.float64), low[:, None], high[:, None])
        if self.mixers is not None:
            margins = np.asarray(margins, np.float64)  # of one type, so that the routine is compiled once
            rows, inputs = Rows(np.zeros(count + 1, np.int64), np.empty(0), np.empty(0)), Inputs(margins, low, high)
            given = Examples(rows, labels, importance)
            stacked = [group for group in self.groups if group.stacked]
            own = [group.predict(rows, inputs) if again else group.learn(given, inputs) for group in stacked]
            margins = np.column_stack([margins, *own])
        if self.rule is Mixing.EXP_CONCAVE:
            routine("mixing", "squared")(margins, labels, importance, high - low, ledger.array, out[:, 0])
        elif self.share is not None:
            routine("mixing", "fixed_share")(margins, labels, importance, self.share, ledger.array, out[:, 0])
        elif self.rule is Mixing.BAYES and self.classes is None:
            columns = margins.shape[1]
            routine("bayes", "bayes")(margins.ravel(), columns, labels, importance, ledger.array, out[:, 0])
        elif self.rule is Mixing.BAYES:
            routine("mixing", "bayes_classes")(self._log_probabilities(margins), labels, importance, ledger.array, out)
        else:
            each = self._by_class(margins)
            if self.clips:
                low, high = self._range(labels, importance, ledger)
                each = np.clip(each, low[:, None, None], high[:, None, None])
            routine("mixing", "adahedge")(each, self._losses(each, labels), importance, ledger.array, out)
            losses = np.maximum(importance, 0.0) * self._losses(out[:, :, None], labels)[:, 0]
            ledger.loss = summed(ledger.loss, losses)
        return out

    def drop_full_filters(self) -> None:
        """Continue without full-covariance filters, and experts on curves."""
        for group in [one for one in self._independent if one in (self.full_filters, self.curve_experts)]:
            self._drop(group)
        if self._further is not None:
            self._drop(self._independent[0])
        self.curves = self._further = None
        self._keys = [group.key for group in self.groups]

    def _drop(self, group: ExpertGroup) -> None:
        """Continue without a group; what its prior weight costs is added to what the bound allows.

        Until now the loss is at most that of a remaining expert plus (log K)/η, with K all experts.
        """
        independent, count, rate = self._independent, len(group.names), self.rate()
        before = independent[: independent.index(group)]
        first = self.settings.n_settings + sum(len(one.names) for one in before)
        ledger = self.ledger.without_inputs(first, count)
        ledger.gap += float(np.log(self.ledger.experts / ledger.experts)) / rate if rate else 0.0
        self.ledger = ledger
        self.groups = [one.without_inputs(first, count) for one in self.groups if one is not group]

    def with_classes(self, count: int) -> "Mixture":
        """Return the mixture of a model of more classes; one of two classes continues without filters and mixers.

        Each class against the rest has the same log-loss as both together, and without probabilities the sum of losses
        is twice as large. Leaving experts out costs at most the logarithm of how many times fewer there are, which is
        added to what the bound allows.
        """
        before, settings = self.ledger, replace(self.settings, filters=(), full_filters=())
        new = Mixture(settings, count)
        ledger = new.ledger
        ledger.array[:HEAD], ledger.losses[:] = before.array[:HEAD], before.losses[: self.settings.first_filter]
        if self.classes is not None:
            ledger.gap += float(np.log(before.experts / ledger.experts)) / (self.rate() or 1.0)
            return new
        if self.rule is Mixing.BAYES:
            ledger.gap += float(np.log(before.experts / ledger.experts)) / self.rate()
        else:
            ledger.loss, ledger.gap = 2 * ledger.loss, 2 * ledger.gap
            ledger.losses[:] *= 2
        return new

    def weights(self) -> Array:
        """Return the weight of each expert in the next prediction."""
        ledger = self.ledger
        if self.share is not None:
            return ledger.weights.copy()
        rate, behind = self.rate(), ledger.losses - ledger.losses.min()
        weights = np.exp(-behind * rate) if np.isfinite(rate) else 1.0 * (behind == 0)
        normalized: Array = weights / weights.sum()
        return normalized

    def flat_weights(self) -> Array:
        """Return the weights of experts without fixed share, whose weight they have in proportion to those it uses."""
        weights = self.weights()
        return weights[:-1] + weights[-1] * self.ledger.weights if self.ledger.fixed_share_expert else weights

    def rate(self) -> float:
        """Return the learning rate η of the weights, which are proportional to e^{−ηL}."""
        ledger = self.ledger
        if self.rule is Mixing.CONVEX:
            return float(np.log(self.settings.n_settings)) / ledger.gap if ledger.gap > 0 else 0.0
        largest = max(1.0, float(ledger.largest_importance))
        if self.rule is Mixing.BAYES:
            return 1 / largest
        low, high = ledger.label_range
        span = high - low
        certain = 1 / (largest * span * span) if span > 0 else math.inf
        return float(max(certain, np.log(ledger.experts) / ledger.gap if ledger.gap > 0 else math.inf))

    def bound(self) -> tuple[str, float, str]:
        """Return the result that bounds the regret to the best expert, the bound, and why it is void, if it is."""
        from forel.experts import FixedShare

        ledger, count = self.ledger, self.ledger.experts
        if self.share is not None:
            rule = FixedShare(share=self.share)
            count = max(count, self.settings.n_experts - self.settings.fixed_share_expert)  # with those dropped
            void = "a row's importance was above 1, for which there is no bound with a share"
            return rule.result, rule.cost(count, ledger.rows, 0), void if ledger.largest_importance > 1 else ""
        if self.rule is Mixing.CONVEX:
            return f"AdaHedge, {self.rule.value}", 2 * ledger.gap, ""
        rate = self.rate()
        limit = float(np.log(count)) / rate if rate else 0.0
        return f"exponential weights, {self.rule.value}", limit + ledger.gap, ""

    def guarantee(self) -> "Guarantee":
        """Return the regret of the mixture to its best expert, and the bound on it."""
        from forel.experts import Guarantee

        ledger = self.ledger
        rows, losses, best = ledger.rows, ledger.losses, int(np.argmin(ledger.losses))
        result, limit, void = self.bound()
        if max(abs(ledger.loss), losses.max(), limit) >= LOSS_LIMIT:
            void = "a loss left the range of double precision; scale the features"
        void = self.settings.loss_function.not_convex() or void
        other = losses[best].item()
        limit += EPS * (rows + 8) * (abs(ledger.loss) + abs(other))  # rounding errors of sums
        clipped = ", predictions clipped to the labels seen before," if self.clips else ""
        kind = "experts" if self.settings.filters else "settings"
        against = f"the best of {losses.size} {kind}{clipped} over {counted(rows, 'row')}, which is {self.names[best]}"
        counts = rows and ledger.total_importance == rows and ledger.largest_importance <= 1  # all importances are 1
        weight = None if counts else ledger.total_importance
        return Guarantee(result, against, rows, ledger.loss, other, float(limit), void, weight)

    def pack(self) -> dict[str, Array]:
        """Return the state as arrays by their names in model files; that of a group that was dropped is empty."""
        own = {} if self.curves is None else {"curves": self.curves.pack()}
        own |= {group.key: group.pack() for group in self.groups}
        return {"ledger": self.ledger.array, **{key: own.get(key, np.zeros(0)) for key in self._keys}}

    def unpack(self, arrays: dict[str, Array]) -> None:
        """Set the state to arrays that :meth:`pack` returned."""
        self.reset()
        for group in [group for group in self.groups if not arrays[group.key].size]:
            self._drop(group)
        if arrays["ledger"].size != self.ledger.array.size:
            raise refuse("ledger", arrays["ledger"].size, f"{self.ledger.array.size} numbers")
        self.ledger.array[:] = arrays["ledger"]
        for group in self.groups:
            group.unpack(arrays[group.key])

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

"""More classes for a model that has learned: it keeps its state, and new classes start from the initial state."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

from forel.learner.lanes import Labels, Lanes
from forel.learner.ledger import HEAD, Ledger
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.pooling import Pooling
from forel.learner.protocol import Learner
from forel.learner.resizing import place_classes, resize, split_binary
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.validation import refuse

__all__ = ["ledger_of_classes", "settings_lanes", "with_classes"]


def with_classes(learner: Learner, count: int, places: Sequence[int]) -> Learner:
    """Return a learner of ``count`` classes, in which those of ``learner`` have the given places.

    Two classes are one model, which becomes one for each class against the rest. Filters, which are for one margin, are
    left out.

    >>> import numpy as np
    >>> two = Linear(2, Settings(alpha=1.0, bias=False))
    >>> _ = two.learn(np.eye(2), [0, 1])
    >>> three = with_classes(two, 3, [0, 2])
    >>> three.classes, three.weights.round(2).tolist()
    (3, [[0.33..., 0.0, -0.33...], [-0.33..., 0.0, 0.33...]])
    """
    if learner.certified:
        raise refuse("certified", True, "False where classes are added: the rounds of a new class begin later")
    if learner.share is not None:
        raise refuse("share", learner.share, "None where classes are added")
    lanes, joint = learner.linear.copied_lanes(), learner.joint
    labels: Labels = "shared" if joint else "signs" if learner.settings.signed else "classes"
    if learner.classes is None:
        lanes = settings_lanes(lanes)
        lanes = resize(lanes, lanes.features, 2 * lanes.lanes, labels)
        split_binary(lanes, lanes.settings.lanes)
    linear = Linear.from_lanes(place_classes(lanes, count, places, labels), count)
    if learner.pool is None:
        return linear
    binary, ledger = learner.classes is None, learner.pool.ledger
    return Mixture.from_linear(linear, ledger_of_classes(ledger, learner.settings) if binary else ledger.copy())


def settings_lanes(lanes: Lanes) -> Lanes:
    """Return the lanes of settings alone, as filters are for one margin; the same lanes if there are no filters."""
    if not lanes.settings.filters:
        return lanes
    settings: Settings = replace(lanes.settings, filters=(), full_filters=())
    new = Lanes(lanes.features, settings, settings.lanes, lanes.dtype, lanes.certified, lanes.labels)
    new.take(lanes, slice(0, settings.lanes))
    return new


def ledger_of_classes(before: Ledger, settings: Settings) -> Ledger:
    """Return the ledger of a mixture of two classes as that of a model for each class, without filters and mixers.

    Each class against the rest has the same log-loss as both together, and without probabilities the sum of losses is
    twice as large. Leaving experts out costs at most the logarithm of how many times fewer there are, which is added to
    what the bound allows.
    """
    ledger = Ledger(settings.first_filter, False)
    ledger.array[:HEAD], ledger.losses[:] = before.array[:HEAD], before.losses[: settings.first_filter]
    pooling = Pooling(settings, None, False, None)
    if pooling.mixing is Mixing.BAYES:
        ledger.gap += log(before.experts / ledger.experts) / pooling.rate(before)
    else:
        ledger.loss, ledger.gap = 2 * ledger.loss, 2 * ledger.gap
        ledger.losses[:] *= 2
    return ledger

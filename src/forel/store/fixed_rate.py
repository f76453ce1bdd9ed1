"""Mixtures for squared loss in files whose rate was one over the squared range of labels."""

import math

from forel.learner.expert_pool import ExpertPool
from forel.learner.ledger import LOSS_LIMIT
from forel.losses.margin import Mixing

__all__ = ["from_fixed_rate"]


def from_fixed_rate(pool: ExpertPool) -> None:
    """Raise the excess in the ledger until the rate is that of the file: the bound relies on rates that never rise."""
    ledger = pool.ledger
    if pool.pooling.mixing is Mixing.EXP_CONCAVE:
        low, high = ledger.label_range
        span = high - low
        allowed = math.log(ledger.experts) * max(1.0, ledger.largest_importance) * span * span
        ledger.gap = max(ledger.gap, min(allowed, LOSS_LIMIT))

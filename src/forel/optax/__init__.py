"""FTRL-Proximal and AdaGrad dual averaging as optax transformations.

Needs the extra ``optax``, but only when one is used: without it this module is importable and empty.
"""

from typing import TYPE_CHECKING

from forel.extras import lazy

if TYPE_CHECKING:
    from forel.optax.transformations import FTRLState, adagrad_dual_averaging, ftrl_proximal

__all__ = ["FTRLState", "adagrad_dual_averaging", "ftrl_proximal"]

_HOMES = dict.fromkeys(__all__, "transformations")
__getattr__, __dir__ = lazy(__name__, _HOMES, ("jax", "optax"))

"""FTRL-Proximal and AdaGrad dual averaging as PyTorch optimizers.

Needs the extra ``torch``, but only when an optimizer is used: without it this module is importable and empty.
"""

from typing import TYPE_CHECKING

from forel.extras import lazy

if TYPE_CHECKING:
    from forel.torch.optimizers import AdaGradDualAveraging, FTRLProximal

__all__ = ["AdaGradDualAveraging", "FTRLProximal"]

_HOMES = dict.fromkeys(__all__, "optimizers")
__getattr__, __dir__ = lazy(__name__, _HOMES, ("torch",))

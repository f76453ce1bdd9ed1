"""The specification that a kernel is compiled for; this module does not import numba."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from forel.learner.layout import Layout

__all__ = ["FASTMATH", "KernelSpec"]

# Not "reassoc": stochastic rounding relies on the order of additions. Not "nnan" or "ninf": overflow is detected.
FASTMATH = frozenset({"nsz", "arcp", "contract", "afn"})


@dataclass(frozen=True)
class KernelSpec:
    """The compile-time options of a kernel.

    Parameters
    ----------
    loss : name of a function in :mod:`forel.learner.kernels.losses`, or a user-defined function of margin and label
        that returns value and slope
    layout : layout of the state
    bias : whether rows have a constant feature, which is not penalized
    labels : "shared" by all lanes; or one lane per class against the rest, coded 0 and 1 ("classes") or ±1 ("signs")
    settings : number of lanes of one class, one for each setting; the lanes of a class are adjacent
    joint : whether all classes share one loss, that of softmax

    >>> KernelSpec.reference().layout.dtype
    dtype('float64')
    """

    loss: str | Callable[[float, float], tuple[float, float]]
    layout: Layout
    bias: bool = False
    labels: Literal["shared", "classes", "signs"] = "shared"
    settings: int = 1
    joint: bool = False

    @classmethod
    def reference(cls) -> "KernelSpec":
        """Return the spec of the kernel modules as they are imported: certified FTRL-Proximal in float64."""
        return cls("logistic", Layout("proximal", "adagrad", "once", double=True, certified=True), bias=True)

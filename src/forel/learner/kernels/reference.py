"""Compile-time constants, decorators and intrinsics of the kernel modules, with the values of the reference kernel.

The modules of a kernel (``kernel.MODULES``) import everything that
depends on the settings from here.
Imported as they are, they run uncompiled: FTRL-Proximal with AdaGrad rates, one lane, float64. ``specialize`` executes
the same source with the constants of another :class:`KernelSpec` and with numba's
decorators; numba removes branches on constants before it infers types.
"""

import importlib
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from forel.learner.kernels.intrinsics import plain
from forel.learner.layout import BINS as HISTOGRAM_BINS
from forel.learner.layout import ORDINARY, SUMS, Lane, Layout, largest_unit

__all__ = ["FASTMATH", "KernelSpec", "Lane", "Work", "bindings", "constants"]

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


# Arrays of the learner, and work arrays of the kernel for the current row.
#   state       a record for each coordinate: for each lane z and n, with a certificate also g_{1:t}, and Σσx for
#               algorithms whose state is the point; in units of the coordinate's scale for scale-free rates
#   scales      largest |value| of each coordinate, where records have no space for it; with filters and a certificate,
#               the state from the first scale on, which is followed by g_{1:t} of a few lanes, in the coordinate's unit
#   last_round  round in which each coordinate was last updated, where penalties apply in every round
#   totals      running sums of each lane, by SUM_ offsets
#   parameters  of each lane, in the order of ``Lane``
#   row         values of the current row for each lane, by ROW_ offsets
#   scratch     values of the row's coordinates
#   sums        three float64 for each lane: an estimate of Σ G², G = g_{1:t} after the step, from a sample; the row's
#               loss, later its g·x; the same estimate in units of the coordinates' scales
Work = namedtuple("Work", "state scales last_round totals parameters row scratch sums")


def undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged: the decorator of uncompiled kernels."""
    return function


def constants(spec: KernelSpec, pad: bool = True) -> dict[str, Any]:
    """Return the compile-time constants of a spec by name; ``pad`` is whether lanes fill whole vectors."""
    layout, real, lanes = spec.layout, spec.layout.dtype.type, spec.layout.lanes
    line_size = 64 // layout.dtype.itemsize
    padded = _padded(layout) if pad else lanes
    return {
        "REAL": real,
        "ZERO": np.uint64(0),
        "ONE": np.uint64(1),
        "REAL_ZERO": real(0),
        "REAL_ONE": real(1),
        "TINY": real(np.finfo(real).tiny) / np.finfo(real).eps,  # of divisors, whose inverse is in range
        "MAX": np.finfo(real).max,
        "GRADIENT_LIMIT": real(1e150 if layout.double else 1e19),  # its square does not overflow
        "LIMIT": real(1e300 if layout.double else 1e30),  # of margins and slopes
        "SUM_LIMIT": 1e290,
        # The learner
        "LANES": lanes,
        "PARAMETERS": len(Lane._fields),
        "PADDED": padded,  # lanes in the row and in scratch
        "SETTINGS": spec.settings,
        "UNROLLED": _unrolled(layout, padded),
        "BIAS": np.uint64(spec.bias),
        "PER_CLASS": spec.labels != "shared",
        "SIGNED": spec.labels == "signs",
        "USER_LOSS": not isinstance(spec.loss, str),
        "JOINT": spec.joint,
        # Rates
        "SCALE_FREE": layout.rate == "scale_free",
        "LARGEST_UNIT": real(largest_unit(layout.dtype)),
        "FIRST_ORDINARY": real(ORDINARY[0]),
        "FIRST_LARGE": real(ORDINARY[1]),
        # Algorithms
        "PRIMAL": layout.primal,
        "PROXIMAL": layout.rule == "proximal",
        "FILTERS": layout.filters,
        "FIRST_FILTER": lanes - layout.filters,
        "EVERY_ROUND": layout.penalty_weight == "every",
        "DECAYS": layout.keeps_round,
        # Certificates and rounding
        "CERTIFIED": layout.certified,
        "HISTOGRAM": layout.certified and layout.histogram,
        "BINS": HISTOGRAM_BINS,
        "CONCAVE": layout.certified and layout.concavity,
        "KEEPS_GRADIENTS": layout.parts >= 3,
        "KEEPS_POINTS": layout.parts == 4,
        "GRADIENT_LANES": layout.gradient_lanes,
        "KEEPS_GRADIENTS_BY_SCALES": bool(layout.gradient_lanes),
        "CERTIFIED_LANES": len(layout.certified_lanes),
        "STOCHASTIC_ROUNDING": not layout.double,
        # Layout of records
        "PARTS": 4 if layout.scale_in_record and layout.single else layout.parts,
        "WIDTH": np.uint64(layout.width),
        "SCALE_IN_RECORD": layout.scale_in_record,
        "SEPARATE_SCALES": layout.separate_scales,
        "SCALE_WIDTH": np.uint64(layout.width if layout.gradient_lanes else 1),
        "PREFETCH_DISTANCE": np.uint64(100 if layout.single else 32),  # non-zeros between a prefetch and its use
        "LINE_SIZE": np.uint64(line_size),
        "RECORDS_STRADDLE_LINES": _straddle(layout.width, line_size),
        # Rows of ``Work.row`` and ``Work.totals``
        "ROW_MARGIN": 0,
        "ROW_SLOPE": padded,
        "ROW_BOUND_TERMS": 2 * padded,  # Σ g²/S + σx², for algorithms whose state is the point
        "ROW_VARIANCE": 2 * padded,  # variance of the margin, for filters
        "ROW_CLIPPED": 3 * padded,  # whether a number was clipped
        "ROW_DAMPED": 4 * padded,  # slope of the step of a filter
        "ROW_CURVATURE": 5 * padded,  # second derivative of the loss
        # Of lanes whose gradients are kept after scales, after a 0 for the scale:
        "ROW_KEPT": 6 * padded,  # slopes
        "ROW_KEPT_NOISE": 6 * padded + 4,  # noise of their sums
        "ROW_FILTERS": 6 * padded + 8 * bool(layout.gradient_lanes),  # 1 for filters, 0 for settings
        "ROW_RECORD": 7 * padded + 8 * bool(layout.gradient_lanes),  # a padded record
        "ROW_SIZE": 11 * padded + 8 * bool(layout.gradient_lanes),
        "SUM_LOSS": 0,
        "SUM_LINEARIZED": lanes,  # Σ g·x
        "SUM_BOUND_TERMS": 2 * lanes,  # ½ Σ g²/S + σx²
        "SUM_SQUARES": 3 * lanes,  # ΣΣ G², sampled
        "SUM_CLIPPED": 4 * lanes,  # rows in which a number was clipped
        "SUM_SCALED": SUMS * lanes,  # ΣΣ (G/scale)², sampled
        "SUM_BINS": (SUMS + 1) * lanes,  # histogram of |slope|: for each bin Σv and Σv|slope|
        "SUM_CONCAVITY": (SUMS + 1 + 2 * HISTOGRAM_BINS * layout.histogram) * lanes,  # Σ of what ``concavity`` returns
    }


def _padded(layout: Layout) -> int:
    """Return the number of lanes in whole vectors of eight.

    The compiler would process the lanes that do not fill a vector one by one. It vectorizes four settings as they are,
    but not the functions that apply penalties of skipped rounds.
    """
    return (
        layout.lanes
        if layout.lanes == 1 or (layout.lanes == 4 and not layout.filters) or layout.keeps_round
        else -(-layout.lanes // 8) * 8
    )


def _unrolled(layout: Layout, padded: int) -> bool:
    """Return whether loops over the lanes of a coordinate have a constant length, which is faster if they vectorize.

    Loops over eight lanes or fewer become scalar code, unless they select filters among eight lanes, and so do loops
    that compare the lane with 1 or 2: the compiler peels their first iterations.
    """
    long = padded > 8 or (layout.lanes == 8 and layout.filters > 0)
    return padded < 4 or (long and padded % 8 == 0 and layout.lanes - layout.filters not in (1, 2))


def _straddle(width: int, line: int) -> bool:
    """Return whether a record may end in a cache line that none of its numbers 0, line, 2 line, ... is in.

    >>> _straddle(16, 16), _straddle(20, 16), _straddle(12, 16)
    (False, False, True)
    """
    last, starts = (width - 1) // line * line, {k * width % line for k in range(line)}
    return any((start + width - 1) // line > (start + last) // line for start in starts)


def bindings(spec: KernelSpec, pad: bool = True) -> dict[str, Any]:
    """Return all names that kernel modules import from this module, for an uncompiled kernel of a spec."""
    decorators = dict.fromkeys(("entry", "entry_with_gil", "inline", "inline_ir", "reassociated"), undecorated)
    intrinsics = {name: getattr(plain, name) for name in plain.__all__}
    return {"Lane": Lane, "Work": Work, **constants(spec, pad), **decorators, **intrinsics}


@cache
def _reference() -> dict[str, Any]:
    return bindings(KernelSpec.reference())


def __getattr__(name: str) -> Any:
    if name in ("loss", "concavity", "curvature"):  # from modules that import decorators from this one
        home = importlib.import_module(f"forel.learner.kernels.{'concavity' if name == 'concavity' else 'losses'}")
        return home.logistic_curvature if name == "curvature" else home.logistic
    if name.startswith("_") or name not in _reference():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _reference()[name]

"""Compile-time constants, decorators and intrinsics of the kernel modules, with the values of the reference kernel.

The modules of a kernel (``rates``, ``updates``, ``filters``, ``skipped_rounds``, ``padded_lanes``, ``row_slopes``,
``single_lane`` or ``many_lanes``, ``row_losses``, ``loops``, ``one_row``) import everything that
depends on the settings from here.
Imported as they are, they run uncompiled: FTRL-Proximal with AdaGrad rates, one lane, float64. ``specialize`` executes
the same source with the constants of another :class:`~forel.learner.kernels.spec.KernelSpec` and with numba's
decorators; numba removes branches on constants before it infers types.
"""

import importlib
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from forel.learner.kernels.intrinsics import plain
from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import BINS as HISTOGRAM_BINS
from forel.learner.layout import Layout
from forel.learner.units import units_and_thresholds

__all__ = ["Lane", "Work", "bindings", "constants"]

# Parameters of one lane: 1/α, β, λ1, λ2, and the radius R; filters have 1 − memory in place of λ2.
Lane = namedtuple("Lane", "inverse_alpha beta l1 l2 radius")

# Arrays of the learner, and work arrays of the kernel for the current row.
#   state       a record for each coordinate: for each lane z and n, with a certificate also g_{1:t}, and Σσx for
#               algorithms whose state is the point; in units of the coordinate's scale for scale-free rates
#   scales      largest |value| of each coordinate, where records have no space for it; with filters and a certificate,
#               the state from the first scale on, which is followed by g_{1:t} of a few lanes, in the coordinate's unit
#   last_round  round in which each coordinate was last updated, where penalties apply in every round
#   drift_marks value of the lane's penalty clock at that round, for rates 1/√t
#   totals      running sums of each lane, by SUM_ offsets
#   parameters  of each lane, in the order of ``Lane``
#   row         values of the current row for each lane, by ROW_ offsets
#   scratch     values of the row's coordinates
#   sums        three float64 for each lane: an estimate of Σ G², G = g_{1:t} after the step, from a sample; the row's
#               loss, later its g·x; the same estimate in units of the coordinates' scales
Work = namedtuple("Work", "state scales last_round drift_marks totals parameters row scratch sums")


def undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged: the decorator of uncompiled kernels."""
    return function


def constants(spec: KernelSpec, pad: bool = True) -> dict[str, Any]:
    """Return the compile-time constants of a spec by name; ``pad`` is whether lanes fill whole vectors."""
    layout, real, lanes = spec.layout, spec.layout.dtype.type, spec.layout.lanes
    line_size = 64 // layout.dtype.itemsize
    rate, rule = layout.rate, layout.rule
    padded = _padded(layout) if pad else lanes
    powers, thresholds = units_and_thresholds(layout.dtype)
    return {
        "REAL": real,
        "ZERO": np.uint64(0),
        "ONE": np.uint64(1),
        "REAL_ZERO": real(0),
        "REAL_ONE": real(1),
        "TINY": np.float32(1e-30),  # a Python float would promote float32 to float64
        "MAX": np.finfo(real).max,
        "GRADIENT_LIMIT": real(1e150 if layout.double else 1e19),  # its square does not overflow
        "LIMIT": real(1e300 if layout.double else 1e30),  # of margins and slopes
        "SUM_LIMIT": 1e290,
        # The learner
        "LANES": lanes,
        "PADDED": padded,  # lanes in the row and in scratch
        "SETTINGS": spec.settings,
        "UNROLLED": _unrolled(layout, padded),
        "BIAS": np.uint64(spec.bias),
        "PER_CLASS": spec.labels != "shared",
        "SIGNED": spec.labels == "signs",
        "USER_LOSS": not isinstance(spec.loss, str),
        "JOINT": spec.joint,
        # Rates
        "SUMS_SQUARES": rate in ("adagrad", "scale_free"),
        "SCALE_FREE": rate == "scale_free",
        "CONSTANT": rate == "constant",
        "BY_ROUND": rate in ("constant", "root"),
        "KEEPS_STRENGTH": layout.keeps_strength,
        # Kernels of scale-free rates either support all units of records, or stop at rows that need one other than 1
        "UNITS": rate == "scale_free" and spec.units,
        "STOPS_AT_OTHER_UNITS": rate == "scale_free" and not spec.units,
        "POWERS": tuple(powers),
        "INVERSE_POWERS": tuple(1 / powers),
        "THRESHOLDS": tuple(thresholds),
        # Algorithms
        "PRIMAL": layout.primal,
        "IMPLICIT": rule == "implicit",
        "PROXIMAL": rule == "proximal",
        "FILTERS": layout.filters,
        "FIRST_FILTER": lanes - layout.filters,
        "EVERY_ROUND": layout.penalty_weight == "every",
        "DECAYS": layout.catch_up == "decay",
        "DRIFTS": layout.catch_up == "drift",
        "REPLAYS": layout.catch_up == "replay",
        "CATCHES_UP": layout.catch_up != "none",
        "KEEPS_ROUND": layout.keeps_round,
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
        "ROW_STEP": padded,  # slope of the step, which differs from that of the loss for implicit updates
        "ROW_SLOPE": 2 * padded,
        "ROW_STRENGTH": 3 * padded,  # 1/η_{t−1} and 1/η_t of rates that depend only on the round
        "ROW_NEXT_STRENGTH": 4 * padded,
        "ROW_BOUND_TERMS": 5 * padded,  # Σ g²/S + σx², for algorithms whose state is the point
        "ROW_CLIPPED": 6 * padded,  # whether a number was clipped
        # Of filters, at offsets that FTRL-Proximal with scale-free rates does not use:
        "ROW_DAMPED": 3 * padded,  # slope of the step
        "ROW_CURVATURE": 4 * padded,  # second derivative of the loss
        "ROW_VARIANCE": 5 * padded,  # variance of the margin
        # Of lanes whose gradients are kept after scales, after a 0 for the scale:
        "ROW_KEPT": 7 * padded,  # slopes
        "ROW_KEPT_NOISE": 7 * padded + 4,  # noise of their sums
        "ROW_FILTERS": 7 * padded + 8 * bool(layout.gradient_lanes),  # 1 for filters, 0 for settings
        "ROW_RECORD": 8 * padded + 8 * bool(layout.gradient_lanes),  # a padded record
        "ROW_SIZE": 12 * padded + 8 * bool(layout.gradient_lanes),
        "SUM_LOSS": 0,
        "SUM_LINEARIZED": lanes,  # Σ g·x
        "SUM_BOUND_TERMS": 2 * lanes,  # ½ Σ g²/S + σx²
        "SUM_CLOCK": 3 * lanes,  # penalty clock of rates 1/√t
        "SUM_SQUARES": 4 * lanes,  # ΣΣ G², sampled
        "SUM_CLIPPED": 5 * lanes,  # rows in which a number was clipped
        "SUM_SCALED": 6 * lanes,  # ΣΣ (G/scale)², sampled
        "SUM_BINS": 7 * lanes,  # histogram of |slope|: for each bin Σv and Σv|slope|
        # The number of rows, and sums of what ``concavity`` returns for them
        "SUM_CONCAVITY": (7 + 2 * HISTOGRAM_BINS * layout.histogram) * lanes,
    }


def _padded(layout: Layout) -> int:
    """Return the number of lanes in whole vectors of eight.

    The compiler would process the lanes that do not fill a vector one by one. It vectorizes four settings as they are,
    but not the functions that apply penalties of skipped rounds.
    """
    return (
        layout.lanes
        if layout.lanes == 1 or (layout.lanes == 4 and not layout.filters) or layout.catch_up != "none"
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

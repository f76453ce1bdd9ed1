"""The functions of a kernel, loaded from the code cache or compiled by numba at the first call."""

import hashlib
import os
import pathlib
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from forel.jit import CachedFunction, compiled_function, disabled, njit, sources, uncompiled
from forel.jit.function import LOCK
from forel.jit.key import contents
from forel.jit.private import MISSING, private
from forel.jit.specialize import specialize
from forel.learner.kernels.reference import FASTMATH, KernelSpec, bindings, constants

__all__ = ["compiled_kernel", "kernel", "routine", "uncompiled_kernel"]

HERE = "forel.learner.kernels"
MODULES = (
    "stochastic_rounding",
    "updates",
    "coordinates",
    "row_losses",
    "LANES",
    "certificate_terms",
    "loops",
)
NAMES = ("learn", "score", "learn_one", "predict_one")
SCORING = ("score", "predict_one")  # functions that do not depend on the loss


@lru_cache(maxsize=64)
def kernel(spec: KernelSpec) -> ModuleType:
    """Return the functions of a spec, each compiled, or linked from the code cache, when it is first called.

    They are a module, which tools that measure the memory of a model do not traverse.

    >>> kernel(KernelSpec.reference()).learn.name
    'learn'
    """
    module = ModuleType("forel_kernel")
    for name in NAMES:
        setattr(module, name, _function(name, scoring_spec(spec) if name in SCORING else spec))
    return module


def scoring_spec(spec: KernelSpec) -> KernelSpec:
    """Return the spec for predictions and weights, which depend neither on the loss nor on how labels are coded.

    >>> scoring_spec(KernelSpec("hinge", KernelSpec.reference().layout, bias=True)) == KernelSpec.reference()
    True
    """
    layout = replace(spec.layout, histogram=False, concavity=False)
    return KernelSpec(KernelSpec.reference().loss, layout, bias=spec.bias)


@lru_cache(maxsize=256)
def _function(name: str, spec: KernelSpec) -> Any:
    """Return one function; those that learn from a user's loss without a key are compiled in every process."""

    def compiled() -> Any:
        with LOCK:  # threads would compile it once each
            return getattr(compiled_kernel(spec), name)

    key = _key(spec)
    return (lambda *arguments: compiled()(*arguments)) if key is None else CachedFunction(name, key, compiled, True)


def routine(module: str, name: str) -> CachedFunction:
    """Return a compiled function of a module of this package that does not depend on a spec.

    >>> routine("mixing", "adahedge").name
    'mixing.adahedge'
    """
    return compiled_function(f"{HERE}.{module}", name)


@lru_cache(maxsize=64)
def uncompiled_kernel(spec: KernelSpec, pad: bool = False) -> ModuleType:
    """Return the functions of a spec as plain Python, from the same source: slow, the reference of the tests.

    Sums are rounded to nearest, not stochastically. Lanes are not padded to whole vectors, which only compiled loops
    process at once, unless ``pad`` is true; the results have the same bits.
    """
    names = {**bindings(spec, pad), "STOCHASTIC_ROUNDING": False}
    plain, module = (
        _specialized(spec, names, getattr(spec.loss, "py_func", spec.loss), None),
        ModuleType("forel_kernel"),
    )
    module.__dict__.update({name: uncompiled(getattr(plain, name)) for name in NAMES})
    return module


@lru_cache(maxsize=64)
def compiled_kernel(spec: KernelSpec) -> ModuleType:
    """Return a module with the functions of a spec, which numba compiles when they are called."""
    if disabled():
        return uncompiled_kernel(spec)
    import numba

    from forel.learner.kernels.intrinsics import available

    loss: Any = spec.loss
    if not isinstance(loss, str) and not hasattr(loss, "py_func"):
        loss = numba.njit(error_model="numpy", nogil=True)(loss)
    key, intrinsics = _key(spec), available()
    names = {**bindings(spec), **_decorators(intrinsics["allocate"]), **intrinsics}
    return _specialized(spec, names, loss, None if key is None else f"forel_kernel_{key[:20]}")


def _specialized(spec: KernelSpec, names: dict[str, Any], loss: Any, name: str | None) -> ModuleType:
    """Execute the modules of a kernel and return that of the loops."""
    reference, lanes = f"{HERE}.reference", "single_lane" if spec.layout.single else "many_lanes"
    concavity = curvature = None
    if isinstance(loss, str) and not spec.joint:
        found = specialize([f"{HERE}.losses", f"{HERE}.concavity"], reference, names, name=name)
        concavity = getattr(found[f"{HERE}.concavity"], loss, None)
        curvature = getattr(found[f"{HERE}.losses"], f"{loss}_curvature", None)
        loss = getattr(found[f"{HERE}.losses"], loss)
    modules = [f"{HERE}.{lanes if each == 'LANES' else each}" for each in MODULES]
    names = {**names, "loss": loss, "concavity": concavity, "curvature": curvature}
    copies = specialize(modules, reference, names, {f"{HERE}.many_lanes": f"{HERE}.{lanes}"}, name)
    return copies[f"{HERE}.loops"]


def _decorators(allocate: Any) -> dict[str, Any]:
    """Return numba's decorators under the names of the reference module."""
    counted: dict[str, Any] = {"fastmath": set(FASTMATH)}
    options = dict(counted)
    with suppress(*MISSING):
        # All arrays belong to the caller or are freed by ``release``, so references to them are not counted.
        if not hasattr(allocate, "py_func") and private("uncounted"):
            options["_nrt"] = False
    return {
        "entry": njit(**options),
        # Releasing and acquiring the GIL takes longer than a row.
        "entry_with_gil": njit(nogil=False, **counted),  # creates arrays from addresses, whose references are counted
        "inline": njit(inner=True, forceinline=True, **options),
        "reassociated": njit(inner=True, forceinline=True, **{**options, "fastmath": set(FASTMATH) | {"reassoc"}}),
        "inline_ir": njit(inline="always", **options),
    }


@lru_cache(maxsize=256)
def _key(spec: KernelSpec) -> str | None:
    """Return a hash of everything that a kernel is compiled from; None if its loss reaches what has no key."""
    loss = spec.loss if isinstance(spec.loss, str) else contents(spec.loss)
    if loss is None:
        return None
    parts = loss, sorted(map(repr, constants(spec).items())), os.environ.get("FOREL_INTRINSICS"), _sources()
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def _sources() -> str:
    here = pathlib.Path(__file__).parent
    return sources(here, here / "intrinsics")

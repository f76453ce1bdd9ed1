"""The functions of a kernel, loaded from the code cache or compiled by numba at the first call."""

import hashlib
import os
import pathlib
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any

from forel.jit import CachedFunction, compiled_function, disabled, sources, uncompiled
from forel.jit.folder import folder
from forel.jit.function import LOCK
from forel.jit.reachable import contents
from forel.jit.specialize import specialize
from forel.learner.kernels.reference import bindings, constants
from forel.learner.kernels.spec import FASTMATH, KernelSpec

__all__ = ["compiled_kernel", "kernel", "routine", "uncompiled_kernel"]

HERE = "forel.learner.kernels"
MODULES = (
    "stochastic_rounding",
    "updates",
    "units",
    "filters",
    "coordinates",
    "padded_lanes",
    "row_losses",
    "LANES",
    "certificate_terms",
)
ROWS = ("learn_one", "predict_one")  # functions of one row
# By module; functions of one row are not called through the cache.
FUNCTIONS = {"loops": ("learn", "score"), "one_row": ROWS}
NAMES = tuple(name for names in FUNCTIONS.values() for name in names)
SCORING = ("score", "predict_one")  # functions that do not depend on the loss


class Kernel:
    """The functions of a spec, each compiled, or linked from the code cache, when it is first called."""

    def __init__(self, spec: KernelSpec) -> None:
        scoring = scoring_spec(spec)
        self._specs = {name: scoring if name in SCORING else spec for name in NAMES}
        for name in self._specs.keys() - set(ROWS):
            if isinstance(self._specs[name].loss, str):  # a user's loss is compiled by numba in every process
                setattr(self, name, _cached_function(name, self._specs[name]))

    @property
    def module(self) -> ModuleType:
        """All functions as compiled by numba."""
        return _module({name: _compiled_function(name, spec) for name, spec in self._specs.items()})

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self).get("_specs", ()):
            raise AttributeError(name)
        return _compiled_function(name, self._specs[name])


@lru_cache(maxsize=64)
def kernel(spec: KernelSpec) -> Any:
    """Return the functions of a spec; those that learn from a user-defined loss are compiled by numba.

    >>> kernel(KernelSpec.reference()).learn.name
    'learn'
    """
    return Kernel(spec)


def scoring_spec(spec: KernelSpec) -> KernelSpec:
    """Return the spec for predictions and weights, which depend neither on the loss nor on how labels are coded.

    >>> scoring_spec(KernelSpec("hinge", KernelSpec.reference().layout, bias=True)) == KernelSpec.reference()
    True
    """
    layout = replace(spec.layout, histogram=False, concavity=False)
    return KernelSpec(KernelSpec.reference().loss, layout, bias=spec.bias)


@lru_cache(maxsize=256)
def _cached_function(name: str, spec: KernelSpec) -> CachedFunction:
    return CachedFunction(name, str(_key(spec)), partial(_compiled_function, name, spec))


def _compiled_function(name: str, spec: KernelSpec) -> Any:
    with LOCK:  # threads would compile it once each
        return getattr(compiled_kernel(spec), name)


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
    loss = getattr(spec.loss, "py_func", spec.loss)
    plain = _functions(spec, names, loss, None)
    return _module({name: uncompiled(getattr(plain, name)) for name in NAMES})


@lru_cache(maxsize=64)
def compiled_kernel(spec: KernelSpec) -> ModuleType:
    """Return the functions of a spec compiled by numba, with the code cache.

    A user-defined loss is compiled in every process if it depends on more than numbers and compiled functions.
    """
    if disabled():
        return uncompiled_kernel(spec)
    import numba

    from forel.learner.kernels.intrinsics import available

    loss: Any = spec.loss
    if not isinstance(loss, str) and not hasattr(loss, "py_func"):
        loss = numba.njit(error_model="numpy", nogil=True)(loss)
    key = _key(spec)
    intrinsics = available()
    names = {**bindings(spec), **_decorators(key, intrinsics["allocate"]), **intrinsics}
    return _functions(spec, names, loss, None if key is None else f"forel_kernel_{key[:20]}")


def _functions(spec: KernelSpec, names: dict[str, Any], loss: Any, name: str | None) -> ModuleType:
    """Execute the modules of a kernel and return its functions."""
    reference, lanes = f"{HERE}.reference", "single_lane" if spec.layout.single else "many_lanes"
    concavity = curvature = None
    if isinstance(loss, str) and not spec.joint:
        found = specialize([f"{HERE}.losses", f"{HERE}.concavity"], reference, names, name=name)
        concavity = getattr(found[f"{HERE}.concavity"], loss, None)
        curvature = getattr(found[f"{HERE}.losses"], f"{loss}_curvature", None)
        loss = getattr(found[f"{HERE}.losses"], loss)
    modules = [f"{HERE}.{lanes if each == 'LANES' else each}" for each in (*MODULES, *FUNCTIONS)]
    names = {**names, "loss": loss, "concavity": concavity, "curvature": curvature}
    copies = specialize(modules, reference, names, {f"{HERE}.many_lanes": f"{HERE}.{lanes}"}, name)
    homes = {each: copies[f"{HERE}.{each}"] for each in FUNCTIONS}
    return _module({name: getattr(home, name) for each, home in homes.items() for name in FUNCTIONS[each]})


def _module(functions: dict[str, Any]) -> ModuleType:
    """Return functions as a module, which tools that measure the memory of a model do not traverse."""
    module = ModuleType("forel_kernel")
    module.__dict__.update(functions)
    return module


def _decorators(key: str | None, allocate: Any) -> dict[str, Any]:
    """Return numba's decorators under the names of the reference module; functions are cached if there is a key."""
    import numba

    from forel.jit.compiling import use_code_cache
    from forel.jit.private import MISSING, private

    counted: dict[str, Any] = {"fastmath": set(FASTMATH), "error_model": "numpy", "no_cfunc_wrapper": True}
    options = dict(counted)
    with suppress(*MISSING):
        # All arrays belong to the caller or are freed by ``release``, so references to them are not counted.
        if not hasattr(allocate, "py_func") and private("uncounted"):
            options["_nrt"] = False
    inside: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "nogil": True}
    cached = folder()
    notice = None if cached is None else f"compiling a kernel, once; it is kept in {cached}"

    def entry(nogil: bool, **options: Any) -> Any:
        compiled = numba.njit(nogil=nogil, **options)
        if key is None:
            return compiled
        return lambda function: use_code_cache(compiled(function), key, notice)

    return {
        "entry": entry(nogil=True, **options),
        # Releasing and acquiring the GIL takes longer than a row.
        "entry_with_gil": entry(nogil=False, **counted),  # creates arrays from addresses, whose references are counted
        "inline": numba.njit(**options, **inside),
        "reassociated": numba.njit(**{**options, "fastmath": set(FASTMATH) | {"reassoc"}}, **inside),
        "inline_ir": numba.njit(inline="always", nogil=True, **options),
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

"""numba with the code cache of forel: numba's own cache unpickles files without checking who wrote them.

numba calls ``load_overload`` of a dispatcher's cache before it compiles for a signature, and ``save_overload``
afterwards. If that fails with the installed numba, functions are compiled and not cached.
"""

import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import numba

from forel.jit import files
from forel.jit.folder import NOT_CACHED, announce
from forel.jit.function import disabled
from forel.jit.key import key, sources
from forel.jit.private import private

__all__ = ["cached_njit", "inner_njit", "use_code_cache"]

OPTIONS: Any = {"error_model": "numpy", "no_cfunc_wrapper": True}  # functions are not called from C


def cached_njit(
    *files: str | pathlib.Path, nogil: bool = True, forceinline: bool = False, fastmath: frozenset[str] = frozenset()
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles functions with the code cache; their code depends on these files or folders.

    ``fastmath`` names the rules of floating-point arithmetic that the compiler need not keep.
    """
    source = sources(*files)
    options: Any = {**OPTIONS, "nogil": nogil, "forceinline": forceinline, "fastmath": set(fastmath)}

    def compiled(function: Callable[..., Any]) -> Any:
        return use_code_cache(numba.njit(**options)(function), source)

    return compiled


def inner_njit(forceinline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for functions that only compiled functions call: without wrapper and cache, they cost less."""
    options = {**OPTIONS, "nogil": True, "no_cpython_wrapper": True, "forceinline": forceinline}
    decorator: Callable[[Callable[..., Any]], Any] = numba.njit(**options)
    return decorator


def use_code_cache(dispatcher: Any, source: str, notice: str | None = None) -> Any:
    """Give a dispatcher the code cache, keyed by ``source``; ``notice`` is printed before compiling."""
    if not disabled() and hasattr(dispatcher, "_cache"):
        dispatcher._cache = CodeCache(dispatcher.py_func, source, notice)
    return dispatcher


class CodeCache:
    """Compiled code of one function, a signed file for each signature; called by numba."""

    def __init__(self, function: Callable[..., Any], source: str, notice: str | None) -> None:
        code = function.__code__
        self._name = f"{pathlib.Path(code.co_filename).stem.strip('<>')}.{function.__name__}"
        self._origin = (function.__module__, function.__qualname__, code.co_firstlineno, source)
        self._notice = notice

    @property
    def cache_path(self) -> str | None:
        """The path of the cache without the part that depends on the signature; part of ``stats``."""
        path = files.path_of(self._name, key(*self._origin))
        return None if path is None else str(path)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compile result of an earlier process, or None."""
        try:
            target.refresh()
            parts = self.parts(signature, target.codegen())
            result = None if parts is None else private("rebuild")(target, *parts)
        except Exception:
            result = None
        if result is None and self._notice is not None:
            announce(self._notice)
        return result

    def parts(self, signature: Any, codegen: Any) -> tuple[Any, ...] | None:
        """Return the pickled parts of a compile result: library, descriptor, and more; None if it is not cached."""
        name = self._key(signature, codegen)
        content = files.read(files.path_of(self._name, name), name)
        # Unpickling runs code: files.read verifies the signature first.
        return None if content is None else tuple(pickle.loads(content))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Cache a compile result for later processes."""
        try:
            if result.library.has_dynamic_globals or result.lifted:
                return  # contains addresses of this process
            name = self._key(signature, result.codegen)
            content = private("dumps")(private("reduce")(result))
        except Exception as error:
            announce(f"{NOT_CACHED}: numba {numba.__version__} raised {error!r}; install a version that forel supports")
            return
        files.write(files.path_of(self._name, name), name, content)

    def _key(self, signature: Any, codegen: Any) -> str:
        return key("numba", *self._origin, signature, codegen.magic_tuple())

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: the key has everything that a file depends on, so that none is out of date."""

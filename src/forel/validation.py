"""Validation of arguments, with uniform error messages.

Every check takes the argument's name first and returns the value in the form the library computes with, or raises
a ``ValueError`` that names the argument, the value and what is allowed.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Shape = Literal["scalar", "diagonal", "matrix"]
LONGEST = 200  # characters of a value in a message
Strength = Any  # a float, a vector or a matrix, according to its Shape


class Unsupported(ValueError):
    """A combination of parts that cannot work; the message explains why and names an alternative."""


class Infeasible(ValueError):
    """A feasible set with no point in it."""


class Unbounded(ValueError):
    """An objective without a minimum."""


def refuse(name: str, value: object, expected: str) -> ValueError:
    """Return the ValueError that every check raises: name, value, what is allowed.

    >>> len(str(refuse("alpha", [0.5] * 10**6, "a number")))
    231
    """
    shown = repr(value)
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
    return ValueError(f"{name}: got {shown}, expected {expected}")


def number(
    name: str, value: Any, expected: str = "a finite number", low: float = -math.inf, high: float = math.inf
) -> float:
    """Return ``value`` as a finite float in [low, high].

    >>> number("radius", 2)
    2.0
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise refuse(name, value, expected) from None
    if not (math.isfinite(result) and low <= result <= high):
        raise refuse(name, value, expected)
    return result


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero.

    >>> positive("radius", -1)
    Traceback (most recent call last):
    ValueError: radius: got -1, expected a positive number
    """
    return number(name, value, "a positive number", low=math.ulp(0.0))


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least zero."""
    return number(name, value, "a number of at least 0", low=0.0)


def whole(name: str, value: Any, low: int = 0) -> int:
    """Return ``value`` as an int of at least ``low``."""
    expected = f"a whole number of at least {low}"
    if isinstance(value, bool) or number(name, value, expected, low=low) != int(value):
        raise refuse(name, value, expected)
    return int(value)


def floats(name: str, value: ArrayLike, expected: str) -> NDArray[np.float64]:
    """Return ``value`` as an array of float64, of any shape."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "fiubO" or (raw.dtype.kind == "O" and any(v is None for v in raw.flat)):
            raise ValueError("no numbers")
        return raw.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise refuse(name, value, expected) from None


def real(name: str, value: Any) -> Any:
    """Return an array or matrix; raise for what numpy would drop silently, imaginary parts and masked entries.

    >>> real("X", [1.0, 2.0])
    array([1., 2.])
    >>> real("X", np.ma.masked_equal([1.0, -99.0], -99.0))
    Traceback (most recent call last):
    ValueError: X: got a masked entry at index 1, expected numbers without a mask; fill it, or leave its row out
    """
    array = value if hasattr(value, "dtype") else np.asarray(value)
    if getattr(array.dtype, "kind", "") == "c":
        raise ValueError(f"{name}: got complex numbers, expected real ones; give real and imaginary part a column each")
    # The type is compared first, because numpy imports np.ma only when it is used.
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(value))[0])
        place = where[0] if len(where) == 1 else where
        raise ValueError(
            f"{name}: got a masked entry at index {place}, expected numbers without a mask; fill it, or leave its row "
            "out"
        )
    return array


def all_finite(array: NDArray[np.float64]) -> bool:
    """Return whether all entries are finite, by the fastest test."""
    # One dot product, which neither lets through; on long arrays it would start BLAS threads, and a sum is faster.
    if array.size <= 8192:
        return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(np.sum(array)) or bool(np.isfinite(array).all())


def finite(name: str, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``array`` when it has neither NaN nor infinity, and name the first such entry otherwise."""
    if all_finite(array):
        return array
    good = np.isfinite(array)
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        index = where[0] if len(where) == 1 else where
        raise ValueError(f"{name}: got {array[where]} at index {index}, expected finite numbers")
    return array


def vector(name: str, value: ArrayLike, n: int | None = None) -> Vector:
    """Return ``value`` as a finite vector, of length ``n`` where that is known.

    >>> vector("g", [1, float("nan")])
    Traceback (most recent call last):
    ValueError: g: got nan at index 1, expected finite numbers
    """
    array = floats(name, value, "a vector of numbers")
    if array.ndim != 1 or array.size == 0 or (n is not None and array.size != n):
        expected = "a vector" if n is None else f"a vector of length {n}"
        raise ValueError(f"{name}: got shape {array.shape}, expected {expected}")
    return finite(name, array)


def matrix(name: str, value: ArrayLike, columns: int | None = None) -> Matrix:
    """Return ``value`` as a finite matrix, with ``columns`` columns where that is known."""
    array = floats(name, value, "a matrix of numbers")
    if array.ndim != 2 or array.size == 0 or (columns is not None and array.shape[1] != columns):
        expected = "a matrix" if columns is None else f"a matrix with {columns} columns"
        raise ValueError(f"{name}: got shape {array.shape}, expected {expected}")
    return finite(name, array)


def same_length(**vectors: Vector) -> int:
    """Return the common length of the named vectors."""
    sizes = {name: v.shape for name, v in vectors.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"{' and '.join(sizes)}: got shapes {list(sizes.values())}, expected the same length")
    return next(iter(vectors.values())).size


def constants(
    name: str, value: ArrayLike, expected: str = "finite numbers", low: float = -math.inf, infinite: bool = False
) -> float | Vector:
    """Return ``value`` as a float or a read-only copy of a vector, each entry at least ``low``.

    A copy, because a frozen object must not change when the caller's array does.
    """
    array = floats(name, value, expected)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"{name}: got shape {array.shape}, expected one number or a vector")
    bad = np.isnan(array) | (array < low) | (~np.isfinite(array) & (not infinite))
    if bad.any():
        at = "" if array.ndim == 0 else f" at index {int(np.argmax(bad))}"
        raise ValueError(f"{name}: got {array[bad].flat[0]}{at}, expected {expected}")
    return float(array) if array.ndim == 0 else frozen(array)


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice, if any.

    >>> repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def several(value: Iterable[Any]) -> tuple[Any, ...]:
    """Return the items of an iterable; a string is one item.

    >>> several(["age", "city"]), several("age")
    (('age', 'city'), ('age',))
    """
    return (value,) if isinstance(value, str) else tuple(value)


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a read-only copy."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def enough_memory(name: str, size: float, remedy: str) -> None:
    """Raise MemoryError for more memory than the machine has: the system may grant it and kill the process later.

    >>> enough_memory("features: got 1,000", 1e18, "use fewer")
    Traceback (most recent call last):
    MemoryError: features: got 1,000, which need 1,000,000,000.0 GB of memory, expected at most ...; use fewer
    """
    there = total_memory()
    if size > there:
        need, have = f"{size / 1e9:,.1f}", f"{there / 1e9:,.1f}"
        raise MemoryError(
            f"{name}, which need {need} GB of memory, expected at most the {have} GB that there are; {remedy}"
        )


def total_memory() -> float:
    """Return the machine's memory and swap in bytes; infinity if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            memory = dict(line.split(":", 1) for line in file)
        return 1024.0 * sum(int(memory[name].split()[0]) for name in ("MemTotal", "SwapTotal"))
    except (OSError, ValueError, KeyError):
        return math.inf

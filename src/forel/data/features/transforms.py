"""Numeric columns on another scale: logarithms, and buckets that double in width. No pass over the data is needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.validation import refuse

__all__ = ["buckets", "parse_bucket", "signed_log1p"]

MOST = 64  # buckets to a doubling; more could not be told apart by four digits


def signed_log1p(values: Any) -> NDArray[np.float64]:
    r"""Return $\mathrm{sign}(x)\,\log(1 + |x|)$, for numbers of any size and sign.

    >>> signed_log1p([0.0, -1.0, 1e6]).round(3)
    array([ 0.   , -0.693, 13.816])
    """
    wide = np.asarray(values, np.float64)
    signed: NDArray[np.float64] = np.copysign(np.log1p(np.abs(wide)), wide)
    return signed


def buckets(values: Any, per: int = 1) -> tuple[list[str], NDArray[np.int64]]:
    r"""Return the names of the buckets met, and which of them each number is in.

    $x > 0$ is in bucket $k = \lfloor p \log_2 x \rfloor$, from $2^{k/p}$ to less than $2^{(k+1)/p}$; negative numbers
    have buckets of their own, and so has 0.

    Parameters
    ----------
    values : finite numbers
    per : p, how many buckets there are to a doubling

    >>> buckets([0.0, 9.0, 8.0, -0.3])
    (['0', '8..16', '-0.25..-0.5'], array([0, 1, 1, 2]))
    """
    wide = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(np.abs(wide))
    # Edges are compared with, not computed from the number, so that every machine agrees on what is at an edge.
    inner = np.array([2.0 ** (k / per - 1) for k in range(1, per)])
    place = (exponent.astype(np.int64) - 1) * per + np.searchsorted(inner, mantissa, side="right")
    codes = np.where(wide == 0, np.iinfo(np.int64).max, 2 * place + (wide < 0))
    met, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return [_name(int(code), per) for code in met[order]], rank[which]


def _name(code: int, per: int) -> str:
    if code == np.iinfo(np.int64).max:
        return "0"
    place, sign = code // 2, "-" if code % 2 else ""
    return f"{sign}{2.0 ** (place / per):.4g}..{sign}{2.0 ** ((place + 1) / per):.4g}"


def parse_bucket(said: str) -> tuple[str, int]:
    """Return the column and the buckets to a doubling that ``column`` or ``column:number`` says.

    >>> parse_bucket("price"), parse_bucket("price:4")
    (('price', 1), ('price', 4))
    """
    name, _, number = said.rpartition(":")
    if not (name and number.isdecimal()):
        return said, 1
    if not 1 <= int(number) <= MOST:
        raise refuse("bucket", said, f"1 to {MOST} buckets to a doubling")
    return name, int(number)

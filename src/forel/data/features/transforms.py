"""Transformations of numeric columns that need no pass over the data: logarithms, and buckets of doubling width."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.validation import refuse

__all__ = ["buckets", "parse_bucket", "signed_log1p"]

MOST = 64  # buckets per doubling; names with four digits distinguish no more


def signed_log1p(values: Any) -> NDArray[np.float64]:
    r"""Return $\mathrm{sign}(x)\,\log(1 + |x|)$.

    >>> signed_log1p([0.0, -1.0, 1e6]).round(3)
    array([ 0.   , -0.693, 13.816])
    """
    wide = np.asarray(values, np.float64)
    signed: NDArray[np.float64] = np.copysign(np.log1p(np.abs(wide)), wide)
    return signed


def buckets(values: Any, per: int = 1) -> tuple[list[str], NDArray[np.int64]]:
    r"""Return the names of non-empty buckets, and the bucket of each number.

    $x > 0$ is in bucket $k = \lfloor p \log_2 x \rfloor$, from $2^{k/p}$ to less than $2^{(k+1)/p}$; negative numbers
    and 0 have separate buckets.

    Parameters
    ----------
    values : finite numbers
    per : p, the number of buckets per doubling

    >>> buckets([0.0, 9.0, 8.0, -0.3])
    (['0', '8..16', '-0.25..-0.5'], array([0, 1, 1, 2]))
    """
    wide = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(np.abs(wide))
    # Comparison with edges, rather than a logarithm, gives the same buckets on every machine.
    inner = np.array([2.0 ** (k / per - 1) for k in range(1, per)])
    place = (exponent.astype(np.int64) - 1) * per + np.searchsorted(inner, mantissa, side="right")
    codes = np.where(wide == 0, np.iinfo(np.int64).max, 2 * place + (wide < 0))
    unique, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return [_name(int(code), per) for code in unique[order]], rank[which]


def _name(code: int, per: int) -> str:
    if code == np.iinfo(np.int64).max:
        return "0"
    place, sign = code // 2, "-" if code % 2 else ""
    return f"{sign}{2.0 ** (place / per):.4g}..{sign}{2.0 ** ((place + 1) / per):.4g}"


def parse_bucket(text: str) -> tuple[str, int]:
    """Parse ``column`` or ``column:number`` into the column and its buckets per doubling.

    >>> parse_bucket("price"), parse_bucket("price:4")
    (('price', 1), ('price', 4))
    """
    name, _, number = text.rpartition(":")
    if not (name and number.isdecimal()):
        return text, 1
    if not 1 <= int(number) <= MOST:
        raise refuse("bucket", text, f"1 to {MOST} buckets per doubling")
    return name, int(number)

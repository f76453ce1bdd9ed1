"""The inequality behind every adaptive rate."""

import math

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import vector

__all__ = ["sum_over_roots"]


def sum_over_roots(a: ArrayLike) -> tuple[float, float]:
    r"""Return both sides of $\sum_i a_i / \sqrt{\sum_{j \le i} a_j} \le 2 \sqrt{\sum_i a_i}$, with 0/0 = 0.

    With $a_i = 1$ it is $\sum_t 1/\sqrt{t} \le 2\sqrt{T}$.

    Parameters
    ----------
    a : numbers of at least 0

    >>> sum_over_roots([1.0, 3.0, 0.0])
    (2.5, 4.0)

    Survey: Lemma 4
    """
    terms = vector("a", a)
    if terms.min() < 0:
        i = int(np.argmin(terms))
        raise ValueError(f"a: got {terms[i]} at index {i}, expected numbers of at least 0")
    largest = float(terms.max())
    if largest == 0:
        return 0.0, 0.0
    # Both sides grow like a root, so that the sums can be taken of numbers below 4, which do not overflow.
    half_exponent = (math.frexp(largest)[1] - 1) // 2
    terms, root = terms / 4.0**half_exponent, 2.0**half_exponent
    sums = np.cumsum(terms)
    fractions = np.divide(terms, np.sqrt(sums), out=np.zeros_like(terms), where=terms > 0)
    return root * float(fractions.sum()), 2 * root * math.sqrt(float(sums[-1]))

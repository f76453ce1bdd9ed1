"""The layout of a learner's state: the numbers of a record, its width, and the separate arrays.

Kernels, model files and copies of models use this definition. A record belongs to one coordinate and has ``parts``
numbers for each lane: z and n, then g_{1:t} where a certificate needs it, then Σσx where the state is the point itself.
Filters have the mean and the information of a weight in place of z and n. With filters and a certificate, the scale and
g_{1:t} of a few lanes follow at the end of a record, so that a coordinate touches no more cache lines than without.

Scale-free rates keep records in units, so that features of any scale stay in the range of the type. With s the largest
|value| of a coordinate and u its unit, values are v/u, weights are wu, and a record has z/u, n/u² and g_{1:t}/u, of
filters the mean times u. Where the state is the point, the record has the point without a unit. The unit of ordinary
scales is 1; that of others is the largest power of two that is not above the scale. Multiplication by it is exact.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = [
    "BINS",
    "CONCAVITY",
    "FACTS",
    "ORDINARY",
    "SUMS",
    "Lane",
    "Layout",
    "largest_unit",
    "record_width",
    "units_of",
]

SUMS = 5  # float64 sums of each lane: loss, Σ g·x, half-sum, ΣΣ g_{1:t}², clipped rows
BINS = 64  # of the histogram of slopes that certificates of log-loss need; bin b is from (b/64)⁴ to ((b + 1)/64)⁴
CONCAVITY = 3  # sums of the coefficients of forel.learner.kernels.concavity
FACTS = 2  # the largest |importance − 1|, and the largest rounding error of a label
ORDINARY = (2.0**-32, 2.0**16)  # the first scale whose unit is 1, and the first one above these


class Lane(NamedTuple):
    """Parameters of one lane, or a row for each of them: 1/α, β, λ1, λ2, and the radius R.

    Filters, which have no penalties, have 1 − memory in place of λ2.
    """

    inverse_alpha: Any
    beta: Any
    l1: Any
    l2: Any
    radius: Any


def record_width(numbers: int) -> int:
    """Return the distance between records of ``numbers`` numbers: three are padded to four.

    Records of four never straddle a cache line, and are loaded and stored by one instruction.

    >>> record_width(2), record_width(3), record_width(4), record_width(32)
    (2, 4, 4, 32)
    """
    return 4 if numbers == 3 else numbers


@dataclass(frozen=True)
class Layout:
    """Which numbers the state of a learner has, and where they are.

    Parameters
    ----------
    rule : the algorithm
    rate : its learning rate
    penalty_weight : whether penalties apply once or in every round
    lanes : number of models
    double : float64 instead of float32
    certified : whether records keep what certificates need
    histogram, concavity : whether certificates need a histogram of slopes, and sums that bound a concave function
    filters : how many of the lanes, the last ones, are Gaussian filters
    gradient_lanes : the lanes whose g_{1:t} is kept after the scale; empty if records keep that of all lanes, or none

    >>> Layout("proximal", "scale_free", "once", certified=True).parts
    3
    """

    rule: Literal["centered", "proximal", "mirror", "filter"]
    rate: Literal["adagrad", "scale_free"]
    penalty_weight: Literal["once", "every"]
    lanes: int = 1
    double: bool = False
    certified: bool = False
    histogram: bool = False
    concavity: bool = False
    filters: int = 0
    gradient_lanes: tuple[int, ...] = ()

    @property
    def dual_sums(self) -> int:
        """The number of further float64 sums of each lane, for certificates.

        They are ΣΣ (g_{1:t}/scale)², the histogram, those of concave functions, and facts about the rows. Each bin of
        the histogram has two: the importances of its rows, and their importances times |slope|.
        """
        return (1 + 2 * BINS * self.histogram + CONCAVITY * self.concavity + FACTS) * self.certified

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of number of the state."""
        return np.dtype(np.float64 if self.double else np.float32)

    @property
    def primal(self) -> bool:
        """Whether the state is the point itself, as in Mirror Descent, instead of a dual vector."""
        return self.rule == "mirror"

    @property
    def parts(self) -> int:
        """The number of numbers for each coordinate and lane."""
        if not self.certified or self.gradient_lanes:
            return 2
        return 4 if self.primal else 3 if self.rule == "proximal" else 2

    @property
    def gradient_part(self) -> int:
        """The part of a record that is g_{1:t}; z where it has no separate part."""
        return 2 if self.parts > 2 else 0

    @property
    def certified_lanes(self) -> tuple[int, ...]:
        """The lanes with sums of certificates."""
        return (self.gradient_lanes or tuple(range(self.lanes))) if self.certified else ()

    @property
    def single(self) -> bool:
        """Whether the kernel of one lane is used, which processes eight coordinates at a time."""
        return self.lanes == 1 and not self.filters

    @property
    def scale_in_record(self) -> bool:
        """Whether the scale of a scale-free rate is in the record: the fourth number, or before gradients."""
        return self.rate == "scale_free" and (bool(self.gradient_lanes) or (self.single and self.parts < 4))

    @property
    def separate_scales(self) -> bool:
        """Whether scales are in a separate array, because records have no space for them."""
        return self.rate == "scale_free" and not self.scale_in_record

    @property
    def scale_offset(self) -> int:
        """Where the scale is in a record that has one."""
        return self.lanes * self.parts if self.gradient_lanes else 3

    @property
    def width(self) -> int:
        """The distance from one record to the next, in numbers; a scale with gradients takes four."""
        if self.gradient_lanes:
            return self.scale_offset + 4
        return 4 if self.scale_in_record else record_width(self.lanes * self.parts)

    @property
    def keeps_round(self) -> bool:
        """Whether the round of the last update of each coordinate is kept: penalties of skipped rounds are to come."""
        return self.penalty_weight == "every" and self.primal

    def nbytes(self, slots: int) -> int:
        """Return the memory of ``slots`` coordinates in bytes."""
        numbers = self.width + int(self.separate_scales)
        return slots * (numbers * self.dtype.itemsize + int(self.keeps_round) * 8)

    def sizes(self, slots: int) -> dict[str, int]:
        """Return the sizes of the separate arrays; 1 for those that are not used."""
        return {
            "scales": slots if self.separate_scales else 1,
            "last_round": slots if self.keeps_round else 1,
        }

    def strength(self, n: NDArray[Any], scale: Any, p: Lane) -> Any:
        """Return 1/η_T of coordinates, from n in the units of values: the formula of the kernels for arrays.

        >>> Layout("proximal", "adagrad", "once").strength(np.array([9.0]), 1.0, Lane(10.0, 1.0, 0.0, 0.0, 1.0))
        array([40.])
        """
        if self.rate == "scale_free":
            return scale * (p.beta * scale + np.sqrt(n)) * p.inverse_alpha
        return (p.beta + np.sqrt(n)) * p.inverse_alpha


def largest_unit(dtype: DTypeLike) -> float:
    """Return the largest unit of a type; the smallest is its inverse, and both are normal numbers.

    >>> np.log2(largest_unit(np.float32))
    np.float64(126.0)
    """
    return float(np.ldexp(1.0, np.finfo(np.dtype(dtype)).maxexp - 2))


def units_of(scales: NDArray[Any]) -> NDArray[np.float64]:
    """Return the unit of each scale; 1 for 0.

    >>> np.log2(units_of(np.float32([1.7e18, 0.3, 0])))
    array([60.,  0.,  0.])
    """
    largest = largest_unit(scales.dtype)
    _, exponents = np.frexp(scales.astype(np.float64))
    found: NDArray[np.float64] = np.clip(np.ldexp(1.0, exponents - 1), 1 / largest, largest)
    found[(scales == 0) | ((scales >= ORDINARY[0]) & (scales < ORDINARY[1]))] = 1
    return found

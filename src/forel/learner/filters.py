"""Gaussian filters among the experts of a mixture: their parameters."""

from typing import NamedTuple

__all__ = ["Filter", "FullFilter"]


class Filter(NamedTuple):
    """A diagonal Gaussian filter: a mean and a variance of every weight, and no rate.

    Parameters
    ----------
    variance : prior variance of a weight times the scale of its feature
    shrinkage : means μ of variance V give the weights μ·max(0, μ² − cV)/(μ² + cV), c = shrinkage, of which many are 0;
        0 for the means themselves
    memory : the part of what is known about a weight that stays known after a row with its feature; below 1 for squared
        loss of streams that drift
    """

    variance: float
    shrinkage: float = 0.0
    memory: float = 1.0


class FullFilter(NamedTuple):
    """A Gaussian filter with all covariances: recursive least squares, or its equivalent for log-loss.

    Parameters
    ----------
    variance : prior variance of a weight times the scale of its feature; for squared loss relative to that of residuals
    memory : the part of what is known about the weights that stays known after a row; below 1 for streams that drift

    >>> FullFilter(30.0, 0.9999).name
    'full filter, variance=30, memory=0.9999'
    """

    variance: float
    memory: float = 1.0

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return f"full filter, variance={self.variance:g}" + (f", memory={self.memory:g}" if self.memory < 1 else "")

"""Geometric mixers: experts whose inputs are the margins of the other experts of a mixture."""

from typing import NamedTuple

__all__ = ["MIXERS", "Mixer"]


class Mixer(NamedTuple):
    """A second-level learner: its margin is an affine function of the margins of all lanes.

    Parameters
    ----------
    variance : prior variance of the weight of each lane, around 1 divided by the number of lanes
    memory : forgetting factor of the covariance of these weights after each row; below 1 for streams that drift

    >>> [mixer.name for mixer in MIXERS]
    ['mixer', 'mixer, memory=0.9997']
    """

    variance: float
    memory: float

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return "mixer" if self.memory == 1 else f"mixer, memory={self.memory:g}"


MIXERS = (Mixer(0.3, 1.0), Mixer(0.1, 0.9997))  # chosen as docs/guide/no_tuning.md describes

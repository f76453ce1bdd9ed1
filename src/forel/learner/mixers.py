"""Mixers: experts whose inputs are the predictions of the other experts of a mixture."""

from typing import NamedTuple

from forel.losses.margin import Mixing

__all__ = ["MIXERS", "RESIDUALS", "Mixer"]

RESIDUALS = 3  # numbers about residuals: the sum of their squares, of importances, and the unit


class Mixer(NamedTuple):
    """A second-level learner: its margin is an affine function of the margins of all lanes.

    Parameters
    ----------
    variance : prior variance of the weight of each lane, around 1 divided by the number of lanes
    memory : forgetting factor of the covariance of these weights after each row; below 1 for streams that drift
    residuals : whether it estimates the variance of its residuals, which log-loss does not need

    >>> [mixer.name for mixer in MIXERS[Mixing.BAYES]]
    ['mixer', 'mixer, memory=0.9997']
    """

    variance: float
    memory: float
    residuals: bool = False

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return "mixer" if self.memory == 1 else f"mixer, memory={self.memory:g}"

    def numbers(self, lanes: int) -> int:
        """Return the size of its state: weights of lanes and of a constant, their covariances, residuals."""
        return (lanes + 2) * (lanes + 1) + RESIDUALS * self.residuals


# By the rule that mixes all experts; chosen as docs/guide/no_tuning.md describes.
MIXERS = {
    Mixing.BAYES: (Mixer(0.3, 1.0), Mixer(0.1, 0.9997)),
    Mixing.EXP_CONCAVE: (Mixer(0.3, 1.0, residuals=True), Mixer(0.1, 0.9997, residuals=True)),
}

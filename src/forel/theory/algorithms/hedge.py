"""Experts: entropic FTRL on the simplex, and exponentiated gradient."""

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.mirror_descent import MirrorDescent
from forel.theory.geometries import Entropy
from forel.theory.rates import Constant, entropic_rate
from forel.theory.sets import Simplex

__all__ = ["exponentiated_gradient", "hedge"]


def hedge(n: int, lipschitz: float = 1.0) -> FTRL:
    r"""Return entropic FTRL, $x_{t+1,i} \propto e^{-\eta_t g_{1:t,i}}$ with $\eta_t = \sqrt{\log n/(G^2 + \sum_{s \le t}\|g_s\|_\infty^2)}$.

    Parameters
    ----------
    n : how many experts
    lipschitz : G, with |g_{t,i}| ≤ G

    >>> from forel.losses import Linear
    >>> experts = hedge(2, lipschitz=1.0)
    >>> experts.play(experts.update(experts.init(2), Linear([1.0, 0.0]))).round(3)
    array([0.357, 0.643])

    Survey: section 3.6
    """  # noqa: E501
    return FTRL(entropic_rate(n, lipschitz), Entropy(), feasible=Simplex())


def exponentiated_gradient(eta: float) -> MirrorDescent:
    r"""Return Mirror Descent with the entropy, $x_{t+1,i} \propto x_{t,i} e^{-\eta g_{t,i}}$.

    >>> from forel.losses import Linear
    >>> multiplicative = exponentiated_gradient(1.0)
    >>> multiplicative.play(multiplicative.update(multiplicative.init(2), Linear([1.0, 0.0]))).round(3)
    array([0.269, 0.731])

    Survey: section 6
    """
    return MirrorDescent(Constant(eta), Entropy(), feasible=Simplex())

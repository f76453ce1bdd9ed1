"""Mixing one row: geometric mixers and exponential weights in one call, which takes less time than two."""

from forel.jit.compiling import cached_njit
from forel.learner.kernels import bayes as bayes_rule
from forel.learner.kernels import elementary, geometric, mixing
from forel.learner.kernels.bayes import bayes
from forel.learner.kernels.geometric import mix

__all__ = ["mix_row"]

compiled = cached_njit(__file__, bayes_rule.__file__, elementary.__file__, geometric.__file__, mixing.__file__)


@compiled
def mix_row(margins, given, parameters, states, ledger, mixed, every, out):
    """Write the mixture's margin of a row, as ``geometric.mix`` and then ``bayes`` do.

    Parameters
    ----------
    margins : of the settings, in one row
    given : label and importance; a row of negative importance is predicted only
    parameters, states : of mixers, as ``geometric.mix`` takes them
    ledger : the array of :class:`forel.learner.mixture.Ledger`
    mixed, every : scratch, a row for the margins of mixers and one for those of settings and mixers
    """
    settings, mixers = margins.shape[1], parameters.shape[0]
    label, importance = given[:1], given[1:]
    mix(margins, label, importance, parameters, states, mixed)
    for k in range(settings):
        every[0, k] = margins[0, k]
    for k in range(mixers):
        every[0, settings + k] = mixed[0, k]
    bayes(every[0], settings + mixers, label, importance, ledger, out)

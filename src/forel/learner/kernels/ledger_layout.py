"""Where the numbers of a mixture's ledger are, for kernels and for :class:`forel.learner.mixture.Ledger`."""

__all__ = ["EMPTY_RANGE", "GAP", "HEAD", "HIGHEST", "IMPORTANCE", "LOSS", "LOSS_LIMIT", "LOWEST", "ROWS", "TOTAL"]

HEAD = 7  # numbers before the losses of experts
# The mixture's loss, the largest importance, the mixability gap, the smallest and the largest label, the number of
# rows, and the sum of their importances.
LOSS, IMPORTANCE, GAP, LOWEST, HIGHEST, ROWS, TOTAL = range(HEAD)
EMPTY_RANGE = 1e300, -1e300  # smallest and largest label before the first one
LOSS_LIMIT = 1e290  # losses above it could overflow their sum; reaching it voids the bound

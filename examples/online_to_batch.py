"""Online learning as a solver: logistic regression, compared with scikit-learn's.

For losses drawn from a table, the average of the played points is above the minimum of F(x) = 1/N Σ f_k(x) by at most
regret over rounds, in expectation. An online algorithm is therefore also a solver, which is close to the minimum
after one pass. The last point has no such guarantee. scikit-learn's solver uses all rows in each step and has many
more correct digits, but these hardly matter for new rows: the minimum itself is farther from the true weights than
that.

Survey: section 1
"""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from forel.losses import Logistic
from forel.theory.algorithms import adagrad_ftrl_proximal
from forel.theory.analysis import online_to_batch, play
from forel.theory.analysis.batch import sampled
from forel.theory.analysis.streams import examples_from
from forel.theory.sets import Box

ROWS, UNSEEN, FEATURES, RADIUS = 2000, 20_000, 20, 3.0


def main() -> None:
    """Solve one problem in both ways, and evaluate both on new rows."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=FEATURES) / 2
    X = rng.normal(size=(ROWS + UNSEEN, FEATURES))
    y = (rng.random(ROWS + UNSEEN) < Logistic().link(X @ truth)).astype(float)

    def mean(x: np.ndarray, rows: slice) -> float:
        return float(np.mean(Logistic()(X[rows] @ x, y[rows])))

    seen, unseen = slice(ROWS), slice(ROWS, None)
    start = time.perf_counter()
    best = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X[seen], y[seen]).coef_[0]
    seconds = time.perf_counter() - start
    assert np.abs(best).max() < RADIUS

    losses = examples_from(X[seen], y[seen], Logistic())
    print(f"{ROWS} rows, {FEATURES} features; F is the average log-loss\n")
    print(f"{'':34} {'F − min F':>10} {'proved':>8} {'new rows':>9}")
    for passes in (1, 4, 8):
        algorithm = adagrad_ftrl_proximal(0.3, feasible=Box(-RADIUS, RADIUS))
        trace = play(algorithm, sampled(losses, passes * ROWS))
        solved = online_to_batch(trace, best)
        for name, x, proved in (("average", solved.average, f"{solved.gap:8.4f}"), ("last", solved.last, "")):
            gap = mean(x, seen) - mean(best, seen)
            what = f"{passes * ROWS:6} rows drawn, {name} point"
            print(f"{what:34} {gap:10.6f} {proved:>8} {mean(x, unseen):9.5f}")
        assert mean(solved.average, seen) - mean(best, seen) <= solved.gap
    print(f"{f'scikit-learn, lbfgs, {seconds:.2f} s':34} {0:10.6f} {'':8} {mean(best, unseen):9.5f}")
    print(f"{'the true weights':34} {'':10} {'':8} {mean(truth, unseen):9.5f}")


if __name__ == "__main__":
    main()

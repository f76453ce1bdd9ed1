"""Portfolios of New York stocks: experts on the simplex, and their regret in terms of wealth.

Run with the path of a table of daily price relatives, one row per day and one column per stock, such as the set
NYSE(O) of 36 stocks over 22 years: ``python examples/portfolio.py nyse_o.csv.gz``.

A stock's wealth is the product of its relatives, so that −log of a relative is a loss, and wealth is e^(−loss).
Mixing stocks by Bayes' rule is the same as buying equal parts and holding them: the weight of a stock is its share of
the wealth. A regret of at most log K means that the wealth is at least a K-th of the best stock's. Constant
rebalancing does better; entropic FTRL has nearly the wealth of the best constant portfolio in hindsight.
"""

import math
import pathlib
import sys

import numpy as np

from forel.cvx import available, cvxpy, minimize
from forel.experts import AdaHedge, FixedShare, Likelihoods, mix
from forel.losses import Convex
from forel.theory.algorithms import hedge
from forel.theory.analysis import entropic_formula, play
from forel.theory.sets import Simplex


def growth(day: np.ndarray) -> Convex:
    """Return the loss −log(x·day) of a portfolio x.

    Between portfolios only differences of the gradient's coordinates count. With 1 added to each, they are small,
    which makes the rate's denominator and the bound smaller.
    """
    return Convex(lambda x: -math.log(day @ x), lambda x: 1 - day / (day @ x))


def trade(relatives: np.ndarray) -> tuple[float, float]:
    """Return the log-wealth and the regret bound of AdaHedge on linearized losses, which needs no tuning."""
    rule, wealth = AdaHedge(), 0.0
    state = rule.init(relatives.shape[1])
    for day in relatives:
        value = float(day @ rule.play(state))
        wealth += math.log(value)
        state = rule.update(state, -day / value)
    return wealth, float(rule.bound(state)[0])


def report(relatives: np.ndarray) -> None:
    """Print the final wealth of each strategy, from 1."""
    days, K = relatives.shape
    held = mix(relatives, pool=Likelihoods())
    best = float(np.exp(-held.totals.min()))
    wealth, regret = math.exp(-held.loss), held.guarantee()
    print(f"{days} days, {K} stocks; wealth from 1\n")
    print(f"{best:8.2f}  best stock in hindsight, number {held.best}")
    print(f"{wealth:8.2f}  equal parts bought and held, the Bayes mixture of stocks")
    print(f"          proved: at least {best:.2f}/{K} = {best * math.exp(-regret.bound):.2f}, because regret ≤ log {K}")
    assert math.isclose(wealth, relatives.prod(axis=0).mean(), rel_tol=1e-9)

    shared = mix(relatives, pool=Likelihoods(), rule=FixedShare())
    print(f"{math.exp(-shared.loss):8.2f}  fixed share with α = 1/t")
    print(f"{math.exp(np.log(relatives.mean(axis=1)).sum()):8.2f}  equal parts, rebalanced every day")

    largest = float((relatives.max(axis=1) / relatives.min(axis=1)).max()) - 1  # known in hindsight only
    trace = play(hedge(K, largest), [growth(day) for day in relatives], n=K)
    log_wealth, entropic = -trace.values.sum(), entropic_formula(trace, np.eye(K)[0], largest)
    ada, ada_bound = trade(relatives)
    named = [("entropic FTRL", log_wealth, entropic.total), ("AdaHedge on gradients", ada, ada_bound)]
    for name, log, _ in named:
        print(f"{math.exp(log):8.2f}  {name}")
    if not available():
        return
    cp = cvxpy()
    parts = minimize(K, lambda x: -cp.sum(cp.log(relatives @ x)) / days, Simplex().constraints)
    top = float(np.log(relatives @ parts).sum())
    print(f"{math.exp(top):8.2f}  best constant portfolio in hindsight\n")
    for name, log, bound in named:
        print(f"{name}: regret {top - log:.2f} of at most {bound:.2f}, so wealth is proved to be at least", end=" ")
        print(f"{math.exp(top - bound):.2g}, {100 * bound / days:.2f} % a day behind")
        assert top - log <= bound


def main() -> None:
    """Read the table named on the command line."""
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if path is None or not path.exists():
        print(f"No table of price relatives{f' at {path}' if path else ''}; run with the path of one, as nyse_o.csv.gz")
        return
    report(np.loadtxt(path, delimiter=","))


if __name__ == "__main__":
    main()

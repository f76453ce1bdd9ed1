"""The errata: each slip that can be computed is one, and what stands instead of it holds; the page has them all."""

import pathlib
import re

import numpy as np
import pytest

from forel.losses import Linear
from forel.theory.algorithms import MirrorDescent, ftrl_proximal, gradient_descent
from forel.theory.analysis import play, strong_ftrl_lemma, surrogate_regret, theorem_12
from forel.theory.analysis.adversaries import l1_example_alternating
from forel.theory.analysis.streams import random_linear
from forel.theory.geometries import Euclidean
from forel.theory.norms import L1, LINF, ScaledNorm
from forel.theory.rates import Constant
from forel.theory.survey import ERRATA

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory" / "errata.md").read_text()


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda e: e.location)
def test_every_erratum_is_on_the_page_and_on_the_map(erratum):
    assert f"**{erratum.location}**" in PAGE
    assert f"**{erratum.location}**" in (ROOT / "docs" / "survey_map.md").read_text()


def test_every_result_named_on_the_page_exists_in_the_code():
    listed = set(re.findall(r"^- \*\*(.+?)\*\*", PAGE, re.MULTILINE))
    assert listed < {erratum.location for erratum in ERRATA}


def test_the_page_is_in_the_navigation_and_linked():
    assert "theory/errata.md" in (ROOT / "mkdocs.yml").read_text()
    assert "(errata.md)" in (ROOT / "docs" / "theory" / "index.md").read_text()
    assert "(theory/errata.md)" in (ROOT / "docs" / "survey_map.md").read_text()


def at_rest(rounds, penalty, lipschitz=11.0):
    """Return whether Native FTRL has x_T = 0 against appendix D's gradients, from |g_{1:T−1}| ≤ (T − 1)λ."""
    adversary = l1_example_alternating(lipschitz, penalty)
    gradients = [-(lipschitz + penalty) / 2, *(lipschitz * (-1) ** t for t in range(rounds - 2))]
    assert [adversary(t, np.zeros(1)).g[0] for t in range(1, rounds)] == gradients
    return abs(sum(gradients)) <= (rounds - 1) * penalty + 1e-12


@pytest.mark.parametrize("rounds", range(2, 30))
def test_appendix_d_needs_a_larger_penalty_for_even_horizons(rounds):
    assert at_rest(rounds, 11 / (2 * rounds - 3))
    assert at_rest(rounds, 11 / (2 * rounds - 1)) == (rounds % 2 == 1)
    assert at_rest(rounds, 0.999 * 11 / (2 * rounds - 3)) == (rounds % 2 == 1)


def test_lemma_3_needs_the_dual_norm_on_the_right():
    g, sigma = np.array([3.0, -4.0]), 4.0
    dual = ScaledNorm(L1, np.sqrt(sigma)).dual(g)
    corners = [sign * np.eye(2)[i] / np.sqrt(sigma) for i in (0, 1) for sign in (1, -1)]  # of the ball √σ‖x‖_1 ≤ 1
    assert dual == max(float(g @ x) for x in corners) == LINF(g) / 2 != L1(g) / 2


def test_section_3_3_has_strength_after_round_1():
    trace = play(ftrl_proximal(2.0, 3.0), [Linear([3.0])])
    assert trace.stages[0].regularizer.strength == pytest.approx(3 / (np.sqrt(2) * 2))


def test_the_remark_after_lemma_5_needs_r_0():
    trace, x = play(gradient_descent(0.5), random_linear(2, 20)), np.array([2.0, -1.0])
    parts, r_0 = strong_ftrl_lemma(trace, x), trace.initial
    difference = r_0(trace.points[-1]) - r_0(x)
    assert parts.regret == pytest.approx(parts.bound + parts.remainder, abs=1e-12)
    assert abs(difference) > 1
    assert parts.regret - (parts.bound + parts.remainder - difference) == pytest.approx(difference)


def test_section_6_3_needs_r_0_of_the_comparator():
    """Against a constant gradient without r_0(x*) the bound is ½ηG²T, and regret at x* = −R is GRT less twice that."""
    trace = play(MirrorDescent(Constant(0.1), Euclidean()), [Linear([1.0])] * 10)
    x = np.array([-5.0])
    limit = theorem_12(trace, x)
    assert surrogate_regret(trace, x) > limit.stability.sum()
    assert limit.regularization[-1] == pytest.approx(trace.initial(x)) == 125.0

"""Comparisons: false statements under nulls, at most as often as stated, and what sentences say."""

import math
import re

import numpy as np
import pytest

from forel.evidence import Comparison
from forel.evidence.comparison import DECIDED
from tests.evidence.streams import ROWS, RUNS, allowed, log_evidence, nulls


def losses_of(difference):
    """Log-losses of two models within [0.01, 0.99] whose difference is given."""
    middle = (-math.log(0.01) - math.log(0.99)) / 2
    return middle - difference / 2, middle + difference / 2


def test_the_worst_moment_to_stop_is_no_better_than_stated():
    rng = np.random.default_rng(0)
    wrong = {}
    for _ in range(RUNS):
        for name, x in nulls(rng):
            # Looked at after every row, by the row that decided: A is not better at any of them.
            compared = Comparison()
            compared.add(*losses_of(np.clip(x, -0.5, 0.5) * 8))
            wrong[name] = wrong.get(name, 0) + (compared.decided_after is not None and compared.state[DECIDED][1] > 0)
    assert max(wrong.values()) <= allowed(0.025), wrong


def test_a_t_test_with_a_look_after_every_row_is_wrong_far_more_often():
    """A control: under the same nulls, with as many looks, these counts do tell a statement that is false."""
    rng, wrong, rows = np.random.default_rng(0), {}, np.arange(1, ROWS + 1)
    for _ in range(RUNS):
        for name, x in nulls(rng):
            mean = np.cumsum(x) / rows
            variance = np.maximum(np.cumsum(x * x) / rows - mean**2, 1e-12)
            wrong[name] = wrong.get(name, 0) + bool((mean[30:] > 1.96 * np.sqrt(variance / rows)[30:]).any())
    assert sum(count > allowed(0.025) for count in wrong.values()) >= 4, wrong
    assert max(wrong.values()) > 0.7 * RUNS


def test_right_probabilities_are_refuted_at_most_as_often_as_stated():
    rng, refuted, found = np.random.default_rng(1), 0, 0
    for _ in range(RUNS):
        right = rng.uniform(0.01, 0.5, 2000)
        other = np.clip(right * np.exp(rng.normal(size=2000) * 0.3), 1e-9, 0.999)
        labels = rng.random(2000) < right
        compared = Comparison()
        compared.add(*(-np.log(np.where(labels, p, 1 - p)) for p in (other, right)))
        refuted += compared.refuted_after[1] is not None
        found += compared.refuted_after[0] is not None
    assert refuted <= allowed(0.05)
    assert found >= RUNS * 0.9


def test_the_deciding_row_is_that_of_the_slow_twin():
    rng = np.random.default_rng(2)
    labels, p, q = rng.random(3000) < 0.3, rng.uniform(0.2, 0.4, 3000), rng.uniform(0.4, 0.6, 3000)
    a, b = (-np.log(np.where(labels, one, 1 - one)) for one in (p, q))
    compared = Comparison()
    for part in np.array_split(np.arange(3000), 7):
        compared.add(a[part], b[part])
    most = math.log(99)
    evidence = log_evidence(b - a, -most, most, 0.0)
    assert compared.decided_after == 1 + int(np.argmax(evidence >= math.log(40)))
    ratio = np.cumsum(b - a)
    assert compared.refuted_after[1] == 1 + int(np.argmax(ratio >= math.log(20)))
    np.testing.assert_allclose(compared.log_e_values()[0], evidence[-1], rtol=1e-9)


def test_a_sentence_is_rounded_to_the_safe_side():
    rng = np.random.default_rng(3)
    for kind in ("log", "relative"):
        compared = Comparison(kind)
        a = rng.uniform(0.1, 1, 5000)
        compared.add(a, a * 1.3)
        low, high = compared.interval()
        said = compared.sentence("old.forel", "new.forel")
        least, largest = map(float, re.search(r"better than new.forel by ([\d.]+) to ([\d.]+)", said).groups())
        unit = 1 if kind == "log" else 100
        assert 0 < least <= low * unit <= high * unit <= largest
        swapped = Comparison(kind)
        swapped.add(a * 1.3, a)
        assert swapped.better == "B"
        assert swapped.interval() == pytest.approx((-high, -low), abs=1e-12)


@pytest.mark.parametrize("kind", ["relative", "log"])
def test_the_sentence_says_when_totals_point_the_other_way(kind):
    """A is better on most rows by a little, and far worse on a few, which dominate sums and no average over rows."""
    rng, n = np.random.default_rng(4), 3000
    a, b = rng.uniform(0.1, 0.2, n), rng.uniform(0.4, 0.5, n)
    a[::50] = 1e4
    w = rng.choice([0.0, 0.5, 2.0], n)
    compared = Comparison(kind)
    for part in np.array_split(np.arange(n), 5):
        compared.add(a[part], b[part], w[part])
    total = [float((w * each).sum() / w.sum()) for each in (a, b)]
    assert total[0] > total[1]
    assert compared.better == "A"
    said, found = compared.sentence("old", "new"), compared.to_json()
    assert said.startswith("old is better than new by ")
    clause = re.search(r"rows; but new has the smaller average loss, ([\d.,]+) against ([\d.,]+), ", said)
    assert [float(one.replace(",", "")) for one in clause.groups()] == pytest.approx(total[::-1], rel=1e-5)
    assert (found["loss_a"], found["loss_b"]) == pytest.approx(total)
    assert (found["better"], found["smaller_average_loss"]) == ("A", "B")
    agreeing = Comparison(kind)
    agreeing.add(b, b + 1)
    assert "but" not in agreeing.sentence()


def test_equal_models_are_not_told_apart_and_labels_of_probability_0_refute():
    compared = Comparison()
    compared.add(np.full(1000, 0.4), np.full(1000, 0.4))
    assert compared.better is None
    assert compared.sentence().startswith("after 1,000 rows, neither is shown to be better: A is better than B by at m")
    compared.add([0.1], [math.inf])
    assert compared.refuted_after == (None, 1001)
    with pytest.raises(ValueError, match="row 1 of losses_a: got nan"):
        compared.add([0.1, math.nan], [0.1, 0.2])
    with pytest.raises(ValueError, match="one loss of each model"):
        compared.add([0.1], [0.1, 0.2])

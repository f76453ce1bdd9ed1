"""Coverage: the theorem against adversaries that know the interval, a slow twin, and streams that drift."""

import numpy as np
import pytest

from forel.evidence import Coverage
from forel.evidence.coverage import CORRECTION, RATES

ADVERSARIES = {
    "just outside": lambda t, q, s, rng: max(q, 0) * 1.0001 + 1e-9,
    "just inside": lambda t, q, s, rng: max(q, 0.0) if t else 1.0,
    "always larger": lambda t, q, s, rng: 10.0 ** (t / 200),
    "inside, then outside": lambda t, q, s, rng: 0.0 if t % 2 else max(q, 0) + 1,
    "one explosion": lambda t, q, s, rng: 1e9 if t == 300 else rng.random(),
    "shrinking": lambda t, q, s, rng: 2.0 ** -(t / 50),
    "as rarely covered as possible": lambda t, q, s, rng: (
        q + s * 1e-3 if 0 <= q < s * (1 - 1e-3) else 0.0 if s else 1.0
    ),
    "zeros, then ones": lambda t, q, s, rng: float(t > 100),
    "heavy tails": lambda t, q, s, rng: abs(rng.standard_cauchy()),
    "outside until the width is large": lambda t, q, s, rng: q + 1e-3 if q < s else 0.0,
}


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.99])
def test_no_adversary_leaves_the_bound(level):
    rng = np.random.default_rng(0)
    for name, choose in ADVERSARIES.items():
        coverage, largest = Coverage(level), 0.0
        for t in range(600):
            before = coverage.half_width if coverage.state[2] else 0.0
            width = coverage.state.copy()
            score = choose(t, before, largest, rng)
            found = coverage.add([0.0], [score])[0]
            assert max(found, 0.0) == pytest.approx(before, rel=1e-9, abs=1e-12 * max(largest, 1)), (name, t, width)
            largest = max(largest, score)
            assert abs(coverage.covered - level * coverage.rows) <= coverage.deviation_bound * (1 + 1e-9), (name, t)


def twin(scores, alpha):
    """Half widths, row by row: AdaHedge over quantiles of several rates, and the correction."""
    count = len(RATES)
    q, losses, gap, largest, corrected, widths = np.zeros(count), np.zeros(count), 0.0, 0.0, 0.0, []
    for s in scores:
        excess = losses - losses.min()
        w = np.exp(-excess * np.log(count) / gap) if gap > 0 else 1.0 * (excess == 0)
        w /= w.sum()
        widths.append(min(max(w @ q, 0.0), largest) + corrected)
        largest = max(largest, s)
        if largest == 0:
            continue
        loss = np.maximum((1 - alpha) * (s - q), -alpha * (s - q))
        loss -= loss.min()
        mixed = -np.log(w @ np.exp(-loss * np.log(count) / gap)) * gap / np.log(count) if gap > 0 else 0.0
        gap += max(w @ loss - mixed, 0.0)
        losses += loss
        q += RATES * largest * ((s > q) - alpha)
        corrected += CORRECTION * largest * ((s > widths[-1]) - alpha)
    return np.array(widths)


def test_widths_are_those_of_the_twin_whatever_the_blocks():
    labels = np.random.default_rng(1).standard_t(3, 1500) * np.linspace(0.1, 2, 1500)
    labels[:5] = 0
    once, blocks = Coverage(0.8), Coverage(0.8)
    widths = once.add(np.zeros(1500), labels)
    np.testing.assert_allclose(widths, twin(np.abs(labels), 0.2), rtol=1e-9, atol=1e-12)
    parts = [blocks.add(np.zeros(len(part)), part) for part in np.array_split(labels, 11)]
    assert np.array_equal(np.concatenate(parts), widths)
    assert np.array_equal(once.state, blocks.state)
    resumed = Coverage(0.8)
    resumed.state[:] = once.state
    assert resumed.half_width == once.half_width


@pytest.mark.parametrize("name", ["variance", "level", "heavy"])
def test_any_500_rows_of_a_stream_that_drifts_are_nearly_as_often_covered(name):
    rng = np.random.default_rng(2)
    noise = rng.normal(size=6000)
    labels = {
        "variance": noise * np.where(np.arange(6000) < 3000, 0.2, 6.0),
        "level": noise * np.exp(np.sin(np.arange(6000) / 700)),
        "heavy": rng.standard_t(1.5, 6000),
    }[name]
    widths = Coverage(0.9).add(np.zeros(6000), labels)
    covered = np.abs(labels) <= widths
    assert abs(covered.mean() - 0.9) < 0.01
    # The rows right after the variance has grown by a factor of 900 are not: nobody can know it.
    assert np.convolve(covered, np.ones(500) / 500, "valid").min() > 0.83


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="interval: got 1"):
        Coverage(1.5)
    with pytest.raises(ValueError, match="row 1 of labels: got nan"):
        Coverage().add([0.0, 0.0], [1.0, np.nan])
    assert "no label differed" in Coverage().sentence()

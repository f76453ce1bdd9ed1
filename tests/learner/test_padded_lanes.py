"""State padded to whole vectors have the bits of lanes that are not, and no others are written."""

import numpy as np
import pytest

from forel.learner.experts import Filter
from forel.learner.kernels.kernel import uncompiled_kernel
from forel.learner.kernels.reference import constants
from forel.learner.settings import Settings
from forel.learner.state import State

N = 7
ALPHA = (0.05, 0.3, 1.5, 20.0, 0.1, 0.2, 0.4, 3.0, 9.0)
FILTERS = (Filter(10.0, 1.0), Filter(0.3), Filter(0.03, 1.0))


def scale_free(lanes, filters=0, **others):
    return Settings(alpha=ALPHA[:lanes], beta=0.01, rate="scale_free", filters=FILTERS[:filters], l1=0.01, **others)


def learned(settings, certified, labels="shared", classes=1, *, pad, largest=1.0):
    """Return a state, margins and predictions after rows of all lengths, with some values times ``largest``."""
    rng = np.random.default_rng(3)
    lengths = rng.permutation(np.repeat(np.arange(N), 3))
    indices = np.concatenate([rng.permutation(N)[:length] for length in lengths]).astype(np.int32)
    values, ends = (rng.integers(-300, 300, indices.size) / 128).astype(np.float32), np.append(0, np.cumsum(lengths))
    values[::5] *= np.float32(largest)
    y, importance = (rng.integers(0, high, lengths.size).astype(np.float32) for high in (max(classes, 2), 3))
    lanes = State(N, settings, settings.n_settings * classes, np.float32, certified, labels)
    kernel = uncompiled_kernel(lanes.spec, pad)
    assert (constants(lanes.spec, pad)["PADDED"] > lanes.n_lanes) == pad
    margins, predictions = np.empty((2, y.size * lanes.n_lanes), np.float32)
    inputs = ends, indices, values, y, importance
    assert kernel.learn(*inputs, *lanes.arrays, lanes.shape, N + 1, lanes.totals, margins) == y.size
    lanes.rounds = y.size
    kernel.score(ends, indices, values, *lanes.arrays, lanes.totals, False, predictions)
    return [each.tobytes() for each in (*lanes.arrays[:3], lanes.totals, margins, predictions)]


@pytest.mark.parametrize(
    ("settings", "certified", "others"),
    [
        (scale_free(3), False, ()),
        (scale_free(9), True, ()),
        (scale_free(2, filters=3), False, ()),
        (scale_free(1, filters=2), True, ()),
        (scale_free(8, filters=1), False, ()),
        (Settings("squared", "filter", alpha=(0.1, 1.0, 3.0)), False, ()),
        (Settings(algorithm="mirror", alpha=(0.1, 0.2, 0.3), l1=0.01), True, ()),
        (Settings("squared", alpha=(0.1, 0.2)), False, ()),
        (Settings("softmax", alpha=(0.1, 0.2)), True, ("shared", 3)),
        (scale_free(2), False, ("classes", 3)),
    ],
)
@pytest.mark.parametrize("largest", [1.0, 1e18, 1e38], ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_padded_lanes_have_the_bits_of_others(settings, certified, others, largest):
    padded, plain = (learned(settings, certified, *others, pad=pad, largest=largest) for pad in (True, False))
    assert padded == plain


@pytest.mark.parametrize(
    ("settings", "padded", "unrolled"),
    [
        (Settings(alpha=0.1), 1, True),
        (scale_free(2), 8, False),
        (scale_free(4), 4, False),
        (scale_free(8), 8, False),
        (scale_free(9), 16, True),
        (scale_free(5, filters=3), 8, True),
        (scale_free(4, filters=3), 8, False),
        (scale_free(2, filters=3), 8, False),
        (Settings(algorithm="mirror", penalty_weight="every", alpha=ALPHA[:3]), 3, True),
    ],
)
def test_lanes_are_padded_where_loops_over_them_vectorize(settings, padded, unrolled):
    found = constants(State(N, settings, settings.n_settings).spec)
    assert (found["PADDED"], found["UNROLLED"]) == (padded, unrolled)

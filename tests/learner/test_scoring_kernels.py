"""Predictions and weights have one kernel for all losses: their code is the same as that of the scoring spec.

Where only the function that learns is compiled, it predicts, too, with the same bits.
"""

import itertools
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from forel.jit import CachedFunction
from forel.jit.sharing import _identity, _used
from forel.learner.filters import Filter
from forel.learner.kernels.kernel import compiled_kernel, kernel, scoring_spec, uncompiled_kernel
from forel.learner.kernels.score_by_learning import score_by
from forel.learner.kernels.spec import KernelSpec
from forel.learner.lanes import Lanes
from forel.learner.layout import Layout
from forel.learner.settings import Settings

RATES = ("adagrad", "scale_free", "constant", "root")
LAYOUTS = [
    Layout(rule, rate, penalties, lanes, double, certified, histogram=True, concavity=True)
    for place, (rule, rate, lanes) in enumerate(itertools.product(("proximal", "centered", "mirror"), RATES, (1, 3, 8)))
    for penalties, double, certified in [(("once", "every")[place % 2], place % 3 == 0, place % 4 < 2)]
]
LAYOUTS += [Layout("implicit", "adagrad", "once", 2), Layout("proximal", "scale_free", "once", 8, filters=4)]


def identity(function):
    """What numba compiles a function from: its code, and what it finds under the names that it uses."""
    names = function.py_func.__globals__
    used = sorted(_used(function.py_func.__code__).intersection(names))
    return function.py_func.__code__, [(name, _identity(names[name])) for name in used]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_code_of_predictions_does_not_depend_on_losses_and_labels(layout):
    lanes = layout.lanes
    specs = [KernelSpec("squared", layout), KernelSpec("logistic", layout, bias=True, units=True)]
    if lanes > 1:
        specs += [
            KernelSpec("hinge", layout, labels="signs", settings=lanes),
            KernelSpec("softmax", layout, joint=True),
        ]
    for spec in specs:
        own, shared = compiled_kernel(spec), compiled_kernel(scoring_spec(spec))
        assert identity(own.score) == identity(shared.score)
        assert identity(own.learn) != identity(shared.learn) or scoring_spec(spec) == spec


def test_models_of_all_losses_predict_with_one_function():
    layout = Layout("proximal", "adagrad", "once")
    first, second, own = (
        kernel(KernelSpec(loss, layout)) for loss in ("hinge", "squared", lambda margin, label: (0, 0))
    )
    assert first.module.score is second.module.score is own.module.score
    assert first.learn is not second.learn


N, ALPHA = 40, (0.05, 0.3, 1.5, 20.0, 0.1, 0.2, 0.4, 3.0)


def scale_free(lanes, **others):
    return Settings(alpha=ALPHA[:lanes], beta=0.01, rate="scale_free", l1=0.01, **others)


class Compiled:
    """A function that counts as compiled."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def cached(self, *arguments):
        return True

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


def predictions(kernel, settings, certified, dtype, largest):
    """Return margins and weights by ``score`` and by ``learn``, and whether the latter left the state as it was."""
    rng, rows = np.random.default_rng(5), 60
    lengths = rng.integers(0, 12, rows)
    indices = np.concatenate([rng.choice(N, length, replace=False) for length in lengths]).astype(np.int32)
    values, ends = rng.normal(size=indices.size).astype(dtype), np.append(0, np.cumsum(lengths))
    values[::17] *= largest
    lanes = Lanes(N, settings, settings.lanes, dtype, certified)
    functions = kernel(replace(lanes.spec, units=lanes.spec.units and largest > 1))
    labels, importance, out = rng.integers(0, 2, rows).astype(dtype), np.ones(rows, dtype), np.empty(0, dtype)
    for _ in range(2):
        lanes.rounds += functions.learn(
            ends, indices, values, labels, importance, *lanes.arrays, lanes.shape, N, lanes.totals, False, out
        )
    before = lanes.records.tobytes(), lanes.totals.tobytes()
    learn, found = Compiled(functions.learn), []
    score = getattr(functions, "module", functions).score  # compiled, if it is, where ``functions.score`` need not be
    for of_weights, bounds, places in ((False, ends, indices), (True, np.array([0, 7, N + 1]), np.arange(N + 1))):
        arguments = bounds, places.astype(np.int32), np.resize(values, places.size), *lanes.arrays, lanes.totals
        for function in (score, score_by(learn, *arguments, of_weights, out)):
            margins = np.zeros((bounds.size - 1 if not of_weights else places.size) * lanes.lanes, dtype)
            assert function(*arguments, of_weights, margins) == bounds.size - 1
            found.append(margins.tobytes())
    assert learn.calls == 2
    assert lanes.rounds == 2 * rows
    return found, before == (lanes.records.tobytes(), lanes.totals.tobytes())


@pytest.mark.parametrize("largest", [1.0, 1e15], ids=str)
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        scale_free(1),
        scale_free(3),
        scale_free(4, filters=(Filter(10.0, 1.0), Filter(0.3), Filter(0.03, 1.0), Filter(0.1))),
        Settings(alpha=0.1, l1=0.5, penalty_weight="every"),
        Settings("hinge", "mirror", alpha=(0.1, 0.2), l1=0.01),
        Settings("squared", "centered", rate="root", alpha=0.1, l2=0.1, bias=False),
        Settings(algorithm="implicit", alpha=(0.1, 0.2)),
    ],
    ids=lambda settings: f"{settings.algorithm}-{settings.rate}-{settings.lanes}",
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_learning_held_out_rows_predicts_and_changes_nothing(settings, certified, largest):
    (margins, others, weights, other_weights), unchanged = predictions(
        uncompiled_kernel, settings, certified, np.float32, largest
    )
    assert margins == others
    assert weights == other_weights
    assert unchanged


@pytest.mark.parametrize(
    ("settings", "certified", "dtype"),
    [
        (scale_free(4, filters=(Filter(10.0, 1.0), Filter(0.3), Filter(0.03, 1.0), Filter(0.1))), True, np.float32),
        (scale_free(1), False, np.float32),
        (Settings(), False, np.float64),
    ],
    ids=["pairs", "one lane", "float64"],
)
def test_compiled_functions_predict_the_same_bits(settings, certified, dtype):
    (margins, others, weights, other_weights), unchanged = predictions(kernel, settings, certified, dtype, 1.0)
    assert margins == others
    assert weights == other_weights
    assert unchanged


def test_a_function_that_is_not_compiled_is_replaced_by_one_that_is():
    compiled = []
    new = CachedFunction("new", "x", lambda: compiled.append(1) or abs, lambda x: (lambda x: -x) if x < 0 else None)
    assert new(-2.0) == 2.0  # decided once for each combination of types
    assert new(3.0) == -3.0
    assert new(3) == 3
    assert compiled == [1]


def test_functions_of_one_row_are_in_a_module():
    """Tools that measure the memory of a model do not descend into modules, and names in them are found at once."""
    layout = Layout("proximal", "adagrad", "once")
    first, second = (kernel(KernelSpec(loss, layout)).module for loss in ("hinge", "squared"))
    assert isinstance(first, ModuleType)
    assert first.predict_one is second.predict_one
    assert first.learn_one is not second.learn_one

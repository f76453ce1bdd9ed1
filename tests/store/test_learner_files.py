"""Learners continue bit for bit from a file, and files store the extra content."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from scipy import sparse

from forel.data import Names, slot
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Huber, Logistic, Quantile
from forel.sklearn import estimator_of
from forel.store import ModelFileError, serving_model
from forel.training.model import load, save
from tests.store.cases import N, learned, parts, reader_of, stream, user_loss

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")  # the content of a file does not depend on compiling


EVERY = list(
    itertools.product(
        ("proximal", "centered", "mirror"),
        ("adagrad", "scale_free"),
        ("once", "every"),
        (False, True),
        ("float32", "float64"),
        ("one", "lanes", "classes"),
    )
)


@pytest.mark.parametrize(("algorithm", "rate", "weight"), sorted({e[:3] for e in EVERY}), ids=str)
def test_learning_resumes_from_a_file_bit_for_bit(algorithm, rate, weight, tmp_path):
    for certified, dtype, several in itertools.product((False, True), ("float32", "float64"), ("one", "lanes")):
        alpha = (0.2, 0.7) if several == "lanes" else 0.4
        options = Settings("logistic", algorithm, rate, alpha, l1=0.01, l2=0.02, penalty_weight=weight)
        dense, labels = stream(8)
        never = Learner(N, options, dtype=dtype, certified=certified, mixed=False)
        never.learn(dense, labels)
        first = Learner(N, options, dtype=dtype, certified=certified, mixed=False)
        first.learn(dense[:4], labels[:4])
        save(tmp_path / "half", first)
        second = load(tmp_path / "half").learner
        assert parts(second) == parts(first)
        second.learn(dense[4:], labels[4:])
        assert parts(second) == parts(never)
        save(tmp_path / "never", never)
        save(tmp_path / "resumed", second)
        assert (tmp_path / "never").read_bytes() == (tmp_path / "resumed").read_bytes()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
@pytest.mark.parametrize("certified", [False, True])
def test_multiclass_learners_survive_a_file(loss, certified, tmp_path):
    model = learned(options=Settings(loss), classes=3, certified=certified)
    save(tmp_path / "m", model)
    again = load(tmp_path / "m").learner
    assert parts(again) == parts(model)
    assert np.array_equal(again.margins(stream()[0]), model.margins(stream()[0]))


def test_untouched_slots_are_not_stored(tmp_path):
    few = Learner(1 << 20, Settings())
    row = sparse.csr_array(([1.0, -2.0], ([0, 0], [5, 999_999])), shape=(1, 1 << 20))
    few.learn(row, [1])
    save(tmp_path / "few", few)
    assert (tmp_path / "few").stat().st_size < 2000
    assert parts(load(tmp_path / "few").learner) == parts(few)
    many = learned(50, rounds=200)
    save(tmp_path / "many", many)
    with safe_open(tmp_path / "many", framework="numpy") as f:
        assert "slots" not in f.keys()  # noqa: SIM118
    assert parts(load(tmp_path / "many").learner) == parts(many)


MEASURE = """
import resource, sys
from forel.training.model import load
load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = load(sys.argv[2]).learner
assert model.features == 1 << 28
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_loading_uses_no_memory_for_untouched_slots(tmp_path):
    save(tmp_path / "small", learned())
    lanes = (huge := Learner(1 << 28, Settings())).state
    lanes.records[2_000_000:2_000_010] = 1.0
    save(tmp_path / "huge", huge)
    command = [sys.executable, "-c", MEASURE, tmp_path / "small", tmp_path / "huge"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 64  # megabytes, of 2048


def test_negative_zero_is_stored(tmp_path):
    model = Learner(1000, Settings())
    model.state.records[17] = -0.0
    assert model.state.nonzero_rows().tolist() == [8]
    save(tmp_path / "m", model)
    assert parts(load(tmp_path / "m").learner) == parts(model)


@pytest.mark.parametrize("loss", ["huber", Quantile(0.9), Huber(0.25), Logistic()])
def test_losses_are_stored_by_name_and_parameters(loss, tmp_path):
    save(tmp_path / "m", Learner(2, Settings(loss)))
    assert load(tmp_path / "m").learner.settings == Settings(loss)


def test_user_defined_losses_are_never_imported_by_name(tmp_path):
    model = learned(options=Settings(user_loss))
    save(tmp_path / "m", model)
    with pytest.raises(ModelFileError, match=r"a user-defined loss, .*cases\.user_loss; pass this function as loss"):
        load(tmp_path / "m")
    assert parts(load(tmp_path / "m", loss=user_loss).learner) == parts(model)
    save(tmp_path / "n", Learner(2, Settings()))
    with pytest.raises(ModelFileError, match="load it without the argument loss"):
        load(tmp_path / "n", loss=user_loss)


def test_nonfinite_state_does_not_replace_a_file(tmp_path):
    save(tmp_path / "m", Learner(2, Settings()))
    before = (tmp_path / "m").read_bytes()
    for place, value in (("records", np.nan), ("totals", np.inf)):
        model = Learner(2, Settings())
        getattr(model.state, place)[1] = value
        with pytest.raises(ValueError, match="with NaN or infinity, expected finite numbers; nothing was written"):
            save(tmp_path / "m", model)
    assert (tmp_path / "m").read_bytes() == before


@pytest.mark.parametrize("extra", [{"a": (1, 2)}, {1: 2}, {"a": np.int64(1)}, {"a": float("nan")}, [1], {"a": {1, 2}}])
def test_extra_content_that_json_would_change_is_refused(extra, tmp_path):
    with pytest.raises(ValueError, match=r"extra: got .* expected a dict of JSON content"):
        save(tmp_path / "m", Learner(2, Settings()), extra=extra)
    assert not list(tmp_path.iterdir())


def test_the_order_of_extra_content_does_not_change_the_file(tmp_path):
    for name, extra in (("a", {"x": 1, "y": {"p": 1, "q": 2}}), ("b", {"y": {"q": 2, "p": 1}, "x": 1})):
        save(tmp_path / name, Learner(2, Settings()), extra)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_objects_other_than_models_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"model: got .* expected a learner, a fitted estimator"):
        save(tmp_path / "m", 3)


def test_names_survive_independently_of_block_size(tmp_path):
    model, names = Learner(1 << 12, Settings()), reader_of(1 << 20)
    save(tmp_path / "a", model, names=names)
    save(tmp_path / "b", model, names=reader_of(100))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = load(tmp_path / "a").names
    assert [(k, again[k]) for k in again] == [(k, names[k]) for k in names]
    assert (len(again), again.collisions, again.bits) == (len(names), names.collisions, 12)
    assert np.array_equal(again.fingerprints, names.fingerprints)
    assert again[slot("x3", "a", bits=12)] == "a^x3"


def test_empty_and_missing_names_survive(tmp_path):
    save(tmp_path / "m", Learner(2, Settings()), names=Names(3))
    assert len(load(tmp_path / "m").names) == 0
    save(tmp_path / "m", Learner(2, Settings()))
    assert load(tmp_path / "m").names is None


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("logistic", 3), ("softmax", 3), ("squared", None)])
def test_mixtures_survive_and_continue(loss, classes, tmp_path):
    rows, y = stream(24, classes=classes or 2)
    never = Learner(rows.shape[1], Settings(loss, alpha=(0.1, 0.5, 1.0)), classes, certified=True)
    never.learn(rows[:12], y[:12])
    save(tmp_path / "m", never)
    again = load(tmp_path / "m").learner
    assert isinstance(again, Learner)
    for model in (never, again):
        model.learn(rows[12:], y[12:])
    assert np.array_equal(again.mixture.ledger.array, never.mixture.ledger.array)
    assert again.state.numbers.tobytes() == never.state.numbers.tobytes()
    save(tmp_path / "never", never)
    save(tmp_path / "again", again)
    assert (tmp_path / "never").read_bytes() == (tmp_path / "again").read_bytes()
    # What serves is the best setting alone, whose predictions are clipped to the labels 0 and 1 as those of a mixture.
    best = never.select_setting().margins(rows)
    expected = np.clip(best, 0, 1) if loss == "squared" else best
    assert np.allclose(serving_model(never).margins(rows), expected, atol=1e-5)
    save(tmp_path / "e", never)
    estimator = estimator_of(load(tmp_path / "e"))
    assert np.array_equal(estimator._model.margins(rows), never.margins(rows))

"""Model files: whole or refused, the same bits after as before, and never anything that runs."""

import errno
import itertools
import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse

import forel
from forel.data import Names, read, slot
from forel.doors.sklearn import FTRLClassifier, FTRLRegressor, estimator_of
from forel.learner.gradients import GradientLearner
from forel.learner.linear import Linear, Settings
from forel.learner.mixture import Mixture
from forel.losses import Huber, Logistic, Quantile
from forel.store import ModelFileError, ServingModel, Stored, files, learners, load, save, serving_model


@pytest.fixture(autouse=True)
def _uncompiled(interpreted):
    """What a file holds does not depend on how the state was computed."""


N = 6


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Do not wait for the disk a thousand times; that it is waited for has a test of its own."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def stream(rounds=8, features=N, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rounds, features)) * (rng.random((rounds, features)) < 0.4)
    dense[:, -1] = 0.0  # a feature that is never seen
    return dense, rng.integers(classes, size=rounds)


def parts(model):
    lanes = model._lanes
    arrays = (lanes.flat, lanes.reach, lanes.last, lanes.mark, lanes.totals)
    return [a.tobytes() for a in arrays] + [lanes.rounds, model.settings, model.classes, model.certified, model.dtype]


def learned(features=N, options=Settings(), classes=None, rounds=8, **keywords):  # noqa: B008
    model = Linear(features, options, classes, **keywords)
    dense, labels = stream(rounds, features, classes or 2)
    model.learn(dense, 2 * labels - 1 if classes is None and options.signed else labels)
    return model


def rewritten(path, change, arrays=None):
    """Write a file once more with another header, whose own check is right again."""
    with safe_open(path, framework="numpy") as f:
        header = json.loads(f.metadata()["forel"])
        held = {name: f.get_tensor(name) for name in f.keys()}  # noqa: SIM118
    held.update(arrays or {})
    header["checks"] = {name: zlib.crc32(a.tobytes()) for name, a in held.items()}
    change(header)
    header.pop("check", None)
    header["check"] = zlib.crc32(files.canonical_json(header).encode())
    save_file(held, path, {"forel": files.canonical_json(header)})


EVERY = list(
    itertools.product(
        ("proximal", "centered", "mirror", "implicit"),
        ("adagrad", "scale_free", "constant", "root"),
        ("once", "every"),
        (False, True),
        ("float32", "float64"),
        ("one", "lanes", "classes"),
    )
)


@pytest.mark.parametrize(("algorithm", "rate", "weight"), sorted({e[:3] for e in EVERY}), ids=str)
def test_going_on_from_a_file_gives_the_same_bits_as_never_having_stopped(
    algorithm, rate, weight, interpreted, tmp_path
):
    for certified, dtype, several in itertools.product((False, True), ("float32", "float64"), ("one", "lanes")):
        alpha = (0.2, 0.7) if several == "lanes" else 0.4
        options = Settings("logistic", algorithm, rate, alpha, l1=0.01, l2=0.02, penalty_weight=weight)
        dense, labels = stream(8)
        never = Linear(N, options, dtype=dtype, certified=certified)
        never.learn(dense, labels)
        first = Linear(N, options, dtype=dtype, certified=certified)
        first.learn(dense[:4], labels[:4])
        save(tmp_path / "half", first)
        second = load(tmp_path / "half").model
        assert parts(second) == parts(first)
        second.learn(dense[4:], labels[4:])
        assert parts(second) == parts(never)
        save(tmp_path / "never", never)
        save(tmp_path / "resumed", second)
        assert (tmp_path / "never").read_bytes() == (tmp_path / "resumed").read_bytes()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
@pytest.mark.parametrize("certified", [False, True])
def test_classes_survive_a_file(loss, certified, interpreted, tmp_path):
    model = learned(options=Settings(loss), classes=3, certified=certified)
    save(tmp_path / "m", model)
    again = load(tmp_path / "m").model
    assert parts(again) == parts(model)
    assert np.array_equal(again.margins(stream()[0]), model.margins(stream()[0]))


def test_many_untouched_slots_are_neither_stored_nor_read_back_into_memory(interpreted, tmp_path):
    few = Linear(1 << 20, Settings())
    row = sparse.csr_array(([1.0, -2.0], ([0, 0], [5, 999_999])), shape=(1, 1 << 20))
    few.learn(row, [1])
    save(tmp_path / "few", few)
    assert (tmp_path / "few").stat().st_size < 2000
    assert parts(load(tmp_path / "few").model) == parts(few)
    many = learned(50, rounds=200)
    save(tmp_path / "many", many)
    with safe_open(tmp_path / "many", framework="numpy") as f:
        assert "slots" not in f.keys()  # noqa: SIM118
    assert parts(load(tmp_path / "many").model) == parts(many)


MEASURE = """
import resource, sys
from forel.store import load
load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = load(sys.argv[2]).model
assert model.features == 1 << 28
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_loading_uses_no_memory_for_slots_that_were_never_seen(interpreted, tmp_path):
    save(tmp_path / "small", learned())
    lanes = (huge := Linear(1 << 28, Settings()))._lanes
    lanes.flat[2_000_000:2_000_010] = 1.0
    save(tmp_path / "huge", huge)
    command = [sys.executable, "-c", MEASURE, tmp_path / "small", tmp_path / "huge"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 64  # megabytes, of 2048


def test_every_bit_counts_also_that_of_a_negative_zero(tmp_path):
    model = Linear(1000, Settings())
    model._lanes.flat[17] = -0.0
    assert learners.touched_slots(model._lanes).tolist() == [8]
    save(tmp_path / "m", model)
    assert parts(load(tmp_path / "m").model) == parts(model)


def own(margin, label):
    return 0.5 * (margin - label) ** 2, margin - label


@pytest.mark.parametrize("loss", ["huber", Quantile(0.9), Huber(0.25), Logistic()])
def test_losses_are_stored_by_name_and_parameter(loss, tmp_path):
    save(tmp_path / "m", Linear(2, Settings(loss)))
    assert load(tmp_path / "m").model.settings == Settings(loss)


def test_a_loss_of_ones_own_is_never_looked_up_by_a_file(interpreted, tmp_path):
    model = learned(options=Settings(own))
    save(tmp_path / "m", model)
    with pytest.raises(ModelFileError, match=r"a loss of your own, .*test_store\.own; load it with loss="):
        load(tmp_path / "m")
    assert parts(load(tmp_path / "m", loss=own).model) == parts(model)
    save(tmp_path / "n", Linear(2, Settings()))
    with pytest.raises(ModelFileError, match="load it without loss"):
        load(tmp_path / "n", loss=own)


def test_a_state_that_is_not_finite_does_not_replace_a_good_file(tmp_path):
    save(tmp_path / "m", Linear(2, Settings()))
    before = (tmp_path / "m").read_bytes()
    for place, value in (("flat", np.nan), ("totals", np.inf)):
        model = Linear(2, Settings())
        getattr(model._lanes, place)[1] = value
        with pytest.raises(ValueError, match="not finite, expected numbers; nothing was written"):
            save(tmp_path / "m", model)
    assert (tmp_path / "m").read_bytes() == before


@pytest.mark.parametrize("extra", [{"a": (1, 2)}, {1: 2}, {"a": np.int64(1)}, {"a": float("nan")}, [1], {"a": {1, 2}}])
def test_extra_that_would_come_back_as_something_else_is_refused(extra, tmp_path):
    with pytest.raises(ValueError, match=r"extra: got .* expected a dict of names to what JSON holds"):
        save(tmp_path / "m", Linear(2, Settings()), extra=extra)
    assert not list(tmp_path.iterdir())


def test_the_order_of_what_is_kept_does_not_matter(tmp_path):
    for name, extra in (("a", {"x": 1, "y": {"p": 1, "q": 2}}), ("b", {"y": {"q": 2, "p": 1}, "x": 1})):
        save(tmp_path / name, Linear(2, Settings()), extra)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_is_no_model_is_refused(tmp_path):
    for thing in (3, GradientLearner(3, Settings())):
        with pytest.raises(ValueError, match=r"model: got .* expected a forel\.learner\.linear\.Linear"):
            save(tmp_path / "m", thing)


# Names


def reader_of(block_bytes):
    lines = b"".join(b"1 |a x%d y\xff%d\n" % (k % 40, k) for k in range(100))
    import io

    reader = read(io.BytesIO(lines), bits=12, names=True, block_bytes=block_bytes)
    list(reader)
    return reader.names


def test_names_survive_in_whatever_blocks_they_were_read(tmp_path):
    model, names = Linear(1 << 12, Settings()), reader_of(1 << 20)
    save(tmp_path / "a", model, names=names)
    save(tmp_path / "b", model, names=reader_of(100))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = load(tmp_path / "a").names
    assert [(k, again[k]) for k in again] == [(k, names[k]) for k in names]
    assert (len(again), again.collisions, again.bits) == (len(names), names.collisions, 12)
    assert np.array_equal(again.fingerprints, names.fingerprints)
    assert again[slot("x3", "a", bits=12)] == "a^x3"


def test_no_names_at_all_survive(tmp_path):
    save(tmp_path / "m", Linear(2, Settings()), names=Names(3))
    assert len(load(tmp_path / "m").names) == 0
    save(tmp_path / "m", Linear(2, Settings()))
    assert load(tmp_path / "m").names is None


# Serving


@pytest.mark.parametrize("dense", [0, 1 << 24])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("classes", [None, 3])
def test_serving_predicts_as_the_learner_does(classes, dtype, dense, interpreted, tmp_path, monkeypatch):
    monkeypatch.setattr("forel.store.serving.DENSE", dense)
    model = learned(40, Settings(alpha=0.5, l1=0.05), classes, rounds=30)
    save(tmp_path / "s", serving_model(model, dtype=dtype))
    small, rows = load(tmp_path / "s").model, stream(20, 40, seed=1)[0]
    tolerance = 1e-6 if dtype == "float32" else 3e-3
    assert np.allclose(small.margins(rows), model.margins(rows), rtol=tolerance, atol=tolerance)
    kept = np.flatnonzero(model.weights.any(axis=1))
    assert 0 < kept.size < 40
    assert small.slots.tolist() == kept.tolist()
    assert np.array_equal(small.margins(sparse.csr_array(rows)), small.margins(rows))


def test_serving_without_weights_predicts_from_the_bias(monkeypatch, tmp_path):
    for dense in (0, 1 << 24):
        monkeypatch.setattr("forel.store.serving.DENSE", dense)
        save(
            tmp_path / "s",
            ServingModel(4, np.empty(0, np.uint32), np.empty((0, 1), np.float32), np.ones(1, "f4"), "sign"),
        )
        assert load(tmp_path / "s").model.predict(np.ones((2, 4))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("loss", "classes", "link"),
    [
        ("logistic", None, "probability"),
        ("logistic", 3, "rest"),
        ("softmax", 3, "softmax"),
        ("hinge", None, "sign"),
        ("squared_hinge", 3, "largest"),
        ("poisson", None, "exponential"),
        (Quantile(0.9), None, "identity"),
        (own, None, "identity"),
    ],
)
def test_a_link_says_what_margins_stand_for(loss, classes, link, interpreted):
    model, rows = learned(options=Settings(loss), classes=classes), stream()[0]
    small = serving_model(model)
    assert small.link == link
    margins, found = model.margins(rows), small.predict(rows)
    if link in ("rest", "softmax"):
        assert np.allclose(found.sum(axis=1), 1)
        assert np.array_equal(found.argmax(axis=1), margins.argmax(axis=1))
    elif classes is None and not callable(loss):
        assert np.allclose(found, forel.losses.by_name(loss).link(margins), rtol=1e-5)


def test_one_lane_of_several_is_that_lane(interpreted, tmp_path):
    model, rows = learned(options=Settings(alpha=(0.1, 0.9))), stream()[0]
    save(tmp_path / "s", serving_model(model, lane=1))
    small = load(tmp_path / "s").model
    assert np.allclose(small.margins(rows), model.margins(rows)[:, 1:], atol=1e-6)
    for lane in (2, -1):
        with pytest.raises(ValueError, match="lane: got"):
            serving_model(model, lane=lane)
    with pytest.raises(ValueError, match="its classes are one model"):
        serving_model(learned(options=Settings("softmax"), classes=3), lane=1)


def test_what_half_precision_costs_is_measured_and_kept(interpreted, tmp_path):
    for options, classes in (
        (Settings(), None),
        (Settings("hinge"), 3),
        (Settings("softmax"), 3),
        (Settings(own), None),
    ):
        model, (rows, labels) = learned(options=options, classes=classes), stream(classes=classes or 2)
        save(tmp_path / "s", serving_model(model, dtype="float16", X=rows, y=labels))
        measured = load(tmp_path / "s").model.measured
        assert measured["learner"] != measured["serving"] == pytest.approx(measured["learner"], abs=1e-3)
        if classes is None and options.loss == "logistic":
            margins = model.margins(rows)[:, 0].astype(float)
            assert measured["learner"] == pytest.approx(np.mean(np.logaddexp(0, margins) - labels * margins), rel=1e-12)


def test_weights_that_half_precision_cannot_hold_are_refused(interpreted):
    model = Linear(1, Settings("squared", "mirror", "constant", alpha=1.0, bias=False))
    model.learn([[1.0]], [1e5])
    with pytest.raises(ValueError, match="dtype: got 'float16', expected a type with room for the weight 100000"):
        serving_model(model, dtype="float16")
    assert serving_model(model).weights.tolist() == [[1e5]]


def test_serving_files_have_the_names_of_their_weights_only(interpreted, tmp_path):
    names = reader_of(1 << 20)
    model = Linear(1 << 12, Settings())
    at = slot("x3", "a", bits=12)
    model.learn(sparse.csr_array(([1.0], ([0], [at])), shape=(1, 1 << 12)), [1])
    save(tmp_path / "s", serving_model(model), names=names)
    stored = load(tmp_path / "s")
    assert {k: stored.names[k] for k in stored.names} == {at: "a^x3"}


# Whole or refused


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "m"
    model = Linear(3, Settings("squared", "mirror", "root", penalty_weight="every"), dtype="float64")
    model._lanes.flat[:4] = [1.0, 2.0, 3.0, 4.0]
    names = Names(2)
    names.add(np.array([1, 2]), np.array([1 << 40, 2 << 40], np.uint64), lambda k: b"ab"[: k + 1])
    save(path, model, {"bits": 2}, names)
    return path


def test_every_truncation_is_refused(small, tmp_path):
    data = small.read_bytes()
    assert load(small).model.features == 3
    for cut in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises(ModelFileError, match="cut: "):
            load(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(data + b"\0")
    with pytest.raises(ModelFileError, match="cut: not a whole model file"):
        load(tmp_path / "cut")


def test_every_changed_byte_is_noticed(small, tmp_path):
    data = small.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        (tmp_path / "changed").write_bytes(changed)
        try:
            found = load(tmp_path / "changed")
        except ModelFileError:
            continue
        # Blanks of JSON, and which of two arrays of the same numbers is which, may change and nothing else with it.
        save(tmp_path / "again", found.model, found.extra, found.names)
        assert (tmp_path / "again").read_bytes() == data, place


FIELDS = [
    *(("features", v) for v in (0, -1, 2**80, "3", None, True, 1.5, [3])),
    *(("dtype", v) for v in ("float16", "object", 3, None, "float32")),
    *(("rounds", v) for v in (-1, 1.5, "a", None, 2**70)),
    *(("classes", v) for v in (0, 1, 2, 10**12, "a", True)),
    *(("certified", v) for v in (1, None, "yes", True)),
    *(("kind", v) for v in ("serving", "other", None, [])),
    *(("settings", v) for v in (None, [], "x")),
    *(("extra", v) for v in (None, [], 3)),
    *(("estimator", v) for v in ([], 3)),
    *(("bits", v) for v in (0, 1, 32, 10**9, "a", True)),
    *(("checks", v) for v in ({}, None, [])),
    *(("version", v) for v in (0, "1", None, 1.0, True)),
    *(("format", v) for v in ("other", None)),
]


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=str)
def test_a_header_that_says_what_no_header_says_is_refused(small, tmp_path, name, value):
    path = tmp_path / "m"
    path.write_bytes(small.read_bytes())
    rewritten(path, lambda header: header.update({name: value}))
    with pytest.raises((ModelFileError, MemoryError), match="m: "):
        load(path)


SETTINGS = [
    *(("loss", v) for v in ("os.system", {"name": "os"}, {"name": "quantile", "parameters": {"z": 1}}, {}, 3, None)),
    *(("alpha", v) for v in (0, -1, "1", True, [], [1.0, 2.0], None, {}, [[1.0]], 1e-320)),
    *(("radius", v) for v in (0, "a", [True], False)),
    *(("rate", v) for v in ("adagrad", "other", None, [])),
    *(("algorithm", v) for v in ("other", 3)),
    *(("penalty_weight", v) for v in ("once", 3)),
    *(("bias", v) for v in (1, "yes", None)),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=str)
def test_settings_that_no_learner_has_are_refused(small, tmp_path, name, value):
    path = tmp_path / "m"
    path.write_bytes(small.read_bytes())
    rewritten(path, lambda header: header["settings"].update({name: value}))
    with pytest.raises(ModelFileError, match="m: "):
        load(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(data=st.data())
def test_no_header_crashes_the_loader(small, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(small.read_bytes())

    def change(header):
        inside = data.draw(st.sampled_from([header, header["settings"]]))
        key = data.draw(st.sampled_from(sorted(inside)) | st.text(max_size=4))
        if data.draw(st.booleans()):
            inside.pop(key, None)
        else:
            inside[key] = data.draw(JSON)

    rewritten(path, change)
    try:
        model = load(path).model
    except (ModelFileError, MemoryError) as error:
        assert "mutated: " in str(error)  # noqa: PT017
    else:
        assert model.features == 3


ARRAYS = [
    ("state", np.full((2, 2, 1), np.nan)),
    ("state", np.zeros((2, 2, 1), np.float32)),
    ("state", np.zeros((2, 3, 1))),
    ("state", np.zeros((3, 2, 1))),
    ("state", np.zeros(8)),
    ("state", np.zeros(())),
    ("other", np.zeros(2)),
    ("totals", np.full(6, np.inf)),
    ("totals", np.zeros(4)),
    ("mark", np.full((2, 1), np.inf)),
    ("slots", np.array([0, 9], np.uint32)),
    ("slots", np.array([1, 0], np.uint32)),
    ("slots", np.array([1, 1], np.uint32)),
    ("slots", np.array([0, 1], np.int32)),
    ("names.slots", np.array([2, 1], np.uint32)),
    ("names.slots", np.array([1, 4], np.uint32)),
    ("names.lengths", np.array([4, 4], np.uint32)),
]


@pytest.mark.parametrize(("name", "array"), ARRAYS, ids=lambda v: v if isinstance(v, str) else "")
def test_arrays_that_no_learner_has_are_refused(tmp_path, small, name, array):
    path = tmp_path / "m"
    path.write_bytes(small.read_bytes())
    rewritten(path, lambda header: None, {name: array})
    with pytest.raises(ModelFileError, match="m: "):
        load(path)


def test_rounds_that_a_learner_cannot_have_seen_are_refused(interpreted, tmp_path):
    options = Settings("logistic", "mirror", "adagrad", penalty_weight="every")
    save(tmp_path / "m", learned(40, options, rounds=90))
    for bad in (91, -1):
        last = np.zeros((41, 1), np.int64)
        last[3] = bad
        rewritten(tmp_path / "m", lambda header: None, {"last": last})
        with pytest.raises(ModelFileError, match="'last' holds numbers that no learner has"):
            load(tmp_path / "m")


@pytest.mark.parametrize("bias", [True, False])
def test_rounds_that_would_take_too_long_to_replay_are_refused(bias, interpreted, tmp_path):
    options = Settings("logistic", "proximal", "root", l2=0.01, penalty_weight="every", bias=bias)
    model = learned(40, options, rounds=90)
    save(tmp_path / "m", model)
    rewritten(tmp_path / "m", lambda header: header.update(rounds=2**31))
    with pytest.raises(ModelFileError, match=r"2,147,483,648 rounds, but no coordinate was updated after round 90"):
        load(tmp_path / "m")
    # All but one coordinate miss two billion rounds.
    last = model._lanes.last.reshape(-1, 1).copy()
    last[np.argmax(last)] = 2**31
    rewritten(tmp_path / "m", lambda header: None, {"last": last})
    with pytest.raises(ModelFileError, match=r"replaying up to 2,147,483,\d* rounds would take too long"):
        load(tmp_path / "m")
    # A rate with a closed form needs no replay.
    save(tmp_path / "n", learned(40, replace(options, algorithm="mirror", rate="adagrad"), rounds=90))
    rewritten(tmp_path / "n", lambda header: header.update(rounds=2**31))
    assert load(tmp_path / "n").model.rounds == 2**31


def test_empty_rows_after_the_last_update_are_not_refused(interpreted, tmp_path):
    options = Settings("logistic", "proximal", "root", l2=0.01, penalty_weight="every", bias=False)
    model = learned(40, options, rounds=90)
    model.learn(np.zeros((10, 40)), [1] * 10)
    save(tmp_path / "m", model)
    assert parts(load(tmp_path / "m").model) == parts(model)


def test_foreign_newer_and_missing_files_say_what_they_are(small, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: could not be read"):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="could not be read"):
        load(tmp_path)
    for content in (b"", b"hello, this is text", b"\x80\x04\x95pickle", bytes(range(100, 200))):
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(ModelFileError, match="foreign: not a whole model file"):
            load(tmp_path / "foreign")
    for metadata in (None, {"format": "pt"}, {"forel": "[]"}, {"forel": "{}"}):
        save_file({"a": np.zeros(1)}, tmp_path / "foreign", metadata)
        with pytest.raises(ModelFileError, match="not a model of forel"):
            load(tmp_path / "foreign")
    (tmp_path / "newer").write_bytes(small.read_bytes())
    rewritten(tmp_path / "newer", lambda header: header.update(version=99))
    with pytest.raises(ModelFileError, match=r"newer: a model file of version 99, written by forel .*; update forel"):
        load(tmp_path / "newer")


# Atomicity


@pytest.mark.parametrize("where", ["save_file", "os.chmod", "sync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_whatever_fails_the_older_file_stays_and_nothing_is_left_behind(where, number, tmp_path, monkeypatch):
    save(tmp_path / "m", Linear(2, Settings()), {"old": True})
    before = (tmp_path / "m").read_bytes()

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"forel.store.files.{where}", fail)
    with pytest.raises(OSError, match=f"m: could not be written .{os.strerror(number)}.; a file that was there") as e:
        save(tmp_path / "m", Linear(2, Settings()), {"old": False})
    assert e.value.errno == number
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


FULL = """
import resource, signal, sys
import numpy as np
from forel.store import ServingModel, save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
slots, weights = np.arange(10**5, dtype=np.uint32), np.ones((10**5, 1), np.float32)
big = ServingModel(10**6, slots, weights, np.ones(1, "f4"), "identity")
try:
    save(sys.argv[1], big)
except OSError as error:
    print(error)
"""


def test_a_disk_without_room_is_a_sentence_and_the_older_file_stays(tmp_path):
    save(tmp_path / "m", Linear(2, Settings()))
    before = (tmp_path / "m").read_bytes()
    command = [sys.executable, "-c", FULL, tmp_path / "m"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "could not be written (File too large); a file that was there is unchanged; make room" in done.stdout
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_the_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    happened = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: happened.append("sync"))
    monkeypatch.setattr("pathlib.os.replace", lambda a, b: (happened.append("rename"), replace(a, b)))
    save(tmp_path / "m", Linear(2, Settings()))
    assert happened == ["sync", "rename", "sync"]


def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ValueError, match="got a folder or a device, expected the name of a file"):
            save(tmp_path / name, Linear(2, Settings()))
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        save(tmp_path / "no" / "m", Linear(2, Settings()))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_one_may_not_write_to_is_a_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="choose a folder that you may write to"):
        save(tmp_path / "m", Linear(2, Settings()))


def test_links_stay_links_and_permissions_stay(tmp_path):
    save(tmp_path / "m", Linear(2, Settings()))
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "m").stat().st_mode == plain.stat().st_mode
    (tmp_path / "m").chmod(0o640)
    (tmp_path / "link").symlink_to("m")
    save(tmp_path / "link", Linear(3, Settings()))
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "m").model.features == 3
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640


# Estimators


@pytest.mark.parametrize("labels", [["ham", "spam"], [3, 7], [1.0, 2.0], [False, True], ["a", "b", "c"], [4, 5, 6]])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
def test_classifiers_survive_and_go_on(labels, loss, interpreted, tmp_path):
    rows, codes = stream(24, classes=len(labels))
    y = np.array(labels)[codes]
    never = FTRLClassifier(alpha=0.5, loss=loss, certified=True).partial_fit(rows[:12], y[:12], classes=labels)
    save(tmp_path / "m", never)
    again = estimator_of(load(tmp_path / "m"))
    assert again.get_params() == never.get_params()
    assert again.classes_.dtype == never.classes_.dtype
    assert np.array_equal(again.predict(rows), never.predict(rows))
    assert again.progressive_loss_ == never.progressive_loss_
    for model in (never, again):
        model.partial_fit(rows[12:], y[12:])
    assert parts(again._model) == parts(never._model)
    assert np.array_equal(again.coef_, never.coef_)
    assert again.progressive_loss_ == never.progressive_loss_
    save(tmp_path / "never", never)
    save(tmp_path / "again", again)
    assert (tmp_path / "never").read_bytes() == (tmp_path / "again").read_bytes()


def test_regressors_survive_with_feature_names_and_parameters(interpreted, tmp_path):
    import pandas as pd

    rows, codes = stream(12)
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    options = {"loss": Quantile(0.9), "passes": 2, "shuffle": True, "random_state": 3, "dtype": "float64"}
    model = FTRLRegressor(**options, fit_intercept=False, warm_start=True).fit(frame, codes).sparsify()
    save(tmp_path / "m", model, extra={"note": "x"})
    stored = forel.load(tmp_path / "m")
    again = estimator_of(stored)
    assert stored.extra == {"note": "x"}
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == list("abcdef")
    assert (again.n_iter_, again.t_) == (2, 24)
    assert again.progressive_loss_ == model.progressive_loss_
    assert sparse.issparse(again.coef_)
    assert np.array_equal(again.fit(frame, codes).predict(frame), model.fit(frame, codes).predict(frame))


def test_a_learner_by_itself_becomes_an_estimator(interpreted):
    rows = stream()[0]
    for loss, kind, classes in (("logistic", FTRLClassifier, [0, 1]), ("hinge", FTRLClassifier, [-1, 1])):
        made = estimator_of(Stored(learned(options=Settings(loss))))
        assert isinstance(made, kind)
        assert made.classes_.tolist() == classes
        made.partial_fit(rows, np.array(classes * 4))
        assert made.t_ == 16
    made = estimator_of(Stored(learned(classes=3)))
    assert made.predict(rows).max() <= 2
    made = estimator_of(Stored(learned(options=Settings("squared"))))
    assert np.array_equal(made.predict(rows), learned(options=Settings("squared")).margins(rows)[:, 0])
    with pytest.raises(ValueError, match="one model, or a forel"):
        estimator_of(Stored(learned(options=Settings(alpha=(0.1, 0.2)))))
    with pytest.raises(ValueError, match="only predicts"):
        estimator_of(Stored(serving_model(learned())))


def test_what_a_file_cannot_hold_of_an_estimator_is_refused(interpreted, tmp_path):
    rows, codes = stream()
    model = FTRLRegressor(shuffle=True, random_state=np.random.RandomState(0)).fit(rows, codes)
    with pytest.raises(ValueError, match=r"random_state: got .* expected a whole number or None"):
        save(tmp_path / "m", model)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(tmp_path / "m", FTRLRegressor())


def test_serving_takes_an_estimator(interpreted):
    rows, codes = stream()
    model = FTRLClassifier(alpha=0.1).fit(rows, codes)
    assert np.allclose(serving_model(model).predict(rows)[:, 0], model.predict_proba(rows)[:, 1], atol=1e-6)


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("logistic", 3), ("softmax", 3), ("squared", None)])
def test_mixtures_survive_and_go_on(loss, classes, interpreted, tmp_path):
    rows, y = stream(24, classes=classes or 2)
    never = Mixture(rows.shape[1], Settings(loss, alpha=(0.1, 0.5, 1.0)), classes, certified=True)
    never.learn(rows[:12], y[:12])
    save(tmp_path / "m", never)
    again = load(tmp_path / "m").model
    assert isinstance(again, Mixture)
    for model in (never, again):
        model.learn(rows[12:], y[12:])
    assert np.array_equal(again.ledger.array, never.ledger.array)
    assert again.linear.state.tobytes() == never.linear.state.tobytes()
    save(tmp_path / "never", never)
    save(tmp_path / "again", again)
    assert (tmp_path / "never").read_bytes() == (tmp_path / "again").read_bytes()
    # What serves is the best setting alone.
    small = serving_model(never)
    assert np.allclose(small.margins(rows), never.only().margins(rows), atol=1e-5)
    save(tmp_path / "e", never)
    estimator = estimator_of(load(tmp_path / "e"))
    assert np.array_equal(estimator._model.margins(rows), never.margins(rows))


def test_an_estimator_that_mixes_survives_and_goes_on(interpreted, tmp_path):
    rows, codes = stream(24)
    never = FTRLClassifier(lanes=4, l1=0.5).partial_fit(rows[:12], codes[:12], classes=[0, 1])
    save(tmp_path / "m", never)
    again = estimator_of(load(tmp_path / "m"))
    assert again.get_params() == never.get_params()
    for model in (never, again):
        model.partial_fit(rows[12:], codes[12:])
    assert np.array_equal(again.predict_proba(rows), never.predict_proba(rows))
    assert str(again.guarantee_) == str(never.guarantee_)


def test_importing_forel_and_serving_a_model_loads_no_compiler(tmp_path):
    save(
        tmp_path / "s",
        ServingModel(4, np.empty(0, np.uint32), np.empty((0, 1), np.float32), np.ones(1, "f4"), "identity"),
    )
    code = "import sys, forel; print('safetensors' in sys.modules or 'numpy' in sys.modules);"
    code += (
        "forel.load(sys.argv[1]).model.predict([[1.0] * 4]); print('numba' in sys.modules, 'sklearn' in sys.modules)"
    )
    command = [sys.executable, "-c", code, tmp_path / "s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False"] * 3

"""Incomplete, damaged, forged and foreign files are refused with a sentence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from forel.data import Names
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import ModelFileError
from forel.training.model import load, save
from tests.store.cases import learned, rewritten

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")  # the content of a file does not depend on compiling


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "m"
    model = Learner(3, Settings("squared", "mirror", penalty_weight="every"), dtype="float64")
    model.state.records[:4] = [1.0, 2.0, 3.0, 4.0]
    names = Names(2)
    names.add(np.array([1, 2]), np.array([1 << 40, 2 << 40], np.uint64), lambda k: b"ab"[: k + 1])
    save(path, model, {"bits": 2}, names)
    return path


def test_every_truncation_is_refused(small, tmp_path):
    data = small.read_bytes()
    assert load(small).learner.features == 3
    for cut in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises(ModelFileError, match="cut: not a complete model file"):
            load(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(data + b"\0")
    with pytest.raises(ModelFileError, match="cut: not a complete model file"):
        load(tmp_path / "cut")


def test_every_changed_byte_is_detected(small, tmp_path):
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
        save(tmp_path / "again", found.learner, found.extra, found.names)
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
    *(("version", v) for v in (0, "1", None, 1.0, True)),
    *(("format", v) for v in ("other", None)),
]


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=str)
def test_invalid_header_fields_are_refused(small, tmp_path, name, value):
    path = tmp_path / "m"
    path.write_bytes(small.read_bytes())
    rewritten(path, lambda header: header.update({name: value}))
    with pytest.raises((ModelFileError, MemoryError), match="m: "):
        load(path)


SETTINGS = [
    *(("loss", v) for v in ("os.system", {"name": "os"}, {"name": "quantile", "parameters": {"z": 1}}, {}, 3, None)),
    *(("alpha", v) for v in (0, -1, "1", True, [], [1.0, 2.0], None, {}, [[1.0]], 1e-320)),
    *(("radius", v) for v in (0, "a", [True], False)),
    *(("rate", v) for v in ("scale_free", "other", None, [])),
    *(("algorithm", v) for v in ("other", 3)),
    *(("penalty_weight", v) for v in ("once", 3)),
    *(("bias", v) for v in (1, "yes", None)),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=str)
def test_invalid_settings_are_refused(small, tmp_path, name, value):
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
def test_random_headers_do_not_crash_the_loader(small, tmp_path_factory, data):
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
        model = load(path).learner
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
    ("slots", np.array([0, 9], np.uint32)),
    ("slots", np.array([1, 0], np.uint32)),
    ("slots", np.array([1, 1], np.uint32)),
    ("slots", np.array([0, 1], np.int32)),
    ("names.slots", np.array([2, 1], np.uint32)),
    ("names.slots", np.array([1, 4], np.uint32)),
    ("names.lengths", np.array([4, 4], np.uint32)),
]


@pytest.mark.parametrize(("name", "array"), ARRAYS, ids=lambda v: v if isinstance(v, str) else "")
def test_invalid_arrays_are_refused(tmp_path, small, name, array):
    path = tmp_path / "m"
    path.write_bytes(small.read_bytes())
    rewritten(path, lambda header: None, {name: array})
    with pytest.raises(ModelFileError, match="m: "):
        load(path)


def test_update_rounds_out_of_range_are_refused(tmp_path):
    options = Settings("logistic", "mirror", "adagrad", penalty_weight="every")
    save(tmp_path / "m", learned(40, options, rounds=90))
    for bad in (91, -1):
        last = np.zeros((41, 1), np.int64)
        last[3] = bad
        rewritten(tmp_path / "m", lambda header: None, {"last": last})
        with pytest.raises(ModelFileError, match="'last' holds invalid values"):
            load(tmp_path / "m")


def test_foreign_newer_and_missing_files_have_their_own_errors(small, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: could not be read"):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="could not be read"):
        load(tmp_path)
    for content in (b"a,b\n1,2\n", b"hello, this is text", b'{"y": 1}{"y": 0}', b"\x80\x04\x95pickle", bytes(100)):
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(ModelFileError, match="foreign: not a model of forel; pass a file that forel train --model"):
            load(tmp_path / "foreign")
    (tmp_path / "foreign").write_bytes(b"")
    with pytest.raises(ModelFileError, match="foreign: not a complete model file"):
        load(tmp_path / "foreign")
    for metadata in (None, {"format": "pt"}, {"forel": "[]"}, {"forel": "{}"}):
        save_file({"a": np.zeros(1)}, tmp_path / "foreign", metadata)
        with pytest.raises(ModelFileError, match="not a model of forel"):
            load(tmp_path / "foreign")
    (tmp_path / "newer").write_bytes(small.read_bytes())
    rewritten(tmp_path / "newer", lambda header: header.update(version=99))
    with pytest.raises(ModelFileError, match=r"newer: a model file of version 99, written by forel .*; update forel"):
        load(tmp_path / "newer")

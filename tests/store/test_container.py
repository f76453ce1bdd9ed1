"""Model files are written in chunks, and are files of safetensors."""

import json
import zlib

import numpy as np
import pytest
from safetensors.numpy import load as parse

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import files
from forel.store.files import Rows, write_file
from forel.store.learners import pack_learner
from forel.training.model import save
from tests.store.cases import N, header_and_arrays, learned

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")

TYPES = ("float64", "int64", "float32", "uint32", "int32", "float16", "uint8")


def test_safetensors_reads_every_type_and_shape(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WRITTEN_BYTES", 8)
    arrays = {f"{name} é": np.arange(6).astype(name).reshape(-1, 2, 1) for name in TYPES}
    arrays |= {"a": np.zeros((0, 3)), "b": np.ones((5, 1), np.float32), "none": np.zeros(0, np.uint8)}
    arrays |= {"turned": np.arange(6.0).reshape(2, 3).T}
    header = {"text": ' "\\\n\t\x01 é'}
    write_file(tmp_path / "whole", header, arrays)
    write_file(tmp_path / "chosen", header, {name: Rows(one, np.arange(len(one))) for name, one in arrays.items()})
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "chosen").read_bytes()
    found, held = header_and_arrays(tmp_path / "whole")
    assert found["text"] == header["text"]
    assert held.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (held[name].dtype, held[name].shape, held[name].tolist()) == (array.dtype, array.shape, array.tolist())
    checks = parse((tmp_path / "whole").read_bytes())["checks"]
    assert checks.tolist() == [zlib.crc32(arrays[name].tobytes()) for name in sorted(arrays)]


def test_arrays_are_aligned(tmp_path):
    write_file(tmp_path / "m", {}, {"a": np.zeros(3, np.uint8), "b": np.zeros(5), "c": np.zeros(1, np.float16)})
    data = (tmp_path / "m").read_bytes()
    size = int.from_bytes(data[:8], "little")
    places = {name: one["data_offsets"][0] for name, one in json.loads(data[8 : 8 + size]).items() if "dtype" in one}
    assert size % 8 == 0
    assert sorted(places, key=places.get) == ["b", "c", "a", "checks"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (Settings(), {}),
        (Settings(rate="scale_free"), {"certified": True}),
        (Settings(rate="scale_free", alpha=(0.1, 1.0)), {"dtype": np.float64}),
        (Settings(algorithm="mirror", penalty_weight="every", l1=0.01), {"certified": True}),
    ],
)
def test_models_in_chunks_have_the_bytes_of_whole_arrays(options, keywords, sparse, tmp_path, monkeypatch):
    """The reference packs whole tables, and safetensors reads them."""
    model = learned(*(40 * N, options, None, 1) if sparse else (N, options), **keywords)
    lanes, slots = model.state, model.features + 1
    if not sparse:
        lanes.numbers[-2] = 1  # the feature that the rows do not have
    touched = lanes.nonzero_rows()
    monkeypatch.setattr(files, "WRITTEN_BYTES", 64)
    save(tmp_path / "m", model)
    stored = (tmp_path / "m").read_bytes()
    arrays = parse(stored)
    assert ("slots" in arrays) == sparse
    for name, table in lanes.tables.items():
        whole = table[touched] if sparse else table
        assert arrays[name].dtype == table.dtype
        assert arrays[name].tobytes() == whole.tobytes()
    if sparse:
        assert arrays["slots"].tolist() == touched.tolist()
        assert touched.size < slots


def test_a_mixture_in_chunks_has_the_bytes_of_whole_arrays(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    model = Learner(50, Settings(alpha=(0.1, 1.0), rate="scale_free"))
    model.learn(np.where(rng.random((20, 50)) < 0.1, 1.0, 0.0), rng.integers(2, size=20))
    save(tmp_path / "whole", model)
    monkeypatch.setattr(files, "WRITTEN_BYTES", 8)
    save(tmp_path / "chunks", model)
    assert (tmp_path / "chunks").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("table", ["state", "reach"])
def test_numbers_that_are_not_finite_are_found_in_any_chunk(table, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WRITTEN_BYTES", 64)
    model = learned(40 * N, Settings(rate="scale_free"), rounds=1)
    seen = model.state.nonzero_rows()
    model.state.tables[table][seen[-1]] = np.nan
    with pytest.raises(ValueError, match=f"model: got {table} with NaN or infinity, expected finite numbers; nothing"):
        save(tmp_path / "m", model)
    assert not list(tmp_path.iterdir())


def test_no_chunk_is_larger_than_the_limit(monkeypatch):
    monkeypatch.setattr(files, "WRITTEN_BYTES", 100)
    model = learned(40 * N, rounds=1)
    _, arrays = pack_learner(model)
    sizes = [chunk.nbytes for chunk in arrays["state"].chunks()]
    assert len(sizes) > 1
    assert max(sizes) <= 100

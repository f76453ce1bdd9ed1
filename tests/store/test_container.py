"""The container of model files: the bytes of safetensors, written in chunks."""

import io
import json
import zlib

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialize

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import container, files, learners
from forel.store.container import ChunkedArray, write_container
from forel.store.learners import pack_learner
from forel.training.model import save
from tests.store.cases import N, learned

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")


def chunked(array, rows=2):
    return ChunkedArray(
        array.dtype, array.shape, lambda: (array[a : a + rows].copy() for a in range(0, len(array), rows))
    )


def text_of(checks):
    return {"forel": json.dumps(dict(checks), sort_keys=True) + ' "\\\n\t\x01 é'}


def written(arrays, metadata=text_of):
    file = io.BytesIO()
    write_container(file, arrays, metadata)
    return file.getvalue()


def expected(arrays, metadata=text_of):
    return serialize(arrays, metadata({name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}))


def test_bytes_are_those_of_safetensors_for_every_type_and_shape():
    arrays = {
        f"{name} é": np.arange(6 if name != "bool" else 2).astype(name).reshape(-1, 2, 1) for name in container.TYPES
    }
    arrays |= {"a": np.zeros((0, 3)), "b": np.ones((5, 1), np.float32), "none": np.zeros(0, np.uint8)}
    assert written(arrays) == expected(arrays)
    assert written({name: chunked(array) for name, array in arrays.items()}) == expected(arrays)


def test_arrays_are_written_again_where_checksums_are_shorter_than_assumed():
    """Over many arrays, headers of all lengths modulo 8 occur, and checksums of fewer than ten digits."""
    written_twice = 0
    for k in range(200):
        array, count = np.arange(k, k + 5), [0]

        def chunks(array=array, count=count):
            count[0] += 1
            yield array[:3]
            yield array[3:]

        def metadata(checks, k=k):
            return {"forel": json.dumps(dict(checks), sort_keys=True) + "x" * (k % 8)}

        whole = {"a": array, "z": np.ones(2)}
        parts = {**whole, "a": ChunkedArray(array.dtype, array.shape, chunks)}
        assert written(parts, metadata) == expected(whole, metadata)
        assert count[0] <= 2
        written_twice += count[0] == 2
    assert 0 < written_twice < 50


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
    """The reference packs whole tables, and safetensors writes them."""
    model = learned(*(40 * N, options, None, 1) if sparse else (N, options), **keywords)
    lanes, slots = model.state, model.features + 1
    if not sparse:
        lanes.numbers[-2] = 1  # the feature that the rows do not have
    touched = lanes.nonzero_rows()
    monkeypatch.setattr(learners, "CHUNK_BYTES", 64)
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
    header = json.loads(stored[8 : 8 + int.from_bytes(stored[:8], "little")])
    assert stored == serialize(arrays, header["__metadata__"])


def test_a_mixture_in_chunks_has_the_bytes_of_whole_arrays(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    model = Learner(50, Settings(alpha=(0.1, 1.0), rate="scale_free"))
    model.learn(np.where(rng.random((20, 50)) < 0.1, 1.0, 0.0), rng.integers(2, size=20))
    save(tmp_path / "whole", model)
    monkeypatch.setattr(learners, "CHUNK_BYTES", 8)
    save(tmp_path / "chunks", model)
    assert (tmp_path / "chunks").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("table", ["state", "reach"])
def test_numbers_that_are_not_finite_are_found_in_any_chunk(table, tmp_path, monkeypatch):
    monkeypatch.setattr(learners, "CHUNK_BYTES", 64)
    model = learned(40 * N, Settings(rate="scale_free"), rounds=1)
    seen = model.state.nonzero_rows()
    model.state.tables[table][seen[-1]] = np.nan
    with pytest.raises(ValueError, match=f"model: got {table} with NaN or infinity, expected finite numbers; nothing"):
        save(tmp_path / "m", model)
    assert not list(tmp_path.iterdir())


def test_no_chunk_is_larger_than_the_limit(monkeypatch):
    monkeypatch.setattr(learners, "CHUNK_BYTES", 100)
    model = learned(40 * N, rounds=1)
    _, arrays = pack_learner(model)
    sizes = [chunk.nbytes for chunk in arrays["state"].chunks()]
    assert len(sizes) > 1
    assert max(sizes) <= 100


def test_a_failed_write_of_a_chunk_is_raised(tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "open", lambda *_: pytest.fail("not used"), raising=False)
    with pytest.raises(OSError, match="No space left"):
        write_container(Full(), {"a": chunked(np.arange(5))}, text_of)

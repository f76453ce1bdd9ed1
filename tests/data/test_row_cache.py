"""A cache of parsed rows that is damaged in any way is a sentence: never a crash, never numbers no source gives."""

import os
import re

import numpy as np
import pytest

from forel.data import Block, Malformed, Problems, concatenate, read
from forel.data.sources.row_cache import CacheWriter, open_cache
from forel.learner.settings import Settings
from forel.training.row_cache import write_cache
from forel.training.train import train

BITS = 6
PARTS = ("indptr", "indices", "values", "labels", "importance")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    (folder / "a.vw").write_text("".join(f"{k % 2} {1 + k % 3} |a x{k % 5} y:{k}.5\n" for k in range(30)))
    write_cache(folder / "a.vw", folder / "c", bits=BITS, block_bytes=100)
    return (folder / "c").read_bytes()


def whole_block(path):
    return concatenate(read(path, bits=BITS))


def test_every_flipped_byte_is_a_sentence(whole, tmp_path):
    path = tmp_path / "c.cache"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"c\.cache"):
            whole_block(path)


def test_a_file_cut_or_extended_anywhere_is_a_sentence(whole, tmp_path):
    path = tmp_path / "c.cache"
    others = [whole[:size] for size in range(len(whole))] + [whole + b"\0", whole + whole, b"\0" + whole, whole[8:]]
    for other in others:
        path.write_bytes(other)
        with pytest.raises(ValueError, match=r"c\.cache"):
            whole_block(path)


def test_a_file_cut_while_it_is_read_is_a_sentence(whole, tmp_path):
    path = tmp_path / "c.cache"
    for size in (0, 20, 200):
        path.write_bytes(whole)
        blocks = iter(read(path, bits=BITS))
        next(blocks)
        os.truncate(path, size)
        with pytest.raises(Malformed, match=r"c\.cache, line 1: got .* expected a whole cache; make it again"):
            list(blocks)


def test_a_file_replaced_while_it_is_read_is_read_to_its_end(whole, tmp_path):
    path = tmp_path / "c.cache"
    path.write_bytes(whole)
    expected = whole_block(path)
    blocks = iter(read(path, bits=BITS))
    first = next(blocks)
    (tmp_path / "other").write_bytes(b"something else")
    os.replace(tmp_path / "other", path)
    found = concatenate([first, *blocks])
    assert all(getattr(found, part).tobytes() == getattr(expected, part).tobytes() for part in PARTS)


def written(path, key=None, **parts):
    """Write a cache of one block with valid checksums and any content."""
    arrays = {
        "indptr": np.array([0, 2, 3]), "indices": np.int32([1, 4, 0]), "values": np.float32([1, 2, 3]),
        "labels": np.float32([0, 1]), "importance": np.float32([1, 2]), **parts,
    }  # fmt: skip
    with path.open("wb") as file:
        writer = CacheWriter(file, {"options": {"bits": BITS}, "sources": None} if key is None else key)
        writer.add(Block(**arrays))
        writer.close(Problems())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"values": np.float32([1, np.nan, 3])}, "a value of nan"),
        ({"values": np.float32([1, 2, -np.inf])}, "a value of -inf"),
        ({"labels": np.float32([np.inf, 1])}, "a label of inf"),
        ({"importance": np.float32([1, -1])}, "an importance of -1"),
        ({"importance": np.float32([1, np.nan])}, "an importance of nan"),
        ({"indices": np.int32([1, -1, 0])}, "a slot of -1"),
        ({"indices": np.int32([1, 1 << BITS, 0])}, "a slot of 64"),
        ({"indptr": np.array([0, 3, 2])}, "rows that do not follow one another"),
        ({"indptr": np.array([1, 2, 3])}, "rows that do not follow one another"),
        ({"indptr": np.array([0, 2, 9])}, "rows that do not follow one another"),
        ({"indptr": np.array([0, -1, 3])}, "rows that do not follow one another"),
    ],
)
def test_numbers_that_no_source_gives_never_reach_a_model(tmp_path, parts, message):
    path = tmp_path / "c.cache"
    written(path)
    assert train(path, Settings(alpha=1.0)).training.rows == 2
    written(path, **parts)
    for way in (lambda: whole_block(path), lambda: train(path, Settings(alpha=1.0))):
        with pytest.raises(Malformed, match=rf"c\.cache, line 1: got {re.escape(message)}.*, expected a whole cache"):
            way()


@pytest.mark.parametrize("key", [{}, {"options": 3}, {"options": {}}, {"options": {"bits": "6"}}, {"options": None}])
def test_a_cache_without_the_description_of_its_source_raises(tmp_path, key):
    path = tmp_path / "c.cache"
    written(path, key)
    for way in (lambda: whole_block(path), lambda: train(path, Settings(alpha=1.0))):
        with pytest.raises(ValueError, match=r"c\.cache"):
            way()


def test_a_label_may_be_missing(tmp_path):
    written(tmp_path / "c", labels=np.float32([np.nan, 1]))
    assert np.isnan(whole_block(tmp_path / "c").labels).tolist() == [True, False]


def test_a_cache_of_another_version_or_in_a_stream_raises(whole, tmp_path):
    import gzip
    import io

    path = tmp_path / "c.cache"
    other = whole.replace(b"cache 6", b"cache 9", 1)
    assert other != whole
    path.write_bytes(other)
    with pytest.raises(
        Malformed, match="got a cache of another version, expected one that this version of forel wrote"
    ):
        whole_block(path)
    path.write_bytes(gzip.compress(whole))
    for source in (path, io.BytesIO(whole)):
        with pytest.raises(Malformed, match="got a cache in a stream or compressed, expected it as a file"):
            whole_block(source)


def test_a_cache_closes_its_file(whole, tmp_path):
    path = tmp_path / "c"
    path.write_bytes(whole)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    if before is None:
        pytest.skip("this system does not list open files")
    for _ in range(5):
        with path.open("rb") as file:
            assert open_cache(file, "c").totals["rows"] == 30
        whole_block(path)
    assert len(os.listdir("/proc/self/fd")) == before

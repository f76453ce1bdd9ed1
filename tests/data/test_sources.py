"""Sources of line formats: blocks of any size, compression, files and standard input, names, and real data."""

import gzip
import io
import os
import pathlib
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_parsers
from forel.data import Malformed, concatenate, read
from forel.data.sources.streams import count
from reference_parsers import PARSERS, VALID, examples, same
from tests.data.test_lines import BITS, check

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"


# Long lines, blocks, sources.


@pytest.mark.parametrize("form", ["vw", "svmlight"])
def test_a_line_of_many_features(form):
    line = b"1 |a " if form == "vw" else b"1 "
    line += b" ".join(b"%s%d:%d" % (b"f" if form == "vw" else b"", k, k % 7) for k in range(70_000))  # over 2¹⁶
    text = b"\n".join([VALID[form].splitlines()[0], line, line])
    check(form, text, bits=18)
    whole, small = (concatenate(read(io.BytesIO(text), form, block_bytes=n)) for n in (1 << 20, 1000))
    assert all(np.array_equal(a, b) for a, b in zip(whole.rows, small.rows, strict=True))


@pytest.mark.parametrize("form", PARSERS)
def test_blocks_of_any_size_give_the_same_examples(form):
    text = (VALID[form] + b"\n") * 20
    whole = examples(read(io.BytesIO(text), form, tags=True))
    for size in (1, 2, 3, 10, 64, 65, 1000):
        same(examples(read(io.BytesIO(text), form, tags=True, block_bytes=size)), whole)


def test_blocks_have_file_and_line_of_their_first_row():
    text = b"1 | a\n" * 10
    blocks = list(read(io.BytesIO(text), "vw", block_bytes=13))
    assert [b.line for b in blocks] == np.cumsum([1] + [len(b) for b in blocks])[:-1].tolist()


def compressed(text, how):
    if how == "gzip":
        return gzip.compress(text[:50]) + gzip.compress(text[50:])
    if how == "zstd":
        import pyarrow as pa

        return b"".join(pa.Codec("zstd").compress(part).to_pybytes() for part in (text[:50], text[50:]))
    return text


@pytest.fixture(params=["plain", "gzip", "gzip by zlib", "zstd"])
def how(request, monkeypatch):
    """Kinds of compression; gzip is read by ISA-L and by zlib."""
    if request.param == "gzip by zlib":
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    elif request.param == "gzip":
        pytest.importorskip("isal")
    return request.param.split()[0]


def test_compression_is_detected_from_the_bytes(how, tmp_path):
    text = VALID["vw"] * 30
    path = tmp_path / "data"
    path.write_bytes(compressed(text, how))
    same(examples(read(path)), examples(read(io.BytesIO(text))))


def test_a_compressed_file_cut_anywhere_or_with_a_wrong_checksum_is_an_error_and_never_less_data(how, tmp_path):
    if how == "plain":
        return
    lines = np.random.default_rng(0).integers(0, 1 << 40, 400)
    text = b"".join(b"1 |a f%d\n" % k for k in lines)
    raw = gzip.compress(text) if how == "gzip" else compressed(text, "zstd")
    path = tmp_path / "data.vw"
    whole = examples(read(io.BytesIO(text)))
    wrong_sum = [raw[:-8] + bytes([raw[-8] ^ 255]) + raw[-7:]] if how == "gzip" else []
    for damaged in (*(raw[:end] for end in range(5, len(raw), 97)), *wrong_sum):
        path.write_bytes(damaged)
        reader = read(path, "vw", on_error="skip", block_bytes=500)
        found = examples(reader)
        assert reader.problems.count == 1
        assert "expected a whole file" in reader.problems.messages[0]
        same(found, whole[: len(found)])
        with pytest.raises(Malformed, match="expected a whole file"):
            list(read(path, "vw"))


def test_files_globs_lists_and_objects(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.vw").write_bytes(b"%d |a b" % k)
    everything = [0.0, 1.0, 2.0]
    for source in (f"{tmp_path}/*.vw", [tmp_path / "0.vw", f"{tmp_path}/[12].vw"]):
        blocks = list(read(source))
        assert concatenate(blocks).labels.tolist() == everything
        assert [pathlib.Path(b.file).name for b in blocks] == ["0.vw", "1.vw", "2.vw"]
        assert [b.line for b in blocks] == [1, 1, 1]
    with (tmp_path / "1.vw").open("rb") as file:
        assert concatenate(read(file)).labels.tolist() == [1.0]
    with pytest.raises(FileNotFoundError, match=r"expected a file that is there"):
        list(read(f"{tmp_path}/*.svm"))
    with pytest.raises(ValueError, match="for all files of a folder"):
        list(read(tmp_path))


def test_the_callers_file_stays_open(how, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(compressed(VALID["vw"] * 3, how))
    with path.open("rb") as buffered, path.open("rb", buffering=0) as raw, io.BytesIO(path.read_bytes()) as memory:
        for file in (buffered, raw, memory):
            assert len(concatenate(read(file, "vw"))) == 10
            assert not file.closed
    with path.open("r", encoding="latin-1") as text:
        assert len(concatenate(read(text, "vw"))) == 10
    with pytest.raises(ValueError, match="expected a file object opened for reading bytes"):
        list(read(io.StringIO("1 | a"), "vw"))


class Endless(io.RawIOBase):
    """A binary file of equal lines that is not held in memory."""

    def __init__(self, line, lines):
        self.line, self.left = line, lines

    def readable(self):
        return True

    def readinto(self, view):
        n = min(len(view) // len(self.line), self.left) * len(self.line)
        view[:n] = self.line * (n // len(self.line))
        self.left -= n // len(self.line)
        return n


def test_memory_does_not_grow_with_the_file():
    peaks = []
    for lines in (200_000, 1_000_000):  # more than the few blocks whose memory is used in turns
        tracemalloc.start()
        source = Endless(b"1 |a f12345 f777:1.5\n", lines)
        assert sum(len(block) for block in read(source, "vw", names=True, bits=10)) == lines
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_block_is_what_the_learner_learns_from():
    from forel.learner.learner import Learner
    from forel.learner.rows import Rows
    from forel.learner.settings import Settings

    text = b"1 |a x:2 y\n-1 2 |a y z:0.5 y\n" * 30
    one, two = (Learner(1 << BITS, Settings("squared", alpha=0.1)) for _ in range(2))
    for block in read(io.BytesIO(text), bits=BITS, block_bytes=100):
        one.learn(Rows(*block.rows), block.labels, block.importance)
        two.learn(block.matrix(1 << BITS), block.labels, block.importance)
    assert np.array_equal(one.weights, two.weights)
    assert one.loss == two.loss


def test_parsers_run_without_the_interpreters_lock():
    from forel.data.compiled import svmlight, vw

    assert vw.parse.targetoptions["nogil"]
    assert svmlight.parse.targetoptions["nogil"]


def test_columns_are_refused_where_there_are_none():
    with pytest.raises(ValueError, match="label: got 'y', expected none for vw, which has no columns"):
        list(read(io.BytesIO(b"1 | a"), label="y"))


def test_standard_input():
    code = "from forel.data import *; b = concatenate(read('-')); print(b.labels.tolist(), b.file)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=gzip.compress(b"1 |a b\n-1 |a c"), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "[1.0, -1.0] standard input"


def test_formats_are_recognized_from_their_first_bytes():
    for text, labels in ((b"1 |a b", [1.0]), (b"-1 3:1 4:1e5 # x|y", [-1.0]), (b"# c\n2 qid:1 1:2\n", [2.0])):
        assert concatenate(read(io.BytesIO(text))).labels.tolist() == labels
    with pytest.raises(ValueError, match=r"format: got .*, expected one of vw, svmlight"):
        list(read(io.BytesIO(b"hello")))
    assert list(read(io.BytesIO(b""), "vw")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "xml"},
        {"bits": 0},
        {"bits": 41},
        {"on_error": "ignore"},
        {"block_bytes": 0},
        {"block_bytes": 1 << 31},
    ],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: got"):
        read("-", **wrong)


# Names.


def test_names_are_the_first_of_their_slots_and_collisions_are_counted():
    lines = [b"1 |a f%d |b:2 g%d:3 | h%d %s\n" % (k, k % 5, k, b"long" * 9) for k in range(60)]
    for bits, size in ((5, 100), (5, 1 << 20), (20, 333)):
        reader = read(io.BytesIO(b"".join([*lines, b"1 |bad x:\n"])), "vw", bits=bits, names=True,
                             block_bytes=size, on_error="skip")  # fmt: skip
        blocks = concatenate(reader)
        first, met = {}, set()
        for k in range(60):
            for namespace, name in (("a", f"f{k}"), ("b", f"g{k % 5}"), ("", f"h{k}"), ("", "long" * 9)):
                from forel.data import slot

                place, full = slot(name, namespace, bits), f"{namespace}^{name}" if namespace else name
                if first.setdefault(place, full) != full:
                    met.add(place)
        assert {k: reader.names[k] for k in reader.names} == first
        assert reader.names.collisions == len(met)
        assert len(reader.names) == len(first)
        assert set(np.unique(blocks.indices).tolist()) == set(first)
        assert all(k in reader.names for k in first)


def test_names_survive_numbers_that_are_read_twice():
    reader = read(io.BytesIO(b"1 |a b:1e-40 c\n1 |a d\n"), "vw", names=True)
    list(reader)
    assert sorted(reader.names[k] for k in reader.names) == ["a^b", "a^c", "a^d"]
    assert reader.names.collisions == 0


def test_ids_are_names_too():
    reader = read(io.BytesIO(b"1 3:1 7:1\n1 3:1 1000:1\n"), "svmlight", bits=4, names=True)
    list(reader)
    assert reader.names[3] == "3"
    assert reader.names[7] == "7"
    assert len(reader.names) + reader.names.collisions == 3
    with pytest.raises(KeyError):
        reader.names[15 if reference_parsers.mixed(1000) % 16 != 15 else 14]


# Promises of the package.


def test_importing_formats_imports_neither_numba_nor_pyarrow():
    code = "import sys, forel, forel.data; print(sorted({'numba', 'pyarrow', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Real data.


def shared(name):
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"needs {name}, in shared/data next to the checkout")
    return path


def test_ids_of_real_data_are_those_scikit_learn_reads():
    from sklearn.datasets import load_svmlight_file

    path = shared("a9a.svm.gz")
    X, y = load_svmlight_file(str(path), zero_based=True, n_features=124)
    mine = concatenate(read(path))
    assert np.array_equal(mine.labels, y)
    assert (mine.matrix(124) != X).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rcv1_small", "spambase", "amazon_kitchen"])
def test_real_lines_equal_the_reference(name):
    text = gzip.decompress(shared(f"{name}.vw.gz").read_bytes())
    check("vw", b"\n".join(text.split(b"\n")[:300]), bits=22)
    assert len(concatenate(read(shared(f"{name}.vw.gz")))) == text.count(b"\n")
    assert os.path.basename(next(iter(read(shared(f"{name}.vw.gz")))).file) == f"{name}.vw.gz"


@given(st.binary(max_size=100), st.integers(0, 255), st.integers(0, 900))
def test_bytes_are_counted_as_python_counts_them(text, wanted, times):
    held = np.frombuffer(text + bytes([wanted]) * 8 * times + text, np.uint8)
    assert count(held, held.size, wanted) == held.tobytes().count(wanted)
    assert count(held, held.size // 2, wanted) == held[: held.size // 2].tobytes().count(wanted)

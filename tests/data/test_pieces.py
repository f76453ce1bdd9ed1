"""Pieces of files: read elsewhere and put in order, they give what reading in one place gives."""

import gzip
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest

from forel.data import concatenate, read
from forel.data.pieces import ordered_pieces, pieces_of, read_piece

VW = [f"{1 if k % 3 else -1} |a x{k % 7}:{k % 5} y{k % 11} |b z{k}" for k in range(400)]
CSV = [f"{k % 2},{k % 13},{'red' if k % 3 else 'blue'},{k if k > 60 else ''}" for k in range(120)]
JSON = [f'{{"y": {k % 2}, "age": {k % 9}, "city": "c{k % 4}", "odd": {k if k < 50 else chr(34) + "w" + chr(34)}}}'
        for k in range(100)]  # fmt: skip


@dataclass
class Eager:
    """Workers that read a whole piece as soon as it is sent, with the kinds known at that time."""

    number: int
    done: bool = True
    sent: list = field(default_factory=list)
    closed: list = field(default_factory=list)

    def read(self, piece):
        self.sent.append(piece)
        return _Results(self, deque(read_piece(piece)), self.done)


@dataclass
class _Results:
    owner: Eager
    held: deque
    done: bool

    def __iter__(self):
        while self.held:
            yield self.held.popleft()

    def close(self):
        self.owner.closed.append(self)


@pytest.fixture
def files(tmp_path):
    """Two files in each format."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    half = len(VW) // 2
    found = {}
    for name, suffix, lines, head in (
        ("vw", "vw", VW, ""), ("svmlight", "svm", [f"{k % 2} {k % 9}:1.5 {k}:2" for k in range(10, 300)], ""),
        ("csv", "csv", CSV, "y,age,color,late\n"), ("jsonl", "jsonl", JSON, ""),
    ):  # fmt: skip
        half = len(lines) // 2
        for k, part in enumerate((lines[:half], lines[half:])):
            (tmp_path / f"{k}.{suffix}").write_text(head + "\n".join(part) + ("\n" if k else ""))
        found[name] = [str(tmp_path / f"{k}.{suffix}") for k in range(2)]
    found["gzip"] = [f"{path}.gz" for path in found["vw"]]
    for path in found["vw"]:
        with open(path, "rb") as source, gzip.open(f"{path}.gz", "wb") as target:
            target.write(source.read())
    table = pa.table(
        {"y": [k % 2 for k in range(90)], "age": list(range(90)), "city": [f"c{k % 5}" for k in range(90)]}
    )
    found["parquet"] = [str(tmp_path / f"{k}.parquet") for k in range(2)]
    for k, path in enumerate(found["parquet"]):
        pq.write_table(table.slice(45 * k, 45), path)
    return found


def options_of(name):
    return {"block_bytes": 300, "bits": 12, **({} if name in ("vw", "svmlight", "gzip") else {"label": "y"})}


def rows(blocks):
    """Return all rows with their lines, and the position after the last."""
    found = list(blocks)
    whole = concatenate(found)
    files = [block.file for block in found for _ in range(len(block))]
    after = {block.file: block.after for block in found}
    return [
        *(a.tolist() for a in (*whole.rows, whole.labels, whole.importance)),
        whole.size,
        files,
        after,
        _lines(found),
    ]


def _lines(blocks):
    return None if blocks[0].lines is None else np.concatenate([block.lines for block in blocks]).tolist()


def outcome(reader, blocks):
    """Return everything that reading has found, or the sentence of its error."""
    try:
        found = rows(blocks)
    except ValueError as error:
        return str(error), type(error)
    names = None if reader.names is None else [part.tolist() for part in reader.names.pack()]
    return found, reader.problems.count, reader.problems.messages, names, reader.kinds.known


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("name", ["vw", "svmlight", "gzip", "csv", "jsonl", "parquet"])
def test_pieces_in_order_are_what_one_reader_reads(files, name, number, names):
    if names and name == "svmlight":
        pytest.skip("ids have no names")
    options = {**options_of(name), "names": names}
    alone, together = (read(files[name], **options) for _ in range(2))
    workers = Eager(number)
    expected, found = outcome(alone, alone), outcome(together, ordered_pieces(together, workers))
    assert found == expected
    assert len(expected[0][3]) > 50
    assert len(workers.sent) == 2


@pytest.mark.parametrize(("done", "sent"), [(False, 2), (True, 4)])
def test_workers_that_have_read_their_pieces_get_others_while_results_wait(files, done, sent):
    workers = Eager(2, done)
    blocks = ordered_pieces(read(3 * files["vw"], **options_of("vw")), workers)
    next(blocks)
    assert len(workers.sent) == 1  # the kinds of columns in its first block are not recorded yet
    next(blocks)
    assert len(workers.sent) == sent


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("place", [5, 150, 390])
def test_problems_have_the_lines_of_the_whole_file(files, place, on_error):
    lines = [*VW]
    lines[place] = "1 |a x:oops"
    half = len(VW) // 2
    for path, part in zip(files["vw"], (lines[:half], lines[half:]), strict=True):
        with open(path, "w") as file:
            file.write("\n".join(part))
    options = {**options_of("vw"), "on_error": on_error}
    alone, together = (read(files["vw"], **options) for _ in range(2))
    workers = Eager(3)
    expected, found = outcome(alone, alone), outcome(together, ordered_pieces(together, workers))
    assert found == expected
    if on_error == "raise":
        assert f"line {place % half + 1}, column 8: got 'oops', expected a number" in expected[0]
        assert workers.closed  # nothing is left running


def test_kinds_that_an_earlier_file_decides_late_send_a_piece_again(files):
    # The column "late" has its first value in the second half of the first file, and only words in the second file.
    first, second = files["csv"]
    with open(first, "a") as file:
        file.write("\n" + "\n".join(f"1,2,red,{k}" for k in range(100)))
    with open(second, "w") as file:
        file.write("y,age,color,late\n1,2,red,word\n")
    alone, together = (read([first, second], **options_of("csv")) for _ in range(2))
    workers = Eager(2)
    expected, found = outcome(alone, alone), outcome(together, ordered_pieces(together, workers))
    assert found == expected
    assert "got 'word', expected a number" in expected[0]
    assert [piece.start.file for piece in workers.sent] == [0, 1, 1]


@pytest.mark.parametrize("name", ["vw", "gzip", "csv", "jsonl", "parquet"])
def test_reading_continues_after_any_block(files, name):
    blocks = list(read(files[name], **options_of(name)))
    for k in range(1, len(blocks), 3):
        reader = read(files[name], **options_of(name))
        kinds = read(files[name], **options_of(name))
        for block in kinds:  # a run that was interrupted knows the kinds so far
            if block.after == blocks[k - 1].after:
                break
        reader = type(reader)(
            reader.source, reader.options, reader.problems, None, blocks[k - 1].after, kinds.kinds.copied()
        )
        rest = list(ordered_pieces(reader, Eager(2)))
        for part in ("labels", "values", "indices"):
            expected = np.concatenate([getattr(block, part) for block in blocks[k:]])
            assert np.array_equal(np.concatenate([getattr(block, part) for block in rest]), expected)
        assert rest[0].line == blocks[k].line
        assert rest[-1].after == blocks[-1].after


def test_an_empty_file_and_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("")
    assert list(ordered_pieces(read(str(path)), Eager(2))) == []
    reader = read([str(path), str(path)])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(ordered_pieces(reader, Eager(2)))


@pytest.mark.parametrize("source", [["-"], [{"x": 1.0}]])
def test_streams_and_rows_in_memory_are_refused(source):
    with pytest.raises(ValueError, match=r"source: got .* expected files, which workers of a cluster can open"):
        list(pieces_of(read(source)))

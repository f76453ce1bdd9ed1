"""Sequences of features of VW text, against a plain computation, and in the slots of text columns."""

import io
from itertools import combinations

import numpy as np
import pytest

from forel.data import ReadOptions, read, slot
from forel.data.features import sequences
from forel.learner.settings import Settings
from forel.store import Stored, serving_model
from forel.training.train import train

BITS = 16


def expected(line, ngram, skips):
    """The sum of values of each slot of a line."""
    found = {}
    for part in line.decode().split("|")[1:]:
        namespace, *features = part.split() if part[:1] not in (" ", "") else ("", *part.split())
        words = [feature.partition(":")[0] for feature in features]
        for word, feature in zip(words, features, strict=True):
            key = slot(word, namespace, BITS)
            found[key] = found.get(key, 0.0) + float(feature.partition(":")[2] or 1)
        for size in range(2, ngram + 1):
            for first in range(len(words)):
                for rest in combinations(range(1, size + skips), size - 1):
                    if first + rest[-1] < len(words):
                        key = slot(" ".join(words[first + k] for k in (0, *rest)), namespace, BITS)
                        found[key] = found.get(key, 0.0) + 1
    return found


def rows_of(reader):
    for block in reader:
        for first, last in zip(block.indptr[:-1], block.indptr[1:], strict=True):
            yield dict(zip(block.indices[first:last].tolist(), block.values[first:last].tolist(), strict=True))


@pytest.mark.parametrize(("ngram", "skips"), [(2, 0), (3, 1), (4, 2)])
@pytest.mark.parametrize("size", [40, 1 << 16])
def test_sequences_are_those_of_a_plain_loop(ngram, skips, size):
    rng = np.random.default_rng(ngram)
    lines = []
    for k in range(30):
        spaces = ("text", "a_long_namespace", "n", "")
        parts = [
            f"|{spaces[s]} "
            + " ".join(f"w{rng.zipf(1.5) % 40}" + (":2" if rng.random() < 0.2 else "") for _ in range(c))
            for s, c in enumerate(rng.integers(0, 7, 4))
        ]
        lines.append(f"{k % 2} {' '.join(parts)}".encode())
    source = io.BytesIO(b"\n".join(lines))
    found = list(rows_of(read(source, "vw", bits=BITS, ngram=ngram, skips=skips, block_bytes=size)))
    assert found == [expected(line, ngram, skips) for line in lines]


def test_slots_and_names_are_those_of_text_columns():
    text = read(io.BytesIO(b"1 |message free entry now\n"), "vw", bits=BITS, ngram=2, skips=1, names=True)
    column = read(
        io.BytesIO(b"message,y\nfree entry now,1\n"), "csv", label="y", text=["message"], bits=BITS, ngram=2, skips=1,
        names=True,
    )  # fmt: skip
    ((one,), (other,)) = list(rows_of(text)), list(rows_of(column))
    assert one == other
    assert (
        {text.names[k] for k in one} == {column.names[k] for k in other} >= {"message^free entry", "message^free now"}
    )


def test_rows_that_cannot_be_are_left_out(monkeypatch):
    monkeypatch.setattr(sequences, "MOST", 8)
    text = b"1 |a b c\nbad\n1 |a b:3e38 b:3e38\n1 |a b c d e f\n0 |a b\n"
    reader = read(io.BytesIO(text), "vw", bits=BITS, ngram=2, on_error="skip")
    assert [block.labels.tolist() for block in reader] == [[1.0, 0.0]]
    lines = [message.partition(":")[0] for message in reader.problems.messages]
    assert [line.rpartition("line ")[2].split(",")[0] for line in lines] == ["2", "3", "4"]


@pytest.mark.usefixtures("interpreted")
def test_models_keep_the_option():
    lines = io.BytesIO(b"1 |t not good\n0 |t good\n1 |t not bad\n0 |t bad not\n" * 10)
    trained = train(lines, Settings(alpha=1.0), format="vw", bits=BITS, ngram=2, slices=["t"])
    stored = Stored(serving_model(trained.model), trained.extra)
    assert stored.read_options.ngram == 2
    p = stored.predict_many(io.BytesIO(b"|t bad not\n|t not bad\n"))
    assert p[0] < 0.5 < p[1]
    with pytest.raises(ValueError, match="ngram: got 2, expected 1 without text"):
        stored.predict_one({"t": "bad"})
    assert [one.value for one in trained.slices[0].slices] == ["not", "good", "bad"]


@pytest.mark.parametrize("source", [[{"a": "b"}], io.BytesIO(b"a,b\n1,2\n"), io.BytesIO(b'{"a": "b"}\n')])
def test_sequences_of_columns_need_their_names(source):
    with pytest.raises(ValueError, match=r"ngram: got 2, expected 1 without text \(--text\), which names columns"):
        list(read(source, ngram=2))


def test_sequences_are_not_crossed():
    with pytest.raises(ValueError, match=r"interactions: got .*, expected none with ngram"):
        ReadOptions(ngram=2, interactions=["ab"])
    with pytest.raises(ValueError, match="none for svmlight"):
        list(read(io.BytesIO(b"1 2:3\n"), "svmlight", ngram=2))

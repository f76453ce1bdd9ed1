"""Click logs in VW text: the scanner of the usual form and the general one, which continues, give the same rows."""

import io

import numpy as np
import pytest

from forel.data import read
from forel.data.parsers import lines

# Lines of other forms, some of them wrong.
OTHERS = [
    b"1 2 |a x |b y", b"1 'tag|a x", b"1|a x", b"|a x", b"", b"1 |a x:2 |b y", b"1 |a x y |b z", b"1 | x", b"1 |a x ",
    b"1.23456789012 |a x", b"+1 |a x", b"1e3 |a x", b"nan |a x", b"one |a x", b"1 |a  x", b"1 |a x\t|b y", b"1 |a x |b",
    b"1", b"1 |a:2 x", b"- |a x", b"1 ||a x", b"1 |a x |a x |c z\r",
]  # fmt: skip


def click(rng):
    count = rng.integers(1, 80)
    spaces = [
        b"|%s %s" % (rng.bytes(9).hex()[: rng.integers(1, 12)].encode(), b"%d" % rng.integers(9)) for _ in range(count)
    ]
    label = [b"1", b"-1", b"0", b"-0.5", b"12.25", b"0.1"][rng.integers(6)]
    return label + b" " * rng.integers(1, 3) + b" ".join(spaces)


def blocks(text, **options):
    """Everything that a reader returns of a text, as bytes, and the messages about wrong lines."""
    reader = read(io.BytesIO(text), "vw", bits=12, on_error="skip", **options)
    found = [((b.indptr, b.indices, b.values, b.labels, b.importance, b.lines), b.tags) for b in reader]
    return (
        [([each.tobytes() for each in arrays], tags) for arrays, tags in found],
        reader.problems.count,
        reader.problems.messages,
    )


@pytest.fixture
def used(monkeypatch):
    """The names of the scanners that were called."""
    names, scanner = [], lines.scanner

    def recorded(module, name):
        function = scanner(module, name)
        return lambda *given: (names.append(module), function(*given))[1]

    monkeypatch.setattr(lines, "scanner", recorded)
    return names


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("other", [None, *OTHERS])
def test_lines_of_other_forms_are_left_to_the_general_scanner(other, tags, monkeypatch, used):
    rng = np.random.default_rng(0)
    for place in (1, 5, 9):
        rows = [click(rng) for _ in range(10)]
        if other is not None:
            rows.insert(place, other)
        text = b"\n".join(rows) + b"\n"
        used.clear()
        plain = blocks(text, tags=tags)
        assert used[0] == "vw_plain"
        assert ("vw" in used) == (other is not None)
        with monkeypatch.context() as patch:
            patch.setattr(lines, "_is_plain", lambda *given: False)
            assert blocks(text, tags=tags) == plain


@pytest.mark.parametrize("text", [b"1 |a x:2 |b y\n1 |a x\n", b"1 2 |a x\n", b"|a x\n", b"1 |a x"])
def test_the_first_line_decides(text, used):
    blocks(text)
    assert used[0] == ("vw_plain" if text == b"1 |a x" else "vw")


@pytest.mark.parametrize("options", [{"names": True}, {"entry_names": True}, {"interactions": ["ab"]}])
def test_names_and_crosses_need_the_general_scanner(options, used):
    blocks(b"1 |a x |b y\n" * 3, **options)
    assert set(used) == {"vw"}

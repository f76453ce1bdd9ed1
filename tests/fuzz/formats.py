"""Mutated text of every format: compiled parsers find the same examples and problems as slow reference parsers.

The comparisons are those of ``tests/data/test_lines.py``, ``test_csv.py`` and ``test_json_lines.py``; JSON lines are
also compared with the dicts that Python's own parser makes of each line.
"""

import importlib
import io
import json
import pathlib
import random
import re
import sys
import time
import zlib
from collections import Counter

import pytest

from forel.data import read
from tests.fuzz.command import command

BITS = 9
NUMBERS = (b"1", b"-1", b"0.5", b"-1e-3", b"1e-40", b"1e39", b"1e400", b"nan", b"inf", b"1_0", b"0.30000000000000004")
TOKENS = {
    "vw": (*NUMBERS, b"|", b"|a", b"|a:2", b" ", b"  ", b"\t", b":", b":1.5", b"'tag", b"eight888", b"x" * 70),
    "svmlight": (*NUMBERS, b" ", b"#", b"qid:3 ", b"7:1", b"5:", b":2", b"200:1e-41", b"99999999999999999:1", b"\n1 "),
    "csv": (*NUMBERS, b",", b",,", b'"', b'""', b'"a,b"', b"\r\n", b"NA", b"true", b"x", b" ", b"Z\xc3\xbcrich"),
    "jsonl": (*NUMBERS, *(bytes([c]) for c in b'{}[]":,'), b"null", b"NaN", b'"\\ud800"', b'"y": 1,', b"1" * 400,
              b"\\u00e9", b"\\\"", b"\\", b"true", b'"in": {"x": "s"}, ', b"-0", b"  ", b"\xc3\xa9"),
}  # fmt: skip
ANYWHERE = (b"\n", b"\r", b"\0", b"\xff")
OBJECTS = b"".join(
    b'{"y": %d, "w": %d.5, "n": -%d.25, "city": "Rome %d", "tags": ["a", "b%d"], "in": {"x": %d, "s": null}}\n'
    % (k % 2, k, k, k % 3, k % 2, k)
    for k in range(5)
)


def comparisons():
    """Return for each format an initial text and a function that compares a text with the reference parser."""
    folder = str(pathlib.Path(__file__).parents[1])
    if folder not in sys.path:
        sys.path.insert(0, folder)
    modules = ("test_lines", "test_csv", "test_json_lines")
    text, separated, objects = (importlib.import_module(f"tests.data.{name}") for name in modules)
    same = importlib.import_module("reference_parsers")

    def rows(form):
        return lambda data, size: separated.check(data, size, form)

    def lines(form):
        return lambda data, size: text.check(form, data, size)

    def json_rows(data, size):
        json_lines(data, size, same)
        options = (*objects.OPTIONS, *objects.ODD_OPTIONS)
        objects.check(data, size, **options[zlib.crc32(data) % len(options)])

    document, header = separated.DOCUMENT, len(separated.HEADER)
    return {
        **{form: (same.VALID[form], 0, lines(form)) for form in same.PARSERS},
        "csv": (document, header, rows("csv")),
        "tsv": (document.replace(b",", b"\t"), header, rows("tsv")),
        "jsonl": (OBJECTS, 0, json_rows),
    }


def json_lines(data, size, same):
    """Compare JSON lines with dicts, line by line."""
    dicts, bad = {}, 0
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                dicts[number] = json.loads(line.decode())
            except (ValueError, RecursionError):
                bad += 1
    if any(isinstance(row, dict) and isinstance(row.get("y"), str) for row in dicts.values()):
        return  # dicts may have labels that are words after numbers, and lines may not
    options = {"bits": BITS, "label": "y", "importance": "w", "on_error": "skip"}
    expected = read(list(dicts.values()), **options)
    found = read(io.BytesIO(data), "jsonl", block_bytes=size, **options)
    try:
        rows = same.examples(expected)
    except ValueError as wrong:
        with pytest.raises(ValueError, match=re.escape(str(wrong))):
            list(found)
        return
    blocks = list(found)
    same.same(same.examples(blocks), rows)
    assert found.problems.count == expected.problems.count + bad
    lines = {line for block in blocks for line in block.lines.tolist()}
    assert lines <= set(dicts)


def mutated(rng, form, text, kept):
    """Return a text with some bytes, words and lines changed; the first ``kept`` bytes stay."""
    data, tokens = bytearray(text[kept:]), (*TOKENS.get("csv" if form == "tsv" else form, NUMBERS), *ANYWHERE)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        k = rng.randrange(len(data) + 1)
        how = rng.randrange(7)
        if how == 0 and data:
            data[k % len(data)] = rng.randrange(256)
        elif how == 1:
            del data[k : k + rng.choice((1, 2, 10, 60))]
        elif how == 2:
            data[k:k] = rng.choice(tokens)
        elif how == 3:
            data[k : k + rng.choice((1, 3))] = rng.choice(tokens)
        elif how == 4:
            j = rng.randrange(len(data) + 1)
            data[k:k] = data[j : j + rng.choice((1, 5, 70, 300))]
        elif how == 5:
            lines = bytes(data).split(b"\n")
            rng.shuffle(lines)
            data[:] = b"\n".join(lines)
        else:
            data[k:] = b"" if rng.random() < 0.3 else data[k:]
    rest = bytes(data[: 1 << 14])
    return text[:kept] + (rest.replace(b",", b"\t") if form == "tsv" else rest)


def run(seconds, seed=0):
    """Compare texts for some seconds, print how many of each format, and return that; a difference is raised."""
    forms, tried = comparisons(), Counter()
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until or number < 2 * len(forms):
        rng = random.Random(f"{seed} {number}")
        form = list(forms)[number % len(forms)]
        text, kept, check = forms[form]
        data, size = mutated(rng, form, text, kept), rng.choice((1, 7, 50, 300, 1 << 20))
        try:
            check(data, size)
        except BaseException as error:
            where = f"seed {seed}, number {number}, {form} in blocks of {size}: {data!r}"
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
        tried[form] += 1
        number += 1
    print(f"formats, seed {seed}: {', '.join(f'{form} {count:,}' for form, count in tried.items())} texts")
    return dict(tried)


def main() -> None:
    command(run, __doc__)


if __name__ == "__main__":
    main()

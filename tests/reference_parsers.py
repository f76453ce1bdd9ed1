"""Slow, obvious parsers of text formats: what the compiled ones must agree with."""

import itertools
import math
import os
import re
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

from forel.data.features.hashing import START, hash_name

NUMBER = re.compile(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
BLANK = re.compile(rb"[\x00-\x09\x0b-\x20]+")
_VW_VALUES = st.sampled_from(["", ":2", ":-0.5", ":3e20", ":1e-30", ":0.1", ":1e-40"])
_VW_FEATURES = st.tuples(st.sampled_from(["x", "y", "z"]), _VW_VALUES).map("".join)
_VW_NAMESPACES = st.sampled_from(["a", "apple", "b", "", "é", "c"])
VW_LINES = st.lists(st.tuples(_VW_NAMESPACES, st.lists(_VW_FEATURES, max_size=4)), max_size=4).map(
    lambda namespaces: "1 " + "".join(f"|{name} {' '.join(words)} " for name, words in namespaces)
)


def command(*arguments, **options):
    """Run the command line in a process."""
    quiet = {**os.environ, "FOREL_QUIET": "1", "COLUMNS": "200"}
    line = [sys.executable, "-m", "forel", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=quiet, **options)


class Wrong(Exception):
    pass


def words(text):
    return [word for word in BLANK.split(text) if word]


def round_to_float32(exact):
    """Round a fraction to the nearest float32, ties to even, from the definition of the format."""
    if exact == 0:
        return 0.0
    size = abs(exact)
    power = math.floor(math.log2(size.numerator) - math.log2(size.denominator))
    power += (size >= Fraction(2) ** (power + 1)) - (size < Fraction(2) ** power)
    unit = Fraction(2) ** max(power - 23, -149)
    steps = round(size / unit)  # Python rounds halves of fractions to even
    result = steps * unit
    if result >= Fraction(2) ** 128:
        raise Wrong("not finite")
    return math.copysign(float(result), exact)


@lru_cache(maxsize=10_000)
def number(word):
    if not NUMBER.fullmatch(word):
        raise Wrong(f"no number: {word}")
    mantissa, _, exponent = word.decode().lower().partition("e")
    if not any(c in "123456789" for c in mantissa):
        return np.float32(0)
    exponent = int(exponent or 0)
    digits = len(mantissa)
    if exponent > 60 + digits:
        raise Wrong("not finite")
    if exponent < -60 - digits:
        return np.float32(0)
    return np.float32(round_to_float32(Fraction(Decimal(mantissa)) * Fraction(10) ** exponent))


def label_of(word):
    """The nearest double, within the range of float32."""
    if not NUMBER.fullmatch(word):
        raise Wrong(f"no number: {word}")
    value = float(word)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float32(value)):
            raise Wrong("not finite")
    return np.float64(value)


def put(row, slot, value):
    with np.errstate(over="ignore"):
        row[slot] = np.float32(row[slot] + value) if slot in row else value
    if not np.isfinite(row[slot]):
        raise Wrong("not finite")


def vw_features(line):
    """Return (label, importance, tag, [(namespace, name, value)]), or None for an empty line."""
    if not words(line):
        return None
    head, bar, rest = line.partition(b"|")
    if not bar:
        raise Wrong("no bar")
    before = words(head)
    tag = b""
    if before and (head[-1] > 32 or before[-1].startswith(b"'")):
        tag = before.pop().removeprefix(b"'")
    if len(before) > 2:
        raise Wrong("three numbers")
    label = label_of(before[0]) if before else np.float64(np.nan)
    importance = number(before[1]) if len(before) > 1 else np.float32(1)
    if importance < 0:
        raise Wrong("negative")
    features = []
    for segment in rest.split(b"|"):
        tokens = words(segment)
        namespace, scale = b"", np.float32(1)
        if segment and segment[0] > 32:
            namespace, colon, given = tokens.pop(0).partition(b":")
            if colon:
                scale = number(given)
            if not namespace:
                raise Wrong("no namespace")
        for token in tokens:
            name, colon, given = token.partition(b":")
            if not name:
                raise Wrong("no name")
            with np.errstate(over="ignore"):
                value = np.float32(scale * number(given)) if colon else scale
            if not np.isfinite(value):
                raise Wrong("not finite")
            features.append((namespace, name, value))
    return label, importance, tag, features


def full_hash(namespace, name):
    return hash_name(name, hash_name(namespace) if namespace else START)


def vw_line(line, bits, interactions=()):
    """Return (label, importance, tag, {slot: value}), or None for an empty line."""
    found = vw_features(line)
    if found is None:
        return None
    *rest, features = found
    entries = [(namespace, full_hash(namespace, name), value) for namespace, name, value in features]
    row = {}
    for _, h, value in entries + crossed(entries, interactions):
        put(row, h & ((1 << bits) - 1), value)
    return *rest, row


def stands_for(part, namespace, letters):
    if part == ":":
        return True
    return namespace == part.encode() if not letters else (namespace[:1] or b" ") == part.encode()


def crossed(entries, interactions):
    """Return all crosses of (namespace or column, hash, value): every set of entries that a term allows, once."""
    seen, found = set(), []
    for term in interactions:
        letters = isinstance(term, str) and "*" not in term
        parts = term.split("*") if isinstance(term, str) and not letters else term
        fitting = [[k for k, e in enumerate(entries) if stands_for(part, e[0], letters)] for part in parts]
        for chosen in itertools.product(*fitting):
            if tuple(sorted(chosen)) in seen:
                continue
            seen.add(tuple(sorted(chosen)))
            rising = sorted((entries[k] for k in sorted(chosen)), key=lambda e: e[1])
            value = rising[0][2]
            with np.errstate(over="ignore"):
                for e in rising[1:]:
                    value = np.float32(value * e[2])
            if not np.isfinite(value):
                raise Wrong("not finite")
            found.append((None, hash_name(b"".join(e[1].to_bytes(8, "little") for e in rising)), value))
    return found


def svmlight_line(line, bits, shift=0):
    text = line.partition(b"#")[0]
    tokens = words(text)
    if not tokens:
        return None
    label = label_of(tokens.pop(0))
    query = tokens.pop(0) if tokens and tokens[0].startswith(b"qid:") else b"qid:0"
    if not re.fullmatch(rb"qid:[0-9]{1,15}", query):
        raise Wrong("no query")
    row = {}
    for token in tokens:
        name, colon, given = token.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]{1,15}", name) or int(name) < shift:
            raise Wrong("no id")
        index = int(name) - shift
        put(row, index if index < 1 << bits else mixed(index) & ((1 << bits) - 1), number(given))
    return label, np.float32(1), b"", row


# The reference parser of each line format, and lines to begin with.
PARSERS = {"vw": vw_line, "svmlight": svmlight_line}
VALID = {
    "vw": b"1 |a f12345 f777:1.5 f777:2\r\n\n-1 2.5 'tag |b:0.5 x:-1e-3 eight888:3 |c sixteen_sixteen_ y\n"
    b" |  z:0.30000000000000004 \xc3\xa9:1e-40\n0 0 t|u v",
    "svmlight": b"+1 3:1 11:2.5e-3 14:1 # hello\n\n# all of it\n-1 qid:7 5:1 3:0.1 5:.5\r\n0.5\n"
    b"2 1:16777217.0 200:1e-41",
}


def mixed(h):
    every = (1 << 64) - 1
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & every
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & every
    return h ^ h >> 33


def read(text, parse, bits):
    """Return the examples of a text, and the numbers of the lines that are malformed."""
    examples, bad = [], []
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for k, line in enumerate(lines, 1):
        try:
            found = parse(line, bits)
        except Wrong:
            bad.append(k)
            continue
        if found is not None:
            examples.append(found)
    return examples, bad


def places(text, parse, bits):
    """Return the numbers of the lines that hold an example."""
    found = []
    for k, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        with suppress(Wrong):
            if parse(line, bits) is not None:
                found.append(k)
    return found


def examples(reader):
    """The blocks of a reader in the form of these parsers."""
    found = []
    for block in reader:
        assert block.indptr[0] == 0
        assert block.indptr[-1] == block.indices.size == block.values.size
        assert (block.indptr.dtype, block.indices.dtype) == (np.int64, np.int32)
        assert (block.values.dtype, block.importance.dtype, block.labels.dtype) == (np.float32, np.float32, np.float64)
        for r in range(len(block)):
            part = slice(block.indptr[r], block.indptr[r + 1])
            row = dict(zip(block.indices[part].tolist(), block.values[part], strict=True))
            assert len(row) == part.stop - part.start  # distinct
            tag = block.tags[r] if block.tags else b""
            found.append((block.labels[r], block.importance[r], tag, row))
    return found


def same(mine, other):
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        assert a[0] == b[0] or (np.isnan(a[0]) and np.isnan(b[0]))
        assert a[1:3] == b[1:3]
        assert a[3] == b[3]

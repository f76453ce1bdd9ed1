"""Reading takes work in proportion to its input: calls are counted while nothing is compiled, without clocks."""

import json
import os
import subprocess
import sys

import pytest

COUNT = """
import io, json, sys
from forel.data import read
from forel.data.features.crosses import parse_crosses

def csv(columns, rows):
    header = ",".join(["y", *(f"c{k}" for k in range(columns))])
    row = ",".join(["1"] * (columns // 2 + 1) + ["w"] * (columns - columns // 2))
    return "\\n".join([header, *[row] * rows, ""]).encode()

def objects(keys, rows):
    row = {"y": 1, **{f"k{k}": "w" if k % 2 else k for k in range(keys)}}
    return (json.dumps(row) + "\\n").encode() * rows

def nested(spaces):
    return json.dumps({"y": 1, **{f"n{k}": {"a": 1, "b": "w"} for k in range(spaces)}}).encode()

def vw(spaces, features, rows):
    words = " ".join(f"x{k}:2" for k in range(features))
    return ("1 " + " ".join(f"|n{k} {words}" for k in range(spaces)) + "\\n").encode() * rows

def named(n):
    return "".join(f"1 |a x{k}\\n" for k in range(n)).encode()

def reading(text, form, **options):
    return lambda: list(read(io.BytesIO(text), form, bits=12, **options))

SHAPES = {
    "rows of csv": lambda n: reading(csv(4, n), "csv", label="y"),
    "columns of csv": lambda n: reading(csv(n, 3), "csv", label="y"),
    "columns and their names": lambda n: reading(csv(n, 3), "csv", label="y", names=True),
    "rows of json": lambda n: reading(objects(4, n), "jsonl", label="y"),
    "keys of json": lambda n: reading(objects(n, 3), "jsonl", label="y"),
    "odd rows of json": lambda n: reading(objects(2, n).replace(b"k1", b"k0"), "jsonl", label="y"),
    "namespaces of json": lambda n: reading(nested(n), "jsonl", label="y"),
    "rows of text": lambda n: reading(vw(2, 2, n), "vw"),
    "namespaces of text": lambda n: reading(vw(n, 2, 2), "vw"),
    "features of text": lambda n: reading(vw(1, n, 2), "vw"),
    "names": lambda n: reading(named(n), "vw", names=True),
    "kept columns": lambda n: reading(csv(n, 2), "csv", label="y", keep=[f"c{k}" for k in range(n)]),
    "kept keys": lambda n: reading(objects(n, 2), "jsonl", label="y", keep=[f"k{k}" for k in range(n)]),
    "logarithms of keys": lambda n: reading(objects(n, 2), "jsonl", label="y", log=[f"k{k}" for k in range(0, n, 2)]),
    "crosses": lambda n: reading(
        csv(2 * n, 2), "csv", label="y", interactions=[f"c{k}*c{k + n}" for k in range(n)]
    ),
    "crosses as options": lambda n: lambda: parse_crosses([f"a{k}*b{k}" for k in range(n)]),
}

def calls(action):
    count = 0
    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")
    sys.setprofile(profile)
    action()
    sys.setprofile(None)
    return count

found = {}
for name, shape in SHAPES.items():
    calls(shape(3))  # imports and caches
    found[name] = [calls(shape(n)) for n in (SMALL, 2 * SMALL, 4 * SMALL)]
print(json.dumps(found))
"""
SMALL = 100


@pytest.fixture(scope="module")
def counts():
    code = f"SMALL = {SMALL}\n{COUNT}"
    settings = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, env=settings, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_four_times_the_input_is_about_four_times_the_work(counts):
    for name, (one, two, four) in counts.items():
        assert one < two < four, (name, one, two, four)
        # Tables that grow by factors take steps; anything quadratic takes 16 times the work.
        assert four <= 5.5 * one, (name, one, two, four)

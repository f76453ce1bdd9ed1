"""With NUMBA_DISABLE_JIT everything works as it does compiled, slowly; and plain code instead of intrinsics."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data.compiled import plain as words
from forel.learner.kernels.intrinsics import plain

EVERYTHING = """
import io, json, sys
import numpy as np
from forel.data import read
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.learner.learner import Learner
from forel.river import LinearClassifier

VW = b"1 2.5 tag|a x:1.5 y:-3e-7 |b z:123456789.123\\n0 |b long_name_of_a_feature z\\n1 |a y:1e40 |b z:2\\n1 |a y:.5\\n"
SVM = b"1 1:0.5 7:2 # note\\n-1 2:1e-3\\n+1 qid:3 1:4.25 900:1\\n"
CSV = b'label,age,city\\n1,31.5,"Oslo, N"\\n0,,Rome\\n1,1e3,Oslo\\n'
OBJECTS = b'{"y": 1, "a": {"x": -1e-7, "w": "\\\\u00e9"}, "b": ["u"]}\\n{"y": 0, "a": true, "b": "\\\\n", "c": null}\\n'
results = []
for text, options in (
    (VW * 5, {"interactions": ("ab",), "on_error": "skip"}),
    (SVM * 3, {}),
    (CSV, {"label": "label", "categories": ("city",)}),
    (OBJECTS * 3, {"label": "y", "format": "jsonl"}),
):
    for block in read(io.BytesIO(text), bits=10, **options):
        results += [block.indptr.tolist(), block.indices.tolist(), block.values.tolist(), block.labels.tolist()]
text = b"1 |a x:1.5 y\\n0 |b z\\n1 |a y |b z:2\\n" * 5
block = next(iter(read(io.BytesIO(text), bits=10)))
matrix = block.matrix(1 << 10)
model = Learner(1 << 10, Settings(l1=0.1))
results += [model.progress(matrix, block.labels).ravel().tolist(), model.margins(matrix).ravel().tolist()]
mixture = Learner(1 << 10, Settings(alpha=[0.1, 0.3], l1=[0.1, 0.1]))
results += [np.ravel(mixture.progress(matrix, block.labels)).tolist()]
river = LinearClassifier(alpha=0.1)
for k in range(20):
    river.learn_one({"a": 1.0, "b": k % 3} if k % 2 else {"c": 0.5}, k % 2 == 0)
results += [list(river.predict_proba_one({"a": 1.0, "c": k}).values()) for k in range(3)]
print(json.dumps(results))
"""


def _run(code, **settings):
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, env={**os.environ, **path, **settings},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_everything_works_uncompiled():
    compiled, uncompiled = (json.loads(_run(EVERYTHING, **each)) for each in ({}, {"NUMBA_DISABLE_JIT": "1"}))
    assert len(compiled) == len(uncompiled)
    for one, other in zip(compiled, uncompiled, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-6, atol=1e-7)


@given(st.binary(min_size=64, max_size=64), st.integers(0, 255))
def test_loads_and_masks_are_in_the_order_of_bytes(text, wanted):
    held = np.frombuffer(text, np.uint8)
    at = words.address(held)
    assert words.byte(at + np.uint64(3)) == text[3]
    assert words.load(at) == int.from_bytes(text[:8], "little")
    for marks, found in (
        (words.equal(at, np.uint8(wanted)), [c == wanted for c in text]),
        (words.at_most(at, np.uint8(wanted)), [c <= wanted for c in text]),
    ):
        assert [bool(int(marks) >> k & 1) for k in range(64)] == found
        assert words.lowest(marks) == next((k for k in range(64) if found[k]), 64)
        assert words.first(marks) == words.lowest(marks) // 8


def test_arrays_by_address_are_written_through():
    numbers = np.zeros(3)
    plain.carray(plain.pointer(numbers.ctypes.data), (3,), np.float64)[1] = 2
    assert numbers.tolist() == [0, 2, 0]
    assert plain.carray(numbers.ctypes.data, (0,), np.int64).size == 0

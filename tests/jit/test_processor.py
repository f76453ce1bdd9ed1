"""Nothing that is shown or kept depends on which instructions a processor has beyond those that all have."""

import json
import os
import subprocess
import sys

from narrowed import narrowed

GENERATE = """
import hashlib, io, json
import numpy as np
from forel.data.clicks import write_clicks
found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
file = io.BytesIO()
write_clicks(file, 20_000, seed=3)
print(json.dumps([found, hashlib.sha256(file.getvalue()).hexdigest()]))
"""
COMPILE = """
import json
from numba.core.registry import cpu_target
magic = cpu_target.target_context.codegen().magic_tuple()
print(json.dumps(magic))
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)


def test_numpy_has_only_its_baseline_and_generates_the_same_clicks():
    here, there = run(GENERATE), run(GENERATE, **narrowed())
    assert not there[0]
    assert here[1] == there[1]


def test_numba_compiles_for_any_processor_and_keeps_that_code_apart():
    # The tuple is part of the name by which numba finds machine code in its cache.
    assert run(COMPILE, **narrowed())[1:] == ["generic", ""]

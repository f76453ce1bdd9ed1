"""Bitcode in the code cache: machine code for another processor without numba, the same as numba's own."""

import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from llvmlite import binding
from numba.core import codegen

from forel.jit import CachedFunction, bitcode, compiling, key, linking, shipped, sources
from forel.jit.shortcuts import with_shortcuts

pytestmark = [
    pytest.mark.skipif(not linking.possible(), reason="machine code is linked on Linux"),
    pytest.mark.skipif(not hasattr(codegen.CPUCodegen, "_pass_builder"), reason="this numba has other passes"),
]
X = np.linspace(-2, 2, 37)


def norm(x, scale):
    """Use a loop that is vectorized, libm, and memory."""
    room = x * scale
    total = 0.0
    for k in range(room.size):
        total += np.exp(-room[k] * room[k])
    return total


def cached(asked):
    """Return a function as a new process would have it, and note whether numba is asked."""

    def ask():
        asked.append(True)
        return compiling.cached_njit(__file__)(norm)

    return CachedFunction("norm", sources(__file__), ask)


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return the folder of a code cache with one function."""
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path))
    asked = []
    assert cached(asked)(X, 0.5) == pytest.approx(np.exp(-((X * 0.5) ** 2)).sum())
    assert asked
    return tmp_path / "code"


def content(path):
    return path.read_bytes()[32:].split(b"\n", 1)


def test_machine_code_from_bitcode_is_that_of_numba_to_the_byte(code):
    (names, unoptimized), (same, machine_code) = (
        content(next(code.glob(pattern))) for pattern in ("norm.bitcode-*.bin", "norm-*.bin")
    )
    assert names == same
    assert bitcode.machine_code(bitcode.parsed(unoptimized)) == machine_code


def test_another_processor_needs_no_numba(code, monkeypatch):
    monkeypatch.setattr(key, "_host", lambda: ("generic", ""))
    asked = []
    expected = with_shortcuts(numba.njit(error_model="numpy")(norm))(X, 0.5)
    assert cached(asked)(X, 0.5) == pytest.approx(expected, rel=1e-14)
    assert not asked
    assert len(list(code.glob("norm-*.bin"))) == 2


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"{}\nBC", lambda data: b""])
def test_damaged_bitcode_is_compiled_anew(code, monkeypatch, damage):
    monkeypatch.setattr(key, "_host", lambda: ("generic", ""))
    path = next(code.glob("norm.bitcode-*.bin"))
    path.write_bytes(damage(path.read_bytes()))
    asked = []
    assert cached(asked)(X, 0.5) == pytest.approx(np.exp(-((X * 0.5) ** 2)).sum())
    assert asked


def test_bitcode_that_llvm_cannot_read_is_compiled_anew(code, monkeypatch):
    monkeypatch.setattr(key, "_host", lambda: ("generic", ""))
    monkeypatch.setattr(binding, "parse_bitcode", lambda code: binding.parse_assembly("no bitcode"))
    asked = []
    cached(asked)(X, 0.5)
    assert asked


def test_the_key_has_all_but_the_processor(monkeypatch):
    before, versions = key.portable_key("f"), key._portable_versions()
    assert before != key.portable_key("g")
    monkeypatch.setattr(key, "_host", lambda: ("z80", ""))
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert key.portable_key("f") == before
    for k in range(len(versions)):
        with monkeypatch.context() as patch:
            patch.setattr(key, "_portable_versions", lambda k=k: (*versions[:k], "0.0", *versions[k + 1 :]))
            assert key.portable_key("f") != before
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert key.portable_key("f") != before


def test_models_from_bitcode_differ_by_the_rounding_of_the_processor_only(tmp_path, monkeypatch):
    script = "import json, pathlib, sys, numpy as np; from forel.jit import shipped; "
    script += "shipped.FOLDER = pathlib.Path(sys.argv[1]); from forel.learner.linear import Linear, Settings; "
    script += "m = Linear(2, Settings(alpha=0.1)); m.learn(np.eye(2), [0, 1]); "
    script += "print(json.dumps([m.weights.tolist(), 'numba' in sys.modules]))"
    package = tmp_path / "llvm"

    def run(**environment):
        command = [sys.executable, "-c", script, str(package)]
        env = {**os.environ, "FOREL_CACHE": str(tmp_path), **environment}
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout)

    compiled, numba_imported = run()
    assert numba_imported
    chosen = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    generic = [run(**chosen), run(**chosen)]
    assert [numba_imported for _, numba_imported in generic] == [False, False]
    assert generic[0][0] == generic[1][0]
    assert np.allclose(compiled, generic[0][0], rtol=1e-6, atol=0)  # a processor may fuse products and sums
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path))
    assert shipped.export(package) >= 1
    assert run(FOREL_CACHE=str(tmp_path / "empty")) == [compiled, False]  # from the package, with the same bits

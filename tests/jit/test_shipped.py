"""LLVM code as a part of the package: what a new installation generates from it, and when it compiles instead."""

import json
import lzma
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core import codegen

from forel.jit import CachedFunction, key, linking, njit, shipped, sources

pytestmark = [
    pytest.mark.skipif(not linking.possible(), reason="machine code is linked on Linux"),
    pytest.mark.skipif(not hasattr(codegen.CPUCodegen, "_pass_builder"), reason="this numba has other passes"),
]
X = np.linspace(-2, 2, 37)
EXPECTED = np.exp(-((X / 2) ** 2)).sum()
BUILD = "import test_shipped as test; test.cached([], decorated=True)(test.X)"


def total(x):
    """Use a loop that is vectorized, libm, and memory."""
    room = x * 0.5
    for k in range(room.size):
        room[k] = np.exp(-room[k] * room[k])
    return room.sum()


def cached(asked, source="", decorated=False):
    """Return a function as a new process would have it; note where numba would be asked, and do not compile there."""

    def ask():
        asked.append(True)
        return njit()(total) if decorated else total

    return CachedFunction("total", sources(__file__) + source, ask)


def run(script, **environment):
    """Run a script in a process that imports this file."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env).stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a folder with the LLVM code of one function in ``llvm``, as the build of a wheel writes it."""
    folder = tmp_path_factory.mktemp("shipped")
    run(BUILD, FOREL_CACHE=folder / "built", FOREL_LLVM=folder / "llvm", NUMBA_OPT=0)
    assert len(list((folder / "llvm").iterdir())) == 1
    return folder


@pytest.fixture
def package(build, tmp_path, monkeypatch):
    """Return the path of that in a package; the code cache is empty."""
    shutil.copytree(build / "llvm", tmp_path / "llvm")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "llvm")
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "empty"))
    return next((tmp_path / "llvm").iterdir())


def test_an_empty_cache_needs_no_numba(package):
    asked = []
    assert cached(asked)(X) == pytest.approx(EXPECTED)
    package.unlink()
    assert cached(asked)(X) == pytest.approx(EXPECTED)  # from the cache, which the first use filled
    assert not asked


def test_it_needs_no_folder_of_the_user(package, monkeypatch):
    monkeypatch.setenv("FOREL_CACHE", "/dev/null")
    monkeypatch.setenv("FOREL_QUIET", "1")
    asked = []
    assert cached(asked)(X) == pytest.approx(EXPECTED)
    assert not asked


@pytest.mark.parametrize("version", range(4))
def test_other_versions_are_compiled(package, monkeypatch, version):
    own = key._portable_versions()
    monkeypatch.setattr(key, "_portable_versions", lambda: (*own[:version], "0.0", *own[version + 1 :]))
    asked = []
    cached(asked)(X)
    assert asked


def test_other_sources_are_compiled(package):
    asked = []
    cached(asked, "changed")(X)
    assert asked


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: data[:99] + data[100:]])
def test_damaged_files_are_compiled(package, damage):
    package.write_bytes(damage(package.read_bytes()))
    asked = []
    assert cached(asked)(X) == pytest.approx(EXPECTED)
    assert asked


@pytest.mark.parametrize("name", ["wrapper", "environment"])
def test_files_without_their_function_are_compiled(package, name):
    names, assembly = lzma.decompress(package.read_bytes()).split(b"\n", 1)
    content = {**json.loads(names), name: "another"}
    package.write_bytes(lzma.compress(json.dumps(content).encode() + b"\n" + assembly))
    script = (
        f"import sys, test_shipped as test; test.shipped.FOLDER = test.shipped.pathlib.Path({str(package.parent)!r})"
    )
    script += "; asked = []; print(float(test.cached(asked)(test.X)), len(asked))"
    value, asked = run(script).split()
    assert (float(value), asked) == (pytest.approx(EXPECTED), "1")


def test_patches_of_python_and_numpy_keep_the_key(monkeypatch):
    numba, llvmlite, numpy, _, *system = key._versions()
    before, minor = key.portable_key("f"), ".".join(numpy.split(".")[:2])
    for other, same in ((f"{minor}.99", True), ("1.0.0", False)):
        key._portable_versions.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(key, "_versions", lambda other=other: (numba, llvmlite, other, "another build", *system))
            assert (key.portable_key("f") == before) is same
    key._portable_versions.cache_clear()


def test_the_key_does_not_depend_on_the_processor(monkeypatch):
    before = key.portable_key("f")
    assert before != key.portable_key("g")
    monkeypatch.setattr(key, "_host", lambda: ("z80", ""))
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert key.portable_key("f") == before


LEARN = """
import json, pathlib, sys, numpy as np
from forel.jit import shipped
shipped.FOLDER = pathlib.Path(%r)
from forel.learner.learner import Learner
from forel.learner.settings import Settings
model = Learner(2, Settings(alpha=0.1))
model.learn(np.eye(2), [0, 1])
print(json.dumps([model.weights.tolist(), "numba" in sys.modules]))
"""


@pytest.mark.slow
def test_models_from_shipped_code_are_those_of_compiled_code(tmp_path):
    script = LEARN % str(tmp_path / "llvm")
    compiled, imported = json.loads(run(script, FOREL_CACHE=tmp_path / "a"))
    assert imported
    run(script, FOREL_CACHE=tmp_path / "b", FOREL_LLVM=tmp_path / "llvm", NUMBA_OPT=0)
    found, imported = json.loads(run(script, FOREL_CACHE=tmp_path / "c"))
    assert not imported
    assert np.allclose(found, compiled, rtol=1e-6, atol=0)

"""LLVM code as a part of the package: what a new installation generates from it, and when it compiles instead."""

import shutil

import numpy as np
import pytest
from numba.core import codegen

from forel.jit import CachedFunction, compiling, key, linking, shipped, sources

pytestmark = [
    pytest.mark.skipif(not linking.possible(), reason="machine code is linked on Linux"),
    pytest.mark.skipif(not hasattr(codegen.CPUCodegen, "_pass_builder"), reason="this numba has other passes"),
]
X = np.linspace(-2, 2, 37)


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
        return compiling.cached_njit(__file__)(total) if decorated else total

    return CachedFunction("total", sources(__file__) + source, ask)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a folder with the code cache of one function in ``built``, and its LLVM code in ``llvm``."""
    folder = tmp_path_factory.mktemp("shipped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREL_CACHE", str(folder / "built"))
        cached([], decorated=True)(X)
        assert shipped.export(folder / "llvm") == 1
    return folder


@pytest.fixture
def package(build, tmp_path, monkeypatch):
    """Return a folder with a copy of that; the package has its LLVM code, and the code cache is empty."""
    shutil.copytree(build, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "llvm")
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "empty"))
    return tmp_path


def machine_code(folder):
    return next(folder.glob("code/total-*.bin")).read_bytes()[32:]


def test_an_empty_cache_needs_no_numba(package):
    asked = []
    assert cached(asked)(X) == pytest.approx(np.exp(-((X / 2) ** 2)).sum())
    assert not asked
    assert machine_code(package / "empty") == machine_code(package / "built")
    next((package / "llvm").iterdir()).unlink()
    cached(asked)(X)  # from the cache, which the first use filled
    assert not asked


def test_it_needs_no_folder_of_the_user(package, monkeypatch):
    monkeypatch.setenv("FOREL_CACHE", "/dev/null")
    monkeypatch.setenv("FOREL_QUIET", "1")
    asked = []
    assert cached(asked)(X) == pytest.approx(np.exp(-((X / 2) ** 2)).sum())
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
    path = next((package / "llvm").iterdir())
    path.write_bytes(damage(path.read_bytes()))
    asked = []
    assert cached(asked)(X) == pytest.approx(np.exp(-((X / 2) ** 2)).sum())
    assert asked


def test_patches_of_python_and_numpy_keep_the_key(monkeypatch):
    numba, llvmlite, numpy, _, *system = key._versions()
    before, minor = key.portable_key("f"), ".".join(numpy.split(".")[:2])
    for other, same in ((f"{minor}.99", True), ("1.0.0", False)):
        key._portable_versions.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(key, "_versions", lambda other=other: (numba, llvmlite, other, "another build", *system))
            assert (key.portable_key("f") == before) is same
    key._portable_versions.cache_clear()

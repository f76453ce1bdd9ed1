"""Code of an earlier process: the same results as numba's, nothing executed that another user could write, no crash."""

import gc
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from llvmlite import binding

from forel.jit import CachedFunction, cache, function, key, linking, njit, sources

X = np.arange(4.0)
LINKS = pytest.mark.skipif(not linking.possible(), reason="machine code is linked on Linux, without settings of numba")


def weigh(x, scale):
    """Use memory, libm and an exception, as kernels and parsers do."""
    room = np.empty(x.size + 1)
    for k in range(x.size):
        room[k] = np.exp(x[k] * scale)
    if x.size == 0:
        raise ValueError("nothing to weigh")
    return room[:-1].sum()


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return the folder of a new code cache."""
    # numba read the processor's variables when it was imported.
    for name in [name for name in os.environ if name.startswith("NUMBA_") and not name.startswith("NUMBA_CPU_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("FOREL_QUIET", raising=False)
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "printed_notices", set())
    return tmp_path / "cache" / "code"


def cached(asked=None):
    """Return a function as a new process would have it, and note whether numba is asked."""

    def ask():
        (asked if asked is not None else []).append(True)
        return njit()(weigh)

    return CachedFunction("weigh", sources(__file__), ask)


@pytest.fixture
def kept(code):
    """Compile and keep one function, and return its file."""
    cached()(X, 0.5)
    return next(code.glob("weigh-*.bin"))


@pytest.fixture
def restored(code, monkeypatch):
    """Do the same on a system where machine code cannot be linked, so that the file has numba's compile result."""
    monkeypatch.setattr(linking, "possible", lambda: False)
    cached()(X, 0.5)
    return next(code.glob("weigh-*.bin"))


def restores(monkeypatch):
    """Return whether numba's function has the code of another process."""
    made, own = [], function._restored
    monkeypatch.setattr(function, "_restored", lambda *some: made.append(own(*some)) or made[-1])
    assert cached()(X, 0.5) == right()
    return made[-1]


def right():
    return np.exp(X * 0.5).sum()


@LINKS
def test_a_later_call_has_the_same_bits_and_does_not_use_numba(kept):
    asked = []
    linked, plain, x = cached(asked), njit()(weigh), np.random.default_rng(0).normal(size=1000)
    assert linked(x, 0.3) == plain(x, 0.3)
    assert not asked
    # Other types, and arrays that lie otherwise, are other functions.
    assert linked(x.astype(np.float32), 0.3) == plain(x.astype(np.float32), 0.3)
    assert linked(x[::2], 0.3) == plain(x[::2], 0.3)
    assert len(asked) == 2


@LINKS
def test_linked_functions_raise_and_leak_nothing(kept):
    linked, x = cached(), X.copy()
    with pytest.raises(ValueError, match="nothing to weigh"):
        linked(np.empty(0), 0.5)
    before = sys.getrefcount(x)
    for _ in range(1000):
        linked(x, 0.5)
    gc.collect()
    assert sys.getrefcount(x) == before
    with pytest.raises(TypeError):
        linking.link(*_parts(kept))(x)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: cached()(x, 0.5), range(20)))) == 1


def _parts(file):
    facts, code = file.read_bytes()[cache.SIZE :].split(b"\n", 1)
    named = json.loads(facts)
    return code, named["wrapper"], named["environment"]


@LINKS
def test_symbols_that_are_not_there_are_noticed_before_linking(kept):
    code, *names = _parts(kept)
    assert "NRT_Free" in linking._undefined(code)
    assert linking.link(code.replace(b"NRT_Free", b"NRT_Free"[::-1]), *names) is None
    with pytest.raises(ValueError, match="not machine code"):
        linking._undefined(b"MZ" + code)


@LINKS
def test_functions_that_return_arrays_are_not_linked(code):
    for _ in range(2):
        twice = CachedFunction("twice", "x + x", lambda: njit()(lambda x: x + x))
        assert twice(X).tolist() == (2 * X).tolist()
        assert twice(3) == 6


DAMAGE = """
import os, pathlib, pytest
import test_code_cache as test

def linked():
    asked = []
    assert test.cached(asked)(test.X, 0.5) == test.right()
    return not asked

def restored():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test.linking, "possible", lambda: False)
        return test.restores(patch)

code = pathlib.Path(os.environ["FOREL_CACHE"], "code")
for kept, regions in ((linked, 12), (restored, 5)):
    assert [kept(), kept()] == [False, True]
    (file,) = code.glob("weigh-*")
    good = file.read_bytes()
    secret = code / "secret"
    secret.write_bytes(os.urandom(test.cache.SIZE))
    assert [kept(), kept()] == [False, True]
    good = file.read_bytes()
    for k in range(regions):
        at = len(good) * k // regions
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]):
            file.write_bytes(bad)
            assert [kept(), kept()] == [False, True], (kept, at)
    file.unlink()
"""


def _script(text):
    """Run a script that imports this file, in the code cache of this test; a crash fails it."""
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done


@LINKS
@pytest.mark.slow
def test_damaged_files_are_compiled_anew(code):
    assert _script(DAMAGE).stderr == ""


class Planted:
    """What an attacker would put into the cache: unpickling it leaves a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return pathlib.Path.touch, (self.mark,)


def test_nothing_is_executed_that_is_not_signed_for_its_key(restored, tmp_path, monkeypatch):
    mark = tmp_path / "executed"
    restored.write_bytes(bytes(cache.SIZE) + pickle.dumps(Planted(mark)))
    assert not restores(monkeypatch)
    assert not mark.exists()
    # A file that was signed for other code.
    cache.write(restored, "another key", pickle.dumps(Planted(mark)))
    assert not restores(monkeypatch)
    assert not mark.exists()


@LINKS
def test_nothing_is_linked_that_is_not_signed_for_its_key(kept, monkeypatch):
    cache.write(kept, "another key", cache.read(kept, function.key("machine code", *_given())))
    monkeypatch.setattr(linking, "link", lambda *_, **__: pytest.fail("linked"))
    assert cached()(X, 0.5) == right()


def _given():
    """Return what the key of the function consists of, for the types of ``right``."""
    return "weigh", sources(__file__), tuple(map(function._type_key, (X, 0.5)))


@LINKS
def test_files_that_others_can_write_or_own_are_not_read(kept, monkeypatch, capfd):
    kept.chmod(0o622)
    monkeypatch.setattr(linking, "link", lambda *_, **__: pytest.fail("linked"))
    assert cached()(X, 0.5) == right()
    assert "another user owns it or can write to it" in capfd.readouterr().err
    assert kept.stat().st_mode & 0o777 == 0o600
    found = os.stat_result([0o100600, 0, 0, 1, os.geteuid() + 1, 0, 0, 0, 0, 0])
    monkeypatch.setattr(os, "fstat", lambda _: found)
    assert cache._trusted(kept) is None
    monkeypatch.undo()
    assert cache._trusted(kept) is not None
    kept.rename(kept.with_name("moved"))
    kept.symlink_to(kept.with_name("moved"))
    assert cache._trusted(kept) is None
    if hasattr(os, "mkfifo"):
        kept.unlink()
        os.mkfifo(kept)
        assert cache._trusted(kept) is None  # and does not wait for a writer


def test_a_loose_umask_makes_nothing_loose(code):
    before = os.umask(0)
    try:
        cached()(X, 0.5)
    finally:
        os.umask(before)
    assert code.stat().st_mode & 0o777 == code.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in code.iterdir()} == {0o600}


def _refused(capfd, reason):
    """Call a function twice without a cache, and look for one sentence about it."""
    capfd.readouterr()
    for _ in range(2):
        assert cached()(X, 0.5) == right()
    message = capfd.readouterr().err.splitlines()
    assert len(message) == 1
    assert message[0].startswith(f"forel: {cache.NOT_CACHED}: ")
    assert reason in message[0]
    assert "set FOREL_CACHE to" in message[0]


def test_a_folder_of_somebody_else_is_not_used(code, monkeypatch, capfd):
    code.parent.mkdir()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    _refused(capfd, f"got {code.parent}, a folder of user {owner}, expected a folder that you own")
    assert not code.exists()


def test_a_folder_that_others_can_write_to_is_not_used(code, capfd):
    code.mkdir(parents=True)
    code.chmod(0o770)
    _refused(capfd, f"got {code}, a folder that others can write to")
    assert not list(code.iterdir())


@pytest.mark.parametrize("name", ["cache", "cache/code"])
def test_a_symbolic_link_is_not_used(code, tmp_path, capfd, name):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / name).parent.mkdir(mode=0o700, exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    _refused(capfd, f"got {tmp_path / name}, a symbolic link, expected a folder that you own")
    assert not list((tmp_path / "elsewhere").iterdir())


def _no_home(*_, **__):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("found", [lambda *_, **__: "~/.cache/forel", _no_home])
def test_without_a_home_folder_nothing_is_kept_below_the_data(code, monkeypatch, capfd, tmp_path, found):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOREL_CACHE")
    monkeypatch.setattr(cache.platformdirs, "user_cache_dir", found)
    _refused(capfd, "got no home folder")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_done_without(code, monkeypatch, capfd, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "file" / "cache"))
    _refused(capfd, "(Not a directory)")


FULL = """
import resource
import test_code_cache as test
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
assert test.cached()(test.X, 0.5) == test.right()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes stand for a full disk")
def test_a_full_disk_is_done_without(code):
    assert _script(FULL).stderr == (
        f"forel: {cache.NOT_CACHED}: {code} cannot be written to (File too large);"
        " set FOREL_CACHE to another folder that you own\n"
    )
    assert {file.name for file in code.iterdir()} == {"lock", "secret"}


@pytest.mark.parametrize("error", [AttributeError("gone"), RuntimeError("other"), KeyError("name"), OSError("disk")])
def test_linking_that_fails_is_left_to_numba(kept, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(linking, "link", fail)
    asked = []
    assert cached(asked)(X, 0.5) == right()
    assert asked == [True]


def test_parts_of_numba_that_are_gone_are_done_without(restored, monkeypatch, capfd):
    def fail(*_, **__):
        raise TypeError("another version")

    assert restores(monkeypatch)
    monkeypatch.setattr(numba.core.compiler.CompileResult, "_rebuild", fail)
    assert not restores(monkeypatch)
    monkeypatch.setattr(numba.core.compiler.CompileResult, "_reduce", fail)
    assert cached()(X.astype(np.float32), 0.5) == pytest.approx(right())
    assert "TypeError('another version')" in capfd.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(function, "_machine_code", fail)
    assert cached()(X, 1) == np.exp(X).sum()


def test_code_that_cannot_be_linked_is_restored(restored, monkeypatch):
    assert restores(monkeypatch)


def test_settings_of_numba_leave_it_to_numba(code, monkeypatch):
    monkeypatch.setenv("NUMBA_OPT", "1")
    asked = []
    assert cached(asked)(X, 0.5) == cached(asked)(X, 0.5) == pytest.approx(right())
    assert len(asked) == 2


@LINKS
def test_code_for_a_chosen_processor_is_linked(code):
    """One of the smaller functions."""
    script = "import json, sys, numpy as np; from forel.learner.kernels.kernel import routine; "
    script += "found, labels = np.empty((2, 9)), np.arange(9.0) % 2; "
    script += "routine('counting', 'log_losses')(np.linspace(-3.0, 3.0, 9), labels, *found); "
    script += "print(json.dumps([found.tolist(), 'numba' in sys.modules]))"
    chosen = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-c", script]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=chosen).stdout)
        for _ in range(2)
    ]
    assert runs[0] == [runs[1][0], True]
    assert not runs[1][1]


def test_a_key_has_all_that_code_depends_on(monkeypatch, tmp_path):
    before, versions = key.key("f"), key._versions()
    assert key.key("f") == before != key.key("g")
    for name, value in (
        ("processor", lambda: ("z80", "")),
        ("processor", lambda: (key._host()[0], "-avx2")),
        *(("_versions", lambda k=k: (*versions[:k], "0.0", *versions[k + 1 :])) for k in range(len(versions))),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(key, name, value)
            assert key.key("f") != before
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "other")
            assert key.key("f") != before
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    assert key.processor() == (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    (tmp_path / "a.py").write_text("one")
    hashes = {sources(tmp_path)}
    (tmp_path / "a.py").write_text("two")
    hashes.add(sources(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    hashes.add(sources(tmp_path))
    assert len(hashes) == 3


def test_eviction_goes_by_age_and_then_by_size(tmp_path):
    now = time.time()
    for name, size, idle in (("old", 10, 200), ("a", 10, 30), ("b", 10, 20), ("c", 10, 10)):
        (tmp_path / f"{name}.bin").write_bytes(bytes(size))
        os.utime(tmp_path / f"{name}.bin", (now - idle, now - idle))
    for name in ("secret", "lock", "x.tmp", "abandoned.tmp"):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (now - 5000, now - 5000) if name != "x.tmp" else None)
    cache.evict(tmp_path, age=100, limit=25)
    assert {file.name for file in tmp_path.iterdir()} == {"b.bin", "c.bin", "secret", "lock", "x.tmp"}


def test_using_a_file_keeps_it_from_eviction(kept):
    os.utime(kept, (0, 0))
    cached()(X, 0.5)
    assert time.time() - kept.stat().st_mtime < 60


ONE_OF_TWO = """
import sys, time
import test_code_cache as test
from forel.jit import CachedFunction, sources
def slowly():
    print("compiles", flush=True)
    time.sleep(1.0)
    return test.njit()(test.weigh)
print("ready", flush=True)
sys.stdin.readline()
assert CachedFunction("weigh", sources(test.__file__), slowly)(test.X, 0.5) == test.right()
"""


@LINKS
@pytest.mark.slow
def test_of_two_processes_one_compiles(code):
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])
    start = [sys.executable, "-c", ONE_OF_TWO]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(start, env={**os.environ, "PYTHONPATH": path}, **options) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(process.communicate()[0] for process in both) == ["", "compiles\n"]
    assert [process.returncode for process in both] == [0, 0]


HOLDS = """
import pathlib, sys
from forel.jit import cache
with cache.compile_lock(pathlib.Path(sys.argv[1]), sys.argv[2]):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(cache.fcntl is None, reason="without locks every process compiles")
def test_waiting_for_a_lock_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    monkeypatch.setattr(cache, "waited", 0.0)
    mine = key.key("f")
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path), mine],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert process.stdout.readline() == "holds\n"
    with cache.compile_lock(tmp_path, key.key("g")):
        assert cache.waited == 0
    for _ in range(3):
        with cache.compile_lock(tmp_path, mine):
            assert 0.2 <= cache.waited < 0.3
    process.kill()  # and leaves nothing behind that would have to be waited for
    process.communicate()
    monkeypatch.setattr(cache, "waited", 0.0)
    with cache.compile_lock(tmp_path, mine):
        assert cache.waited == 0
    with cache.compile_lock(tmp_path / "nowhere", mine):
        pass


CODE = """
import json, sys
import numpy as np
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.data import read
import io
text = b"1 |a x:1.5 y\\n0 |b z\\n1 |a y |b z:2\\n" * 50
block = next(iter(read(io.BytesIO(text), bits=10)))
model = Learner(1 << 10, Settings(l1=0.1))
margins = model.progress(block.matrix(1 << 10), block.labels)
results = [margins.tobytes().hex(), model.weights.tobytes().hex(), block.indices.tobytes().hex()]
results.append(model.margins(block.matrix(1 << 10)).tobytes().hex())
late = "numba" in sys.modules
import numba  # after its C modules have been loaded one by one
results.append(numba.njit(lambda x: np.zeros(3).sum() + x)(1.5))
print(json.dumps([results, late]))
"""


@LINKS
@pytest.mark.slow
def test_the_second_process_reads_learns_and_predicts_without_numba(code):
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0]
    assert [with_numba for _, with_numba in runs] == [True, False]

"""Machine code of an earlier process: the same results as numba's, and never a crash."""

import gc
import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from forel.native import Native, keeping, linking

SOURCE = '''
import numpy as np
from numba import njit

@njit(cache=True, nogil=True)
def weigh(x, scale):
    """Use memory, libm and an exception, as kernels and parsers do."""
    room = np.empty(x.size + 1)
    for k in range(x.size):
        room[k] = np.exp(x[k] * scale)
    if x.size == 0:
        raise ValueError("nothing to weigh")
    return room[:-1].sum()
'''
CODE = """
import json, sys
import numpy as np
from forel.linear import Linear, Settings
from forel.formats import open_blocks
import io
text = b"1 |a x:1.5 y\\n0 |b z\\n1 |a y |b z:2\\n" * 50
block = next(iter(open_blocks(io.BytesIO(text), bits=10)))
model = Linear(1 << 10, Settings(l1=0.1))
margins = model.progress(block.matrix(1 << 10), block.labels)
told = [margins.tobytes().hex(), model.weights.tobytes().hex(), block.indices.tobytes().hex()]
told.append(model.margins(block.matrix(1 << 10)).tobytes().hex())
late = "numba" in sys.modules
import numba  # after its C modules have been loaded one by one
told.append(numba.njit(lambda x: np.zeros(3).sum() + x)(1.5))
print(json.dumps([told, late]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weighing.py").write_text(SOURCE)
    return tmp_path


def compiled(folder):
    """Return numba's function, from a module of its own."""
    spec = importlib.util.spec_from_file_location("weighing", folder / "weighing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.weigh


def native(folder, asked):
    """Return a function as a new process would have it, and note whether numba is asked."""

    def ask():
        asked.append(True)
        return compiled(folder)

    return Native("weigh", SOURCE, ask)


@pytest.fixture
def kept(folder):
    """Compile and keep one function, and return its file."""
    native(folder, [])(np.arange(4.0), 0.5)
    (file,) = (folder / "cache" / "native").iterdir()
    return file


@pytest.mark.skipif(not linking.possible(), reason="machine code is kept on Linux, without settings of numba")
def test_a_later_call_has_the_same_bits_and_does_not_ask_numba(folder, kept):
    asked = []
    function, x = native(folder, asked), np.random.default_rng(0).normal(size=1000)
    assert function(x, 0.3) == compiled(folder)(x, 0.3)
    assert not asked
    # Other types, and arrays that lie otherwise, are other functions.
    assert function(x.astype(np.float32), 0.3) == compiled(folder)(x.astype(np.float32), 0.3)
    assert function(x[::2], 0.3) == compiled(folder)(x[::2], 0.3)
    x.flags.writeable = False
    assert function(x, 1) == compiled(folder)(x, 1)
    assert len(asked) == 3


@pytest.mark.skipif(not linking.possible(), reason="machine code is kept on Linux, without settings of numba")
def test_linked_functions_raise_and_leak_nothing(folder, kept):
    function, x = native(folder, []), np.arange(4.0)
    with pytest.raises(ValueError, match="nothing to weigh"):
        function(np.empty(0), 0.5)
    before = sys.getrefcount(x)
    for _ in range(1000):
        function(x, 0.5)
    gc.collect()
    assert sys.getrefcount(x) == before
    with pytest.raises(TypeError):
        linking.link(*_parts(kept))(x)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: native(folder, [])(x, 0.5), range(20)))) == 1


def _parts(file):
    code, facts = keeping.read(file)
    return code, facts["wrapper"], facts["environment"]


@pytest.mark.skipif(not linking.possible(), reason="machine code is kept on Linux, without settings of numba")
def test_damaged_files_are_not_linked_and_made_anew(folder, kept):
    good, x = kept.read_bytes(), np.arange(4.0)
    right = compiled(folder)(x, 0.5)
    generator = np.random.default_rng(0)
    for _ in range(30):
        bad, asked = bytearray(good), []
        bad[int(generator.integers(len(good)))] ^= 1 << int(generator.integers(8))
        kept.write_bytes(bad if generator.random() < 0.5 else good[: int(generator.integers(len(good)))])
        assert native(folder, asked)(x, 0.5) == right
        assert asked
        assert kept.read_bytes() == good


@pytest.mark.skipif(not linking.possible(), reason="machine code is kept on Linux, without settings of numba")
def test_symbols_that_are_not_there_are_noticed_before_linking(kept):
    code, *names = _parts(kept)
    assert "NRT_Free" in linking._undefined(code)
    assert linking.link(code.replace(b"NRT_Free", b"NRT_Free"[::-1]), *names) is None
    with pytest.raises(ValueError, match="not machine code"):
        linking._undefined(b"MZ" + code)


def test_settings_of_numba_and_folders_that_cannot_be_written_leave_it_to_numba(folder, monkeypatch):
    x = np.arange(4.0)
    (folder / "file").write_text("")
    monkeypatch.setenv("FOREL_CACHE", str(folder / "file"))
    asked = []
    assert native(folder, asked)(x, 0.5) == native(folder, asked)(x, 0.5)
    monkeypatch.setenv("FOREL_CACHE", str(folder / "cache"))
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert native(folder, asked)(x, 0.5) == pytest.approx(np.exp(x / 2).sum())
    assert len(asked) == 3
    assert not (folder / "cache").exists()


@pytest.mark.slow
@pytest.mark.skipif(not linking.possible(), reason="machine code is kept on Linux, without settings of numba")
def test_the_second_process_reads_learns_and_predicts_without_numba(folder):
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0]
    assert [with_numba for _, with_numba in runs] == [True, False]

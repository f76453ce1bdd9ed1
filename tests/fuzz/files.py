"""Damaged model files and checkpoints: only ever sentences, or the same numbers as before the damage.

Bytes are flipped, cut, added, moved and overwritten; and numbers and fields are changed under checksums that are made
right again. A process of its own opens each file, so that a crash or a hang is noticed and the next one goes on.
"""

import copy
import json
import multiprocessing
import pathlib
import random
import resource
import tempfile
import time
import traceback
import zlib
from collections import Counter

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from forel.store.header import canonical_json
from forel.training.model import load
from forel.training.scoring import predict_blocks
from tests.files import make
from tests.fuzz.command import command
from tests.fuzz.sentences import uncompiled

PATIENCE = 60  # seconds after which opening a file counts as a hang
MEMORY = 16 << 30  # bytes of addresses that the process has
BITS = 8
ODD = (None, True, -1, 0, 1, 2**31, 2**40, 2**63, 10**30, 1e308, -0.5, "", "x", "nan", [], [1], {}, {"x": 1}, [[1.0]])
NUMBERS = (np.nan, np.inf, -np.inf, -1, 0, 1, 1e38, -1e38, 2**31 - 1, 2**31, 1e300)
PARTS = ("indptr", "indices", "values", "labels", "importance")


def digest(path):
    """Return the content of a file as numbers to compare."""
    stored = load(path)
    if "reading" in stored.extra:
        with make.text() as source:
            return np.concatenate([m for _, m in predict_blocks(stored, source)]).tolist()
    return stored.learner.margins(make.rows(8, 100)[0]).tolist()


def opens(pipe):
    """Open each file that is named, and answer what came of it: numbers, a sentence, or a traceback."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with uncompiled():
        while (path := pipe.recv()) is not None:
            try:
                answer = "numbers", digest(pathlib.Path(path))
            except (ValueError, OSError, MemoryError) as error:
                answer = "sentence", str(error)
            except BaseException:
                answer = "traceback", traceback.format_exc()
            pipe.send(answer)


class Opener:
    """A process that opens files, and is begun again when it dies."""

    def __init__(self):
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self):
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=opens, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def __call__(self, path):
        try:
            self._pipe.send(str(path))
            if self._pipe.poll(PATIENCE):
                return self._pipe.recv()
            what = "hang", f"no answer in {PATIENCE} seconds"
        except (EOFError, OSError):
            self._process.join(PATIENCE)
            what = "crash", f"the process ended with {self._process.exitcode}"
        self.close()
        self._start()
        return what

    def close(self):
        self._process.kill()
        self._process.join()
        self._pipe.close()


def flip(rng, data):
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng, data):
    k, size = rng.randrange(len(data)), rng.choice((1, 1, 4, 8, 64))
    fill = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", rng.randbytes(1)))
    data[k : k + size] = fill * len(data[k : k + size])


def cut(rng, data):
    del data[rng.randrange(len(data)) :]


def extend(rng, data):
    data += rng.choice((b"\0", b"\n", bytes(data[-100:]), bytes(data), rng.randbytes(20)))


def remove(rng, data):
    k = rng.randrange(len(data))
    del data[k : k + rng.choice((1, 8, 100))]


def insert(rng, data):
    k, j = rng.randrange(len(data)), rng.randrange(len(data))
    data[k:k] = data[j : j + rng.choice((1, 8, 100))]


def swap(rng, data):
    size = rng.choice((1, 4, 8, 64))
    j, k = sorted(rng.sample(range(max(2, len(data) - size)), 2))
    if j + size <= k:
        data[j : j + size], data[k : k + size] = data[k : k + size], data[j : j + size]


DAMAGE = (flip, flip, flip, overwrite, overwrite, cut, extend, remove, insert, swap)


def damaged(rng, data):
    """Return changed bytes, and a description of the change."""
    other, done = bytearray(data), []
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if other:
            how = rng.choice(DAMAGE)
            how(rng, other)
            done.append(how.__name__)
    return bytes(other), ", ".join(done)


def forged(rng, source, path):
    """Write a file with other numbers or fields, under valid checksums; return a description of the change."""
    with safe_open(source, framework="numpy") as file:
        header = json.loads(file.metadata()["forel"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if rng.random() < 0.5:
        done = change_array(rng, arrays, rng.choice(sorted(arrays)))
    else:
        inside = header
        while True:
            key = rng.choice(sorted(inside))
            if not (isinstance(inside[key], dict) and inside[key] and rng.random() < 0.8):
                break
            inside = inside[key]
        value = rng.choice(ODD)
        done = f"{key} = {value!r:.40}"
        if rng.random() < 0.2:
            done = f"without {key}"
            del inside[key]
        else:
            inside[key] = copy.deepcopy(value)
    if rng.random() < 0.9:
        own = sorted(arrays.keys() - {"checks"})
        arrays["checks"] = np.array([zlib.crc32(arrays[name].tobytes()) for name in own], np.uint32)
    header.pop("check", None)
    header["check"] = zlib.crc32(canonical_json(header).encode())
    save_file(arrays, path, {"forel": canonical_json(header)})
    return done


def change_array(rng, arrays, name):
    """Put an odd number into an array, or make it longer or shorter."""
    array, how = arrays[name].copy(), rng.random()
    if array.size and how < 0.7:
        with np.errstate(all="ignore"):
            number = rng.choice(NUMBERS)
            place = rng.randrange(array.size)
            array.reshape(-1)[place] = np.array(number).astype(array.dtype) if np.isfinite(number) else (
                number if array.dtype.kind == "f" else np.iinfo(array.dtype).max
            )  # fmt: skip
            done = f"{name}[{place}] = {number}"
    else:
        array = np.concatenate([array, array[:1]]) if how < 0.85 else array[:-1]
        done = f"{name} of shape {array.shape}"
    arrays[name] = np.ascontiguousarray(array)
    return done


def run(seconds, seed=0):
    """Damage files for some seconds, print what was tried, and return how often; undocumented errors are raised."""
    rng, until, tried = random.Random(seed), time.monotonic() + seconds, Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "clicks.vw").write_text(make.TEXT)
        with uncompiled():
            make.write_all(folder)
        wholes = sorted(folder.glob("*.forel"))
        opener = Opener()
        try:
            known = {path: opener(path) for path in wholes}
            wrong = {path.name: message for path, message in known.items() if message[0] != "numbers"}
            assert not wrong, wrong
            while time.monotonic() < until or not tried:
                path = rng.choice(wholes)
                other = folder / f"damaged-{path.name}"
                forge = rng.random() < 0.3
                if forge:
                    done = forged(rng, path, other)
                else:
                    data, done = damaged(rng, path.read_bytes())
                    other.write_bytes(data)
                kind, message = opener(other)
                tried["forged" if forge else "damaged", kind] += 1
                named = forge or (kind == "sentence" and "damaged-" in message)
                same = kind == "numbers" and (forge or message == known[path][1])
                if not (same or (kind == "sentence" and named and "\n" not in message)):
                    raise AssertionError(
                        f"seed {seed}, number {sum(tried.values())}: {path.name}, {done}: {kind} {message}"
                    )
        finally:
            opener.close()
    counts = ", ".join(f"{how} with {kind} {count:,}" for (how, kind), count in sorted(tried.items()))
    print(f"files, seed {seed}: {sum(tried.values()):,} files, {counts}")
    return sum(tried.values())


def main() -> None:
    command(run, __doc__)


if __name__ == "__main__":
    main()

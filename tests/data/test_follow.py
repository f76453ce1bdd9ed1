"""Growing files and named pipes: appended lines are read until reading is ended, which drops incomplete ones."""

import gzip
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from forel.data import concatenate, read
from forel.data.pipeline import ordered_blocks

LINES = {
    "vw": [f"{k % 2} |a x{k} y:{k}".encode() for k in range(40)],
    "csv": [b"y,city,x", *(b"%d,c%d,%d" % (k % 2, k % 7, k) for k in range(40))],
    "jsonl": [json.dumps({"y": k % 2, "city": f"c{k % 7}", "x": k}).encode() for k in range(40)],
}
LABEL = {"vw": {}, "csv": {"label": "y"}, "jsonl": {"label": "y"}}
PATIENCE = 30.0


def options(form):
    return {"format": form, "bits": 10, "on_error": "raise", **LABEL[form]}


def whole(form, count=None):
    return concatenate(read(io.BytesIO(b"\n".join(LINES[form][:count]) + b"\n"), **options(form)))


def same(found, expected):
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.values.tolist() == expected.values.tolist()
    assert found.labels.tolist() == expected.labels.tolist()


@pytest.mark.parametrize("form", LINES)
@pytest.mark.parametrize("threads", [0, 1])
def test_lines_that_are_appended_are_read_at_once(tmp_path, form, threads):
    path = tmp_path / "rows"
    path.write_bytes(b"\n".join(LINES[form][:5]) + b"\n")
    reader = read(str(path), follow=True, **options(form))
    blocks, rows, written = [], 0, 5
    with path.open("ab", 0) as file:
        for block in ordered_blocks(reader, threads):
            blocks.append(block)
            rows += len(block)
            if rows == written - (form == "csv"):  # all that is there was read before more is appended
                if written == len(LINES[form]):
                    reader.ended.set()
                    continue
                line = LINES[form][written]
                file.write(line[:3])  # in two parts: half a line is not read
                file.write(line[3:] + b"\n")
                written += 1
    assert len(blocks) > 30
    same(concatenate(blocks), whole(form))


@pytest.mark.parametrize("form", LINES)
def test_standard_input_is_followed_until_it_ends(form):
    lines = b"\n".join(LINES[form]) + b"\n"
    code = f"from forel.data import read\nprint(sum(map(len, read('-', follow=True, **{options(form)!r}))))"
    done = subprocess.run([sys.executable, "-c", code], input=lines, capture_output=True, check=False, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == (b"40\n", b"")


FOLLOWED = """
import forel
from forel.learner.kernels import kernel
from forel.training import run
kernel.kernel = kernel.uncompiled_kernel
run.available_cores.__code__ = (lambda: 2).__code__
settings = forel.Settings(alpha=(0.1, 1.0), filters=())
def show(now):
    print(now.rows, flush=True)
show.reads_model = False  # so that a block may be mixed beside the next one
forel.train("-", settings, format="vw", follow=True, progress=show)
"""


def test_rows_are_learned_while_their_writer_waits():
    with subprocess.Popen([sys.executable, "-c", FOLLOWED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        late = threading.Timer(PATIENCE, other.kill)
        late.start()
        for rows in (5, 10):
            other.stdin.write(b"".join(line + b"\n" for line in LINES["vw"][rows - 5 : rows]))
            other.stdin.flush()
            assert other.stdout.readline() == b"%d\n" % rows
        late.cancel()


def test_a_named_pipe_may_be_opened_by_several_writers(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = threading.Semaphore(0)

    def write():
        for k in range(0, 40, 10):
            with path.open("wb", 0) as pipe:
                pipe.write(b"\n".join(LINES["vw"][k : k + 10]) + b"\n")
            seen.acquire(timeout=PATIENCE)  # it is read before the next writer opens the pipe

    writer = threading.Thread(target=write)
    writer.start()
    reader = read(str(path), follow=True, **options("vw"))
    blocks = []
    for block in ordered_blocks(reader, 1):
        blocks.append(block)
        rows = sum(map(len, blocks))
        if rows % 10 == 0:
            seen.release()
        if rows == 40:
            reader.ended.set()
    writer.join()
    same(concatenate(blocks), whole("vw"))


def test_an_incomplete_line_is_dropped_at_the_end(tmp_path):
    path = tmp_path / "rows.vw"
    path.write_bytes(b"1 |a x\n1 |a")
    assert len(concatenate(read(str(path), follow=True, idle=0.05))) == 1
    assert len(concatenate(read(str(path)))) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_with_a_model(tmp_path, number):
    path, model = tmp_path / "rows.vw", tmp_path / "model.forel"
    path.write_bytes(b"\n".join(LINES["vw"]) + b"\n")
    command = [sys.executable, "-m", "forel", "train", str(path), "--follow", "--model", str(model), "-b", "10"]
    command += ["--predictions", str(tmp_path / "predictions"), "--checkpoint", "10", "--json"]
    run = subprocess.Popen(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, stdout=subprocess.PIPE)
    checkpoint = pathlib.Path(f"{model}.checkpoint")
    end = time.monotonic() + 2 * PATIENCE
    while not checkpoint.exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    run.send_signal(number)
    printed, _ = run.communicate(timeout=2 * PATIENCE)
    assert run.returncode == 0
    assert json.loads(printed)["rows"] == 40
    assert model.exists()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"idle": 1.0}, "idle: got 1.0, expected None without follow"),
        ({"follow": True, "encoding": "latin-1"}, "follow: got True, expected False with an encoding"),
        ({"follow": True, "idle": -1.0}, "idle: got -1.0, expected a positive number"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, keywords, message):
    with pytest.raises(ValueError, match=message):
        read(str(tmp_path / "rows.vw"), **keywords)


def test_what_cannot_grow_is_refused(tmp_path):
    path = tmp_path / "rows.vw.gz"
    path.write_bytes(gzip.compress(b"1 |a x\n"))
    for source, message in (
        (str(path), "follow: got '.*rows.vw.gz', expected plain text"),
        ([{"x": 1.0}], "follow: got 'list', expected the path"),
        ([str(path), str(path)], "follow: got '2 sources', expected the path of one"),
    ):
        with pytest.raises(ValueError, match=message):
            list(read(source, follow=True, idle=0.1))

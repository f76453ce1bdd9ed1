"""Training with files read on a Ray cluster: the same bytes as on one machine, also after failures."""

import gzip
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from types import ModuleType

import pytest

import forel
from forel.data.pieces import pieces_of, read_piece
from forel.ray import RayWorkers, ray_workers
from forel.ray.ray_workers import import_ray, read_groups, run_within
from forel.training import passes

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'forel[ray]'", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

ONE = forel.Settings(alpha=0.5, l1=0.1)
SOFTMAX = forel.Settings("softmax", alpha=0.5)
SQUARED = forel.Settings("squared", alpha=(0.1, 0.5))


@pytest.fixture(scope="module")
def address():
    """Ray on this machine with two CPUs, started once."""
    with RayWorkers("local", 2):
        import ray

        found = ray.get_runtime_context().gcs_address
        assert found.startswith("127.0.0.1:")
        yield found


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Four files in each format."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("cluster")
    found = {"vw": [], "gzip": [], "csv": [], "parquet": []}
    for part in range(4):
        rows = range(150 * part, 150 * part + 150)
        columns = {"y": [k % 2 for k in rows], "age": [k % 17 for k in rows], "city": [f"c{k % 5}" for k in rows]}
        text = "".join(f"{y} |a age:{a} {c} w{a * 7 % 23}\n" for y, a, c in zip(*columns.values(), strict=True))
        table = "y,age,city\n" + "".join(f"{y},{a},{c}\n" for y, a, c in zip(*columns.values(), strict=True))
        (folder / f"{part}.vw").write_text(text)
        (folder / f"{part}.vw.gz").write_bytes(gzip.compress(text.encode()))
        (folder / f"{part}.csv").write_text(table)
        pq.write_table(pa.table(columns), folder / f"{part}.parquet")
        for name, suffix in (("vw", "vw"), ("gzip", "vw.gz"), ("csv", "csv"), ("parquet", "parquet")):
            found[name].append(str(folder / f"{part}.{suffix}"))
    return found


def options_of(name):
    return {"bits": 10, "block_bytes": 1000, **({"label": "y"} if name in ("csv", "parquet") else {})}


def saved(tmp_path, trained):
    trained.save(tmp_path / "m.forel")
    return (tmp_path / "m.forel").read_bytes()


@pytest.mark.parametrize(("name", "number", "settings", "extra"), [
    ("vw", 2, ONE, {"names": True, "certificate": True, "holdout": 10}),
    ("gzip", 1, ONE, {"passes": 2}),
    ("gzip", 4, None, {"certificate": True, "names": True}),
    ("csv", 2, None, {"names": True}),
    ("parquet", 4, ONE, {"holdout_after": 500}),
    ("vw", 4, SQUARED, {}),
    ("csv", 2, SOFTMAX, {"label": "city", "certificate": True}),
])  # fmt: skip
def test_the_model_file_has_the_same_bytes(address, files, tmp_path, interpreted, name, number, settings, extra):
    progress = []
    extra = options_of(name) | extra
    alone = forel.train(files[name], settings, **extra)
    with RayWorkers(address, number) as workers:
        together = forel.train(files[name], settings, cluster=workers, progress=progress.append, **extra)
    assert saved(tmp_path, together) == saved(tmp_path, alone)
    assert together.training.certificate == alone.training.certificate
    assert together.report == alone.report
    assert [p.rows for p in progress][-1] == 600
    assert sys.modules["ray"].is_initialized()  # workers that did not start Ray leave it running


@pytest.mark.parametrize("size", [1, 2000, 1 << 20])
def test_groups_have_the_blocks_of_a_piece_in_order(files, size):
    piece = next(pieces_of(forel.read(files["gzip"], bits=10, block_bytes=150)))
    alone, groups = list(read_piece(piece)), list(read_groups(piece, size))
    assert [p.block.labels.tolist() for group in groups for p in group if p.block is not None] == [
        p.block.labels.tolist() for p in alone if p.block is not None
    ]
    assert len(groups[0]) == 1  # learning starts after the first block
    assert len(groups) == len([p for p in alone if p.block is not None]) + 1 if size == 1 else len(groups) < len(alone)


def workers_of(process, name=b"forel.read_piece"):
    """Return the processes below a process with a task or actor: Ray names them after it."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = parent, entry.joinpath("cmdline").read_bytes()
            except (OSError, ValueError):  # it has ended
                continue

    def below(number):
        while number in found and number != process:
            number = found[number][0]
        return number == process

    return [number for number, (_, command) in found.items() if name in command and below(number)]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds processes in /proc")
def test_a_killed_worker_costs_no_row_and_no_bit(address, files, tmp_path, interpreted, monkeypatch):
    monkeypatch.setattr(ray_workers, "GROUP_BYTES", 1)
    monkeypatch.setattr(ray_workers, "MAX_WAITING", 4)  # fewer blocks than a file has
    options = {**options_of("gzip"), "block_bytes": 150}
    alone = forel.train(files["gzip"], ONE, **options)
    killed = []

    def kill(progress):
        if len(killed) < 1 + (progress.rows > 300):
            found = workers_of(os.getpid())
            killed.extend([found] if found else [])
            for number in found:
                os.kill(number, signal.SIGKILL)

    with RayWorkers(address, 2) as workers:
        together = forel.train(files["gzip"], ONE, cluster=workers, progress=kill, **options)
    assert len(killed) == 2
    assert saved(tmp_path, together) == saved(tmp_path, alone)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds processes in /proc")
def test_models_by_key_have_the_same_bytes_on_workers_of_which_some_are_killed(address, files, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "FEWEST", 60)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    options = {**options_of("csv"), "by": "city", "fallback": True, "certificate": True, "holdout": 7}
    alone = forel.train(files["csv"], ONE, **options)
    killed = []

    def kill(progress):
        if progress.rows > 300 and not killed:
            killed.extend(workers_of(os.getpid(), b"forel.learn_keys") + workers_of(os.getpid(), b"ray::IDLE"))
            for number in killed:
                os.kill(number, signal.SIGKILL)

    with RayWorkers(address, 3) as workers:
        together = forel.train(files["csv"], ONE, cluster=workers, progress=kill, **options)
    assert killed
    assert saved(tmp_path, together) == saved(tmp_path, alone)
    assert together.training.slices == alone.training.slices
    assert together.report == alone.report


def test_models_by_key_resume_on_other_workers(address, files, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "FEWEST", 60)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    options = {**options_of("csv"), "by": "city", "fallback": True, "certificate": True}
    alone = forel.train(files["csv"], ONE, **options)
    options |= {"checkpoint": tmp_path / "m.checkpoint", "checkpoint_every": 100, "resume": True}
    seen = []

    def stop(progress):
        if progress.rows > 330:
            raise InterruptedError

    with RayWorkers(address, 3) as workers, pytest.raises(InterruptedError):
        forel.train(files["csv"], ONE, cluster=workers, progress=stop, **options)
    with RayWorkers(address, 2) as workers:
        together = forel.train(files["csv"], ONE, cluster=workers, progress=seen.append, **options)
    assert 200 < seen[0].rows < 600
    assert saved(tmp_path, together) == saved(tmp_path, alone)
    assert together.training.slices == alone.training.slices


def test_bad_input_on_a_worker_raises_the_same_error_as_on_one_machine(address, files, tmp_path, interpreted):
    bad = tmp_path / "bad.vw"
    bad.write_text("1 |a b\n" * 500 + "1 |a b:oops\n" + "1 |a b\n" * 500)
    source = [*files["gzip"], str(bad), *files["gzip"]]
    with RayWorkers(address, 2) as workers:
        for cluster in (None, workers):
            with pytest.raises(forel.data.Malformed) as caught:
                forel.train(source, ONE, cluster=cluster, **options_of("vw"))
            assert str(caught.value).startswith(f"{bad}, line 501, column 8: got 'oops', expected a number")
    import ray

    while ray.available_resources().get("CPU") != 2:  # until no task is left
        time.sleep(0.1)


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_ray_dataset_is_a_table(address, files, tmp_path, interpreted):
    import pyarrow.parquet as pq
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    table = pq.read_table(files["parquet"][0])
    alone = forel.train(table, ONE, label="y", bits=10, names=True)
    for source in (ray.data.from_arrow(table), ray.data.read_parquet(files["parquet"][0])):
        trained = forel.train(source, ONE, label="y", bits=10, names=True)
        assert saved(tmp_path, trained) == saved(tmp_path, alone)


DRIVER = """
import os, signal, sys
import forel
from forel.ray import RayWorkers
from forel.learner.kernels import kernel
kernel.kernel = kernel.uncompiled_kernel
address, checkpoint, *files = sys.argv[1:]
def stop(progress):
    if progress.rows > 330:
        os.kill(os.getpid(), signal.SIGKILL)
with RayWorkers(address, 2) as workers:
    forel.train(files, forel.Settings(alpha=0.5, l1=0.1), cluster=workers, progress=stop, checkpoint=checkpoint,
                checkpoint_every=100, bits=10, block_bytes=1000)
"""


def test_a_killed_driver_resumes_from_its_checkpoint(address, files, tmp_path, interpreted):
    alone = forel.train(files["gzip"], ONE, **options_of("gzip"))
    path = tmp_path / "m.checkpoint"
    done = subprocess.run([sys.executable, "-c", DRIVER, address, path, *files["gzip"]], timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.exists()
    seen = []
    with RayWorkers(address, 2) as workers:
        together = forel.train(
            files["gzip"], ONE, cluster=workers, checkpoint=path, resume=True, progress=seen.append,
            **options_of("gzip"),
        )  # fmt: skip
    assert 200 < seen[0].rows < 600
    assert saved(tmp_path, together) == saved(tmp_path, alone)


def test_the_command_line_reads_on_a_cluster(address, files, tmp_path):
    models = []
    for extra in ([], ["--ray", address, "--workers", "2"]):
        model = tmp_path / f"{len(models)}.forel"
        command = [sys.executable, "-m", "forel", "train", *files["vw"], "--bits", "10", "--model", model, *extra]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        models.append(model.read_bytes())
    assert models[0] == models[1]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--workers", "2"], "forel: --workers: got 2, expected none without --ray"),
    (["--ray", "local", "--workers", "0"], "forel: --workers: got 0, expected a whole number of at least 1"),
])  # fmt: skip
def test_invalid_options_of_a_cluster_are_sentences(files, arguments, message):
    command = [sys.executable, "-m", "forel", "train", *files["vw"], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert message in done.stderr


SILENT = """
import sys
from forel.ray import RayWorkers
with RayWorkers(sys.argv[1], timeout=0.5):
    print("connected")
"""


def test_a_server_that_never_answers_is_an_error_after_a_time_limit():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        # Ray replaces loopback addresses by that of the machine otherwise.
        environment = {**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        done = subprocess.run([sys.executable, "-c", SILENT, address], capture_output=True, text=True, timeout=600,
                              check=False, env=environment)  # fmt: skip
    assert done.returncode == 1
    message = f"ValueError: ray: got '{address}, which does not answer (no answer for 0.5 seconds)', expected local, or"
    assert message in done.stderr
    assert "SIGTERM" not in done.stderr
    assert not done.stdout


def test_a_failed_start_leaves_no_process(monkeypatch):
    import ray

    started = []

    def fail(*_, **__):
        # As Ray does whose raylet is killed: a server and a process below it are left.
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=0)"
        started.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE))
        raise Exception("the current node timed out during startup")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ValueError, match="timed out during startup"), RayWorkers("local", 1):
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)


def test_errors_within_the_time_limit_are_raised():
    with pytest.raises(KeyError):
        run_within(60, {}.popitem)
    with pytest.raises(ValueError, match="timeout: got 0, expected a positive number"):
        RayWorkers("auto", timeout=0)


def test_workers_that_are_not_started_are_refused(files):
    with pytest.raises(ValueError, match="cluster: got 'workers that are not started'"):
        forel.train(files["vw"], ONE, cluster=RayWorkers("local", 2))


@pytest.mark.parametrize("found", [None, ModuleType("ray")])
def test_without_ray_the_command_that_installs_it_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", found)  # an empty module is what a folder named ray is imported as
    with pytest.raises(
        ValueError, match=r"ray: got 'an environment without Ray', expected .*pip install 'forel\[ray\]'"
    ):
        import_ray()

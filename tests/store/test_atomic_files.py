"""A model file is replaced atomically, and errors name a remedy."""

import errno
import os
import subprocess
import sys

import pytest

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.training.model import load, save

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")  # the content of a file does not depend on compiling


@pytest.mark.parametrize("where", ["replace", "chmod", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_keeps_the_old_file_and_leaves_no_temporary_file(where, number, tmp_path, monkeypatch):
    save(tmp_path / "m", Learner(2, Settings()), {"old": True})
    before = (tmp_path / "m").read_bytes()

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(OSError, match=f"m: could not be written .{os.strerror(number)}.; an existing file") as e:
        save(tmp_path / "m", Learner(2, Settings()), {"old": False})
    assert e.value.errno == number
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


FULL = """
import resource, signal, sys
import numpy as np
from forel.store import ServingModel
from forel.training.model import save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
slots, weights = np.arange(10**5, dtype=np.uint32), np.ones((10**5, 1), np.float32)
big = ServingModel(10**6, slots, weights, np.ones(1, "f4"), "identity", {})
try:
    save(sys.argv[1], big)
except OSError as error:
    print(error)
"""


def test_a_full_disk_raises_an_error_and_keeps_the_old_file(tmp_path):
    save(tmp_path / "m", Learner(2, Settings()))
    before = (tmp_path / "m").read_bytes()
    command = [sys.executable, "-c", FULL, tmp_path / "m"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "could not be written (File too large); an existing file is unchanged; free some space" in done.stdout
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_the_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    happened = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: happened.append("sync"))
    monkeypatch.setattr("pathlib.os.replace", lambda a, b: (happened.append("rename"), replace(a, b)))
    save(tmp_path / "m", Learner(2, Settings()))
    assert happened == ["sync", "rename", "sync"]


def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ValueError, match="got a folder or a device, expected the name of a file"):
            save(tmp_path / name, Learner(2, Settings()))
    with pytest.raises(FileNotFoundError, match="create the folder first"):
        save(tmp_path / "no" / "m", Learner(2, Settings()))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_raises_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="choose a folder that you may write to"):
        save(tmp_path / "m", Learner(2, Settings()))


def test_symbolic_links_and_permissions_are_preserved(tmp_path):
    save(tmp_path / "m", Learner(2, Settings()))
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "m").stat().st_mode == plain.stat().st_mode
    (tmp_path / "m").chmod(0o640)
    (tmp_path / "link").symlink_to("m")
    save(tmp_path / "link", Learner(3, Settings()))
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "m").learner.features == 3
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640

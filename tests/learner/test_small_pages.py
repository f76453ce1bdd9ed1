"""Wide records are in small pages, so that the first rows do not commit the memory of all coordinates."""

import mmap
import pathlib

import numpy as np
import pytest

from forel.learner import state as aligned
from forel.learner.settings import Settings
from forel.learner.state import State, aligned_zeros

FLOAT, WIDE, SMAPS = np.dtype(np.float32), 256, pathlib.Path("/proc/self/smaps")
SETTINGS = Settings(alpha=(0.1, 0.3))
linux = pytest.mark.skipif(
    not hasattr(mmap, "MADV_NOHUGEPAGE") or not pathlib.Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="needs huge pages of Linux",
)


def without_huge_pages(array):
    """Return whether the system has been told not to use huge pages for the mapping of an array."""
    inside = False
    for line in SMAPS.read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            first, last = (int(place, 16) for place in words[0].split("-"))
            inside = first <= array.ctypes.data < last
        elif inside and words[0] == "VmFlags:":
            return "nh" in words
    return False


@linux
def test_large_arrays_are_in_small_pages(monkeypatch):
    monkeypatch.setattr(aligned, "LARGE", 1 << 16)
    assert without_huge_pages(aligned_zeros(50_000, FLOAT))
    assert not without_huge_pages(aligned_zeros(10_000, FLOAT))


@linux
@pytest.mark.parametrize(("record", "small"), [(1, False), (WIDE - 1, False), (WIDE, True), (640, True)])
def test_zeros_of_wide_records_are_in_small_pages(record, small, monkeypatch):
    monkeypatch.setattr(aligned, "SMALL", 1 << 16)
    zeros = aligned_zeros(50_000, FLOAT, record)
    assert (zeros.size, zeros.dtype, zeros.any(), zeros.ctypes.data % 64) == (50_000, FLOAT, False, 0)
    zeros[:] = 1
    assert zeros.sum() == 50_000
    assert without_huge_pages(zeros) is small


@linux
def test_records_of_many_lanes_are_wide_and_small_states_are_not_mapped(monkeypatch):
    assert not without_huge_pages(State(100, SETTINGS, 2 * 64).records)
    monkeypatch.setattr(aligned, "SMALL", 1 << 16)
    assert without_huge_pages(State(100, SETTINGS, 2 * 64).records)
    assert not without_huge_pages(State(100_000, SETTINGS, 2).records)


@linux
def test_memory_that_cannot_be_mapped_is_a_memory_error(monkeypatch):
    def refused(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(aligned, "SMALL", 1 << 16)
    monkeypatch.setattr(mmap, "mmap", refused)
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        aligned_zeros(50_000, FLOAT, WIDE)
    with pytest.raises(MemoryError, match="in 128 lanes, which need"):
        State(100, SETTINGS, 128)

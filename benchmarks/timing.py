"""Timing in turns: every side runs once per turn, so that a slow phase of the machine affects all sides alike."""

import os
import resource
import statistics
import subprocess
import sys
import time


def time_in_turns(runs, repeats, clock=time.perf_counter):
    """Seconds of each run in each turn; a run is a pair (prepare, timed), of which only the second is timed."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats):
        for name, (prepare, timed) in runs.items():
            prepared = prepare()
            start = clock()
            timed(prepared)
            seconds[name].append(clock() - start)
    return seconds


def without_preparation(run):
    """Pair of (prepare, timed) for a function without arguments."""
    return lambda: None, lambda _: run()


def medians(runs, repeats, clock=time.perf_counter):
    """Median seconds of each run, all timed in turns."""
    return {name: statistics.median(seconds) for name, seconds in time_in_turns(runs, repeats, clock).items()}


def median_ratio(seconds, base):
    """Median over turns of ``seconds / base``."""
    return statistics.median(mine / theirs for mine, theirs in zip(seconds, base, strict=True))


def run_process(name, command):
    """Run a command; return the finished process, its wall-clock seconds and its CPU seconds."""
    # It finds bytecode of modules, as that of an installed package does.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return done, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

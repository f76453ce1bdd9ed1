"""Run all fuzzers in turn, each in a separate process: ``python -m tests.fuzz --seconds 60 --seed 7``."""

import argparse
import pathlib
import subprocess
import sys
import time

from tests.fuzz import ROOT


def fuzzers():
    """Return the names of all fuzzers: the modules here that can be run."""
    here = pathlib.Path(__file__).parent
    return sorted(path.stem for path in here.glob("[!_]*.py") if "def main(" in path.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of fuzzers; all if none are given")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each")
    parser.add_argument("--seed", type=int, help="a random one by default")
    options = parser.parse_args()
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    failed = []
    for name in options.names or fuzzers():
        print(f"{name}, {options.seconds:g} seconds, --seed {seed}", flush=True)
        command = [sys.executable, "-X", "faulthandler", "-m", f"tests.fuzz.{name}"]
        done = subprocess.run([*command, "--seconds", str(options.seconds), "--seed", str(seed)], cwd=ROOT, check=False)
        failed += [name] if done.returncode else []
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}, with --seed {seed}")


if __name__ == "__main__":
    main()

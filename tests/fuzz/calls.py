"""Millions of calls of river models by four threads: answers are those of one thread, rounds all counted, memory level.

``python -m tests.fuzz.calls --calls 10000000`` makes that many calls, four fifths of them predictions; ``--seconds``
stops earlier.
"""

import argparse
import random
import resource
import sys
import time

from tests.fuzz.threads import SWITCH, THREADS, classifier, dicts, together

CALLS = 10_000_000
ROWS = 500  # for each thread and turn: one is learned for every four that are predicted
MODELS = ({"alpha": None}, {}, {"bits": 8}, {"classes": 3})  # the default experts, one setting, hashed names, classes
LEVEL = 64 << 20  # bytes: the allocator's own variation is a few MB


def resident() -> int:
    """Return the largest memory that this process has had, in bytes."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def turn(rng, frozen, growing) -> int:
    """Let four threads predict with one model and learn with another, and return how many calls they made."""
    rows = dicts(rng, ROWS)
    answers = [frozen.predict_proba_one(x) for x in rows]
    labels, before = [f"class {rng.randrange(2)}" for _ in rows], growing._learner.state.rounds

    def work(start):
        for k in range(start, start + ROWS):
            k %= ROWS
            assert frozen.predict_proba_one(rows[k]) == answers[k]
            if k % 4 == 0:
                growing.learn_one(rows[k], labels[k])

    together(*[lambda start=start: work(start) for start in range(0, ROWS, ROWS // THREADS)])
    learned = THREADS * len(range(0, ROWS, 4))
    assert growing._learner.state.rounds == before + learned
    return THREADS * ROWS + learned


def run(seconds: float, seed: int = 0, calls: int = CALLS) -> int:
    """Make calls until there are ``calls``, or for some seconds, and return and print how many there were."""
    rng, until, made, warm = random.Random(seed), time.monotonic() + seconds, 0, 0
    interval = sys.getswitchinterval()
    pairs = [[classifier(rng, dicts(rng, 50), **options) for _ in range(2)] for options in MODELS]
    sys.setswitchinterval(SWITCH)
    try:
        while made < calls and (time.monotonic() < until or not made):
            made += sum(turn(rng, *pair) for pair in pairs)
            warm = warm or resident()
    finally:
        sys.setswitchinterval(interval)
    grown = resident() - warm
    assert grown < LEVEL, f"{grown} bytes more than after the first turn"
    print(f"calls, seed {seed}: {made:,} calls by {THREADS} threads, {grown / 2**20:.1f} MB more memory at the end")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    run(options.seconds, options.seed, options.calls)


if __name__ == "__main__":
    main()

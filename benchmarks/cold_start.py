"""Compile time of the README's commands: from a file to a model, predictions and a serving file.

Input: 50,000 generated clicks in a temporary folder. Every turn starts with an empty code cache, runs the commands, and
runs them again, with all code cached; each command is a separate process.
Output: medians of processor seconds, with an empty cache, with a full one, and the difference, which is compiling.
With a wheel of ``make build`` installed, code comes from the package.
"""

import argparse
import os
import statistics
import sys
import tempfile

from timing import run_process

COMMANDS = (
    "generate ctr --rows 50000 --output clicks.vw",
    "train clicks.vw --model m.forel --certificate",
    "predict clicks.vw --model m.forel --output predictions.txt",
    "convert m.forel --serving --output small.forel",
)


def processor_seconds():
    """Processor seconds of each command."""
    return [run_process("forel", [sys.executable, "-m", "forel", *command.split()])[2] for command in COMMANDS]


def main():
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    empty, full = [], []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as cache:
            os.chdir(data)
            os.environ["FOREL_CACHE"] = cache
            empty.append(processor_seconds())
            full.append(processor_seconds())
            os.chdir(os.path.dirname(data))
    print(f"\nprocessor seconds, medians of {options.repeats}: empty code cache, full one, difference\n")
    for k, command in enumerate(COMMANDS):
        before, after = ([each[k] for each in runs] for runs in (empty, full))
        print(f"{'forel ' + command.split()[0]:16} {statistics.median(before):6.2f} {statistics.median(after):6.2f}")
    compiling = [sum(cold) - sum(warm) for cold, warm in zip(empty, full, strict=True)]
    total = [statistics.median(map(sum, runs)) for runs in (empty, full)]
    print(f"{'all commands':16} {total[0]:6.2f} {total[1]:6.2f} {statistics.median(compiling):6.2f}")
    print(f"differences of all turns: {', '.join(f'{each:.2f}' for each in sorted(compiling))}")


if __name__ == "__main__":
    main()

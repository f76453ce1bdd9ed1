"""Measure every claim and write the page: ``python -m reproduce docs``."""

import pathlib
import sys
import time

from reproduce.additive import additive
from reproduce.bounds import bounds
from reproduce.claim import MissingData
from reproduce.figure_4 import figure_4
from reproduce.mixing import mixing
from reproduce.offset import offset
from reproduce.page import write
from reproduce.progressive import progressive
from reproduce.rates import rates
from reproduce.sparse_models import sparse_models

CLAIMS = (figure_4, sparse_models, rates, progressive, mixing, additive, offset, bounds)


def main(folder: str) -> int:
    """Return 0 when all claims hold, 1 when one does not, 2 when data are missing."""
    claims = []
    for measure in CLAIMS:
        start = time.perf_counter()
        try:
            claim = measure()
        except MissingData as problem:
            print(f"reproduce: {measure.__name__} {problem}; nothing was written", file=sys.stderr)
            return 2
        seconds = time.perf_counter() - start
        print(
            f"{'holds' if claim.holds else 'FAILS'}  {claim.title} ({seconds:.1f} s)\n       {claim.measured}",
            flush=True,
        )
        claims.append(claim)
    print(f"\nThe page is {write(claims, pathlib.Path(folder))}")
    return 0 if all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("reproduce: got no folder, expected one for the page: python -m reproduce docs")
    sys.exit(main(sys.argv[1]))

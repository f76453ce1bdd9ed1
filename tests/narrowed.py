"""Environment variables that restrict numpy and numba to the baseline instruction set of the architecture.

``make test`` runs the tests of generated data and of the documents a second time with them: their output must not
depend on optional CPU features such as AVX-512.

    env $(python tests/narrowed.py) pytest tests/data/test_clicks.py
"""

import os

import numpy as np

__all__ = ["narrowed"]


def narrowed() -> dict[str, str]:
    """Variables that disable the CPU features detected by numpy and those that numba would detect."""
    # numpy rejects features that this processor does not have, so only detected ones are listed.
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    off = [*os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split(","), *found]
    return {
        "NPY_DISABLE_CPU_FEATURES": ",".join(filter(None, off)),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
    }


if __name__ == "__main__":
    print(*(f"{name}={value}" for name, value in narrowed().items()))

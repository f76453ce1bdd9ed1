"""An environment in which numpy and numba use only the instructions that every processor of this kind has.

``make test`` runs the generator and the documents in it once more: what they show must not depend on whether a
processor has wider registers.

    env $(python tests/narrowed.py) pytest tests/data/test_clicks.py
"""

import os

import numpy as np

__all__ = ["narrowed"]


def narrowed() -> dict[str, str]:
    """Return the variables that switch off what numpy found beyond its baseline, and what numba would look for."""
    # numpy refuses names of features that this processor does not have.
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    off = [*os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split(","), *found]
    return {
        "NPY_DISABLE_CPU_FEATURES": ",".join(filter(None, off)),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
    }


if __name__ == "__main__":
    print(*(f"{name}={value}" for name, value in narrowed().items()))

"""Settings for all tests: one hypothesis profile without random seeds, and little garbage collection."""

import gc
import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "forel", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("forel")

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # tests use no network

# Modules whose classes extend those of an extra are read only where it is installed. Type checkers read the examples.
collect_ignore = ["tests/project/typed_examples.py"] + [
    path
    for name, path in (("optax", "src/forel/optax/transformations.py"), ("torch", "src/forel/torch/optimizers.py"))
    if importlib.util.find_spec(name) is None
]

# What is printed does not depend on the terminal that tests are started from.
for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"):
    os.environ.pop(name, None)

# Compiling makes many objects that live on. With the usual thresholds the collector walks through thousands of tests
# and all imported libraries again and again, which takes a fifth of the time of compiling a kernel.
gc.set_threshold(100_000, 50, 100)


@pytest.fixture
def interpreted(monkeypatch):
    """Run kernels uncompiled, from the same source: for few rows that takes less time than compiling."""
    from forel.learner.kernels import kernel

    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)


@pytest.fixture(autouse=True)
def _examples_of_docstrings(request):
    """Run the examples of docstrings uncompiled: each would compile a kernel or two for a handful of rows."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.path.suffix == ".py":
        request.getfixturevalue("interpreted")


def pytest_collection_finish() -> None:
    """Exempt what lives as long as the process from garbage collection."""
    gc.collect()
    gc.freeze()

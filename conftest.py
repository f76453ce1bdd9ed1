"""Settings for all tests: one hypothesis profile without random seeds, and little garbage collection."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "forel", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("forel")

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # tests use no network

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


# The files that take longest, in that order. `make test` gives each file to one worker, so that a kernel is compiled by
# the worker that needs it; a long file that starts last would leave the other workers without work.
LONGEST = (
    "tests/interfaces/test_cluster.py",
    "tests/interfaces/test_estimators.py",
    "tests/learner/test_threads.py",
    "tests/project/test_docs.py",
    "tests/interfaces/test_river.py",
    "tests/learner/test_linear.py",
    "tests/project/test_project.py",
    "tests/learner/test_extremes.py",
    "tests/jit/test_code_cache.py",
    "tests/theory/test_argmin.py",
    "tests/theory/test_algorithms.py",
    "tests/learner/test_sentences.py",
    "tests/training/test_shards.py",
    "tests/learner/test_guarantees.py",
    "tests/training/test_resume.py",
    "tests/project/test_reproduce.py",
    "tests/project/test_fuzz.py",
    "tests/theory/test_convex.py",
    "tests/interfaces/test_river_files.py",
    "tests/training/test_train.py",
    "tests/learner/test_mixture.py",
    "tests/learner/test_intrinsics.py",
    "tests/data/test_lines.py",
    "tests/learner/test_float32.py",
    "tests/theory/test_equivalences.py",
    "tests/interfaces/test_hostile_objects.py",
    "tests/theory/test_dual.py",
    "tests/theory/test_survey.py",
    "tests/interfaces/test_river_mixture.py",
    "tests/data/test_tables.py",
    "tests/training/test_by_key.py",
    "tests/data/test_csv.py",
    "tests/data/test_sources.py",
    "docs/guide/cookbook.md",
    "docs/guide/from_river.md",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Exempt what lives as long as the process from garbage collection."""
    gc.collect()
    gc.freeze()

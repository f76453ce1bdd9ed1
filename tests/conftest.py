"""Settings for all tests: one hypothesis profile, the same examples in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "forel", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("forel")

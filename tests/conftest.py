"""Settings of all tests: random examples have no deadline on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "arenagen", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("arenagen")

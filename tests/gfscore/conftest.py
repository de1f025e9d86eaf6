"""Settings of the property tests: the same examples in every run, nothing left on disk."""

from hypothesis import settings

settings.register_profile("gfscore", max_examples=60, deadline=None, derandomize=True, database=None)
settings.load_profile("gfscore")

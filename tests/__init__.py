"""All tests. Those with Hypothesis follow one of the profiles."""

from importlib.util import find_spec

# What only counts or looks at links runs without Hypothesis.
if find_spec("hypothesis") is not None:
    import tests.profiles  # noqa: F401

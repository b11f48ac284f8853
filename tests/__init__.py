"""All tests. Those with Hypothesis follow one of the profiles."""

from importlib.util import find_spec

# The tools that count tests and check links run without Hypothesis.
if find_spec("hypothesis") is not None:
    import tests.profiles  # noqa: F401

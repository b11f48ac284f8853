"""The effort of Hypothesis: ``HYPOTHESIS_PROFILE`` is ``quick`` (the default), ``thorough`` or
``mutation``.

The package of all tests imports this module. No profile has a deadline, because none of these tests
is about speed.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors]

settings.register_profile(
    "quick", deadline=None, max_examples=100, database=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "thorough", deadline=None, max_examples=2_000, database=None, suppress_health_check=_SLOW
)
# For the mutation tester: reproducible, and without minimizing failures.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=30,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=_SLOW,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

"""The effort of Hypothesis: ``HYPOTHESIS_PROFILE`` is ``quick`` (the default), ``thorough`` or
``mutation``.

The package of all tests imports this module. No profile has a deadline, because none of these tests
is about speed.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors]
# One failure is shown with its example; of several, trial prints only how many they are.
_COMMON = settings(
    deadline=None, database=None, suppress_health_check=_SLOW, report_multiple_bugs=False
)

settings.register_profile("quick", _COMMON, max_examples=100)
settings.register_profile("thorough", _COMMON, max_examples=2_000)
# For the mutation tester: reproducible, and without minimizing failures.
settings.register_profile(
    "mutation",
    _COMMON,
    max_examples=30,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

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
_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": _SLOW,
    "report_multiple_bugs": False,
}

settings.register_profile("quick", max_examples=100, **_COMMON)
settings.register_profile("thorough", max_examples=2_000, **_COMMON)
# For the mutation tester: reproducible, and without minimizing failures.
settings.register_profile(
    "mutation",
    max_examples=30,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    **_COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

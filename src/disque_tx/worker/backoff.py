"""How long to wait before the next attempt."""

from __future__ import annotations

from random import Random

import attrs

_EXPONENT_MAX = 64


@attrs.frozen
class Backoff:
    """``first_s``, then ``factor`` times longer each time, ``max_s`` at most; the part ``jitter``
    (0 to 1) of it is left to chance, so that jobs that failed together do not come back together.
    """

    first_s: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    max_s: float = attrs.field(default=300.0, validator=attrs.validators.ge(0))
    jitter: float = attrs.field(
        default=0.2, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )

    def wait_s(self, failures: int, random: Random) -> float:
        """The wait after so many failures, from 1 on."""
        exponent = min(max(failures, 1) - 1, _EXPONENT_MAX)
        whole_s = min(self.first_s * self.factor**exponent, self.max_s)
        return whole_s * (1 - self.jitter * random.random())

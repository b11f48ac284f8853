"""What the brokers of all frameworks say about the jobs they add."""

from __future__ import annotations

import math
from typing import Final

import attrs

from disque_tx.client.options import AddOptions
from disque_tx.messages.limits import REPLICATE_MAX, SECONDS_MAX

#: Priorities are digits: 9 is the most urgent, 0 is the queue itself.
PRIORITY_MAX: Final = 9
#: What comes before the digit in the name of a queue.
PRIORITY_MARK: Final = "\x06"


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """The value of a setting.

    :raises ValueError: it is not a whole number, or is out of its range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is a whole number from {least} to {most}, not {value!r}.")
    return value


@attrs.frozen
class JobTerms:
    """``retry_s``: how long a worker may be gone until its jobs are delivered to others. ``ttl_s``:
    how long a job may wait and be worked on, beyond its delay. ``replicate``: how many nodes hold a
    copy; ``None``: the nodes' default.

    :raises ValueError: for a number that is out of its range.
    """

    retry_s: int = 60
    ttl_s: int = 10 * 86_400
    replicate: int | None = None

    def __attrs_post_init__(self) -> None:
        for name, value, most in (
            ("retry_s", self.retry_s, SECONDS_MAX),
            ("ttl_s", self.ttl_s, SECONDS_MAX),
            ("replicate", 1 if self.replicate is None else self.replicate, REPLICATE_MAX),
        ):
            whole_number(name, value, 1, most)

    def options(self, delay_s: float = 0, ttl_s: float | None = None) -> AddOptions:
        """How a job is added that may be delivered after ``delay_s``: nodes count whole seconds, so
        it is rounded up. ``ttl_s``: of this job."""
        whole_s = min(math.ceil(max(0.0, delay_s)), SECONDS_MAX - 1)
        life_s = self.ttl_s if ttl_s is None else max(1, math.ceil(ttl_s))
        return AddOptions(
            replicate=self.replicate,
            delay_s=whole_s or None,
            retry_s=self.retry_s,
            ttl_s=min(SECONDS_MAX, whole_s + life_s),
        )


def names_by_priority(name: str, most: int = PRIORITY_MAX) -> list[str]:
    """The queues in which the jobs of a queue are, the most urgent first; ``most``: the greatest
    priority in use."""
    return [priority_name(name, step) for step in range(most, -1, -1)]


def priority_name(name: str, priority: int) -> str:
    """The queue for jobs of this priority; what is out of range is taken as the nearest one."""
    step = max(0, min(PRIORITY_MAX, priority))
    return f"{name}{PRIORITY_MARK}{step}" if step else name

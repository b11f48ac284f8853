"""When failed jobs are tried again, and when and where they are given up."""

from __future__ import annotations

from random import Random
from typing import Final

import attrs

from disque_tx.client.options import AddOptions
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.worker.tasks.results import RESULT_RETRY_S

#: As names come from nodes, and go back.
_ESCAPES: Final = "surrogateescape"
_EXPONENT_MAX: Final = 64
_LETTER_RETRY_S: Final = 300


def cut_name(queue: str) -> str:
    """The longest part of a name that fits a queue's name, cut as nodes cut dead-letter queues."""
    return queue.encode("utf-8", _ESCAPES)[:QUEUE_BYTES_MAX].decode("utf-8", _ESCAPES)


@attrs.frozen
class Backoff:
    """How long to wait: ``first_s``, then ``factor`` times longer each time, ``max_s`` at most.
    Up to the part ``jitter`` (0 to 1) of it is taken off at random, so that jobs that failed
    together are not delivered together.
    """

    first_s: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    max_s: float = attrs.field(default=300.0, validator=attrs.validators.ge(0))
    jitter: float = attrs.field(
        default=0.2, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )

    def wait_s(self, failures: int, random: Random) -> float:
        """The wait after this many failures, from 1 on."""
        exponent = min(max(failures, 1) - 1, _EXPONENT_MAX)
        whole_s = min(self.first_s * self.factor**exponent, self.max_s)
        return whole_s * (1 - self.jitter * random.random())


@attrs.frozen
class Policy:
    """When a failing job becomes a dead letter, and in which queue.

    ``retries_max``: how many nacks and additional deliveries a job may have. ``dead_queue``: the
    queue of dead letters; ``{queue}`` stands for the name of the job's queue. ``letter_ttl_s``,
    ``result_ttl_s``: TTL of letters and results. ``replicate``: how many copies of them, ``None``:
    the node's default. ``waiting_max``: how many failed jobs are held during their backoff.
    """

    retries_max: int = attrs.field(default=5, validator=attrs.validators.ge(0))
    dead_queue: str = "dead:{queue}"
    letter_ttl_s: int = attrs.field(default=30 * 86400, validator=attrs.validators.gt(0))
    result_ttl_s: int = attrs.field(default=3600, validator=attrs.validators.gt(0))
    replicate: int | None = None
    waiting_max: int = attrs.field(default=1000, validator=attrs.validators.ge(0))
    backoff: Backoff = attrs.field(factory=Backoff)

    def dead_queue_of(self, queue: str) -> str:
        """The queue for dead letters of this queue."""
        return cut_name(self.dead_queue.replace("{queue}", queue))

    @property
    def letter_options(self) -> AddOptions:
        """Options for adding dead letters."""
        return AddOptions(
            retry_s=_LETTER_RETRY_S, ttl_s=self.letter_ttl_s, replicate=self.replicate
        )

    @property
    def result_options(self) -> AddOptions:
        """Options for adding results."""
        return AddOptions(retry_s=RESULT_RETRY_S, ttl_s=self.result_ttl_s, replicate=self.replicate)

"""Adds jobs to five queues for some seconds: ``python producer.py ADDRESSES SECONDS``."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from typing import Final

import attrs

from disque_tx import Disque

_JOBS_PER_S: Final = 60


@attrs.frozen
class Kind:
    """Jobs of a queue. ``weight``: how many there are, beside the others."""

    queue: str
    weight: int
    retry_s: int
    ttl_s: int = 3600


#: Nobody serves ``reports``: its jobs expire.
KINDS: Final = (
    Kind("mail", 60, retry_s=30),
    Kind("orders", 20, retry_s=20),
    Kind("thumbnails", 10, retry_s=1),
    Kind("imports", 5, retry_s=10),
    Kind("reports", 5, retry_s=10, ttl_s=6),
)


def bodies(kind: Kind, chance: random.Random) -> Iterator[bytes]:
    """Bodies of its jobs, one after the other."""
    number = 0
    while True:
        word = b"broken" if chance.random() < 0.1 else kind.queue.encode()
        yield b"%b %d %b" % (word, number, b"." * int(chance.expovariate(1 / 200)))
        number += 1


def main(addresses: str, seconds: float) -> None:
    """Add jobs until time is up."""
    chance = random.Random()
    made = {kind.queue: bodies(kind, chance) for kind in KINDS}
    weights = [kind.weight for kind in KINDS]
    end_s = time.monotonic() + seconds
    with Disque(addresses.split(",")) as client:
        while time.monotonic() < end_s:
            (kind,) = chance.choices(KINDS, weights)
            client.add_job(
                kind.queue, next(made[kind.queue]), retry_s=kind.retry_s, ttl_s=kind.ttl_s
            )
            time.sleep(chance.expovariate(_JOBS_PER_S))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))

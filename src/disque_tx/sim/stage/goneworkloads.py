"""Workloads in which nodes are gone for good, and new ones come in their places."""

from __future__ import annotations

from typing import Final

import attrs

from disque_tx.sim.machines.names import LIES
from disque_tx.sim.stage.workload import DEAD_QUEUE, Workload

LOSSES: Final[dict[str, Workload]] = {
    "losses": Workload(
        replicate=(2, 3),
        retry_s=(2, 4, 8),
        delay_s=(0, 0, 0, 0, 5, 90),
        asynchronous=0.0,
        actions=("ack",) * 8 + ("ack-elsewhere", "nack", "ignore", "working"),
        losses=True,
        faults=("one_lost",),
    ),
    "losses-and-more": Workload(
        replicate=(2, 3),
        retry_s=(2, 4, 8),
        delay_s=(0, 0, 0, 5, 90),
        asynchronous=0.0,
        leaves=True,
        losses=True,
        faults=("one_lost", "reset", "stall", "slow_link", "one_away"),
    ),
}


RESTARTS: Final[dict[str, Workload]] = {
    "restarts": attrs.evolve(LOSSES["losses"], faults=("one_started_empty",)),
    "restarts-and-more": attrs.evolve(
        LOSSES["losses-and-more"],
        leaves=False,
        faults=("one_started_empty", *LOSSES["losses-and-more"].faults),
    ),
}


EVACUATIONS: Final[dict[str, Workload]] = {
    "evacuations": Workload(
        replicate=(1, 1, 2, 3),
        retry_s=(0, 2, 4, 8),
        delay_s=(0, 0, 0, 0, 5, 90),
        asynchronous=0.0,
        actions=("ack",) * 8 + ("ack-elsewhere", "nack", "ignore", "working"),
        evacuates=True,
        faults=("one_evacuated", "two_evacuated"),
    ),
    "evacuations-and-more": Workload(
        replicate=(1, 2, 3),
        retry_s=(2, 4, 8),
        delay_s=(0, 0, 0, 5, 90),
        actions=("ack",) * 8 + ("ack-elsewhere", "nack", "ignore", "working"),
        policies=(
            (b"*", b"retry-delay", b"3"),
            (b"*", b"max-deliveries", b"4"),
            (b"*", b"dead-queue", DEAD_QUEUE),
        ),
        evacuates=True,
        faults=("one_evacuated", "two_evacuated", "reset", "stall", "slow_link", "one_away"),
    ),
    "evacuations-with-keys": Workload(
        replicate=(1, 2, 3),
        retry_s=(2, 4, 8),
        delay_s=(0, 0, 5),
        asynchronous=0.0,
        keys=True,
        evacuates=True,
        faults=("one_evacuated", "reset"),
    ),
}


_MIXED_LOSSES: Final = attrs.evolve(LOSSES["losses"], mixed=True, faults=("one_lost_of_mixed",))
MIXED: Final[dict[str, Workload]] = {
    "losses-mixed": _MIXED_LOSSES,
    "losses-mixed-and-more": attrs.evolve(
        # An original that comes back without its jobs is not asked what it has lost.
        _MIXED_LOSSES,
        faults=("one_lost_of_mixed", "reset", "stall", "slow_link"),
    ),
}


HOSTS: Final[dict[str, Workload]] = {
    "losses-of-hosts": attrs.evolve(LOSSES["losses"], processes=True, faults=("host_lost",)),
    "losses-of-hosts-and-more": attrs.evolve(
        LOSSES["losses"],
        processes=True,
        faults=("host_lost", "one_lost", "reset", "stall", "slow_link"),
    ),
}

KEPT: Final[dict[str, Workload]] = {
    "losses-with-ttl": attrs.evolve(
        LOSSES["losses"],
        ttl_s=(25, 40, 7_200),
        actions=("ack",) * 4 + ("nack", "ignore", "ignore"),
    ),
    "losses-with-letters": attrs.evolve(
        LOSSES["losses"],
        retry_s=(2, 4),
        actions=("ack", "ack", "nack", "nack", "nack-later", "ignore"),
        policies=(
            (b"*", b"retry-delay", b"1"),
            (b"*", b"max-deliveries", b"6"),
            (b"*", b"dead-queue", DEAD_QUEUE),
        ),
    ),
    "losses-with-keys": attrs.evolve(LOSSES["losses"], delay_s=(0, 0, 5), keys=True),
}

_LIES: Final = tuple(f"name_{lie}" for lie in LIES)
NAMES: Final[dict[str, Workload]] = {
    "names": Workload(
        retry_s=(2, 4, 8),
        delay_s=(0, 0, 0, 5),
        actions=("ack",) * 8 + ("ack-elsewhere", "nack", "ignore"),
        logs=True,
        named=True,
        faults=("readdressed", "one_lost", "parted", "kill", "restart", *_LIES),
    ),
    "names-readdressed": Workload(
        retry_s=(2, 4, 8), logs=True, named=True, faults=("readdressed", *_LIES)
    ),
    "names-losses": attrs.evolve(
        LOSSES["losses"], named=True, faults=("one_lost", "one_replaced", *_LIES)
    ),
    "names-parted": attrs.evolve(
        LOSSES["losses"], named=True, faults=("one_lost", "parted", "reset", *_LIES)
    ),
}

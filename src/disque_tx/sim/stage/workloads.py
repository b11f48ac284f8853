"""The workloads by name.

Those of one group are dealt to the seeds of that group.
"""

from __future__ import annotations

from typing import Final

import attrs

from disque_tx.sim.stage.goneworkloads import (
    EVACUATIONS,
    HOSTS,
    KEPT,
    LOSSES,
    MIXED,
    NAMES,
    RESTARTS,
)
from disque_tx.sim.stage.workload import DEAD_QUEUE, Workload

WORKLOADS: Final[dict[str, Workload]] = {
    "total-queue": Workload(),
    "at-most-once": Workload(
        retry_s=(0,),
        replicate=(1,),
        asynchronous=0.3,
        actions=("ack", "nack", "working", "enqueue", "ignore"),
    ),
    "once-moved": Workload(
        retry_s=(0,), replicate=(1,), apart=True, count=(1, 10), nohang=0.1, leaves=True
    ),
    "ttl-and-delay": Workload(
        retry_s=(1, 3), ttl_s=(2, 5, 9, 7_200), delay_s=(0, 1, 4), asynchronous=0.3
    ),
    "once-delayed": Workload(retry_s=(0,), replicate=(1,), delay_s=(0, 1, 3), apart=True),
    "nack-and-working": Workload(
        retry_s=(1, 2), actions=("ack", "nack", "working", "ignore", "fastack"), count=(1, 3)
    ),
    "by-hand": Workload(
        retry_s=(1, 2, 4),
        actions=("ack", "ack", "nack", "enqueue", "dequeue", "show", "ignore"),
        count=(1, 5, 20),
        by_hand=True,
    ),
    "pause": Workload(pauses=True, asynchronous=0.2),
    "leaving": Workload(leaves=True, asynchronous=0.3, retry_s=(0, 1, 3)),
    "log": Workload(
        logs=True, delay_s=(0, 0, 1, 4), replicate=(1, 2), actions=("ack", "ack", "nack", "deljob")
    ),
    "federation": Workload(apart=True, count=(1, 5, 20), nohang=0.1, replicate=(1, 1, 2)),
    "foreign-acks": Workload(apart=True, actions=("ack-elsewhere", "ack", "fastack-elsewhere")),
}


_REDELIVERY: Final[dict[str, Workload]] = {
    "backoff": Workload(
        retry_s=(1, 2, 4),
        actions=("ack", "ack", "nack", "nack", "nack-later", "nack-later", "ignore"),
        count=(1, 3),
        policies=((b"a", b"retry-delay", b"1"), (b"b", b"retry-delay", b"0.5")),
    ),
    "dead-letters": Workload(
        retry_s=(0, 1, 2),
        actions=("ack", "nack", "nack", "nack-later", "ignore"),
        asynchronous=0.2,
        policies=(
            (b"*", b"max-deliveries", b"3"),
            (b"*", b"dead-queue", DEAD_QUEUE),
            (b"b", b"retry-delay", b"0.3"),
            (b"b", b"retry-on-timeout", b"yes"),
        ),
    ),
    "moves": Workload(
        retry_s=(0, 2, 4),
        actions=("ack", "ack", "nack", "nack-later", "ignore"),
        count=(1, 3),
        moves=True,
    ),
}


_KEYS: Final[dict[str, Workload]] = {
    "keys": Workload(replicate=(2, 3), asynchronous=0.0, keys=True, faults=("one_down",)),
    "keys-parted": Workload(replicate=(1, 2), asynchronous=0.0, keys=True, faults=("partition",)),
    "keys-disturbed": Workload(
        replicate=(1, 2, 3),
        retry_s=(0, 1, 2),
        keys=True,
        faults=("one_down", "reset", "stall", "slow_link", "message_loss"),
    ),
}
_REUSED_KEYS: Final[dict[str, Workload]] = {
    "keys-reused": Workload(replicate=(2, 3), asynchronous=0.0, key_pool=12, faults=("one_down",)),
    "keys-reused-away": Workload(
        replicate=(2, 3),
        delay_s=(0, 0, 4),
        asynchronous=0.0,
        logs=True,
        key_pool=12,
        faults=("one_away",),
    ),
    "keys-reused-leaving": Workload(
        replicate=(1, 2), leaves=True, key_pool=12, faults=("one_down", "one_away", "restart")
    ),
    "keys-reused-parted": Workload(
        actions=("ack", "ack", "ack", "ack-elsewhere", "nack", "ignore"),
        leaves=True,
        key_pool=12,
        faults=(
            *("kill", "power", "restart", "pause", "stale_disk"),
            *("partition", "partition_one_way", "reset", "half_open", "stall", "message_loss"),
        ),
    ),
}
_OVERVIEW: Final[dict[str, Workload]] = {
    "waiting": Workload(
        retry_s=(0, 1, 4),
        ttl_s=(3, 9, 7_200),
        delay_s=(0, 0, 1),
        actions=("ack", "ack", "ack-elsewhere", "fastack", "deljob", "nack", "ignore"),
        waits=True,
    ),
    "flushing": Workload(
        retry_s=(0, 2, 4),
        delay_s=(0, 0, 1),
        actions=("ack", "ack", "nack", "nack-later", "ignore"),
        flushes=True,
        waits=True,
    ),
}
#: The queue of the jobs that ``copy-to`` adds, in all of the following.
COPY_QUEUE: Final = b"copies"
_FANOUT: Final[dict[str, Workload]] = {
    "fanout": Workload(
        retry_s=(0, 2, 4),
        delay_s=(0, 0, 1),
        asynchronous=0.2,
        policies=((b"a", b"copy-to", COPY_QUEUE),),
    ),
}
_MATCHING: Final[dict[str, Workload]] = {
    "by-pattern": Workload(
        match=0.8,
        nohang=0.1,
        actions=("ack", "ack", "ack", "ack", "nack", "working", "ignore"),
        count=(1, 1, 3),
        pauses=True,
    ),
    "by-pattern-once": Workload(
        retry_s=(0,), replicate=(1,), apart=True, count=(1, 10), nohang=0.1, match=0.9
    ),
    "limits": Workload(
        match=0.5,
        nohang=0.1,
        retry_s=(1, 2),
        count=(1, 5),
        policies=(
            (b"a", b"concurrency", b"2"),
            (b"b", b"rate", b"4"),
            (b"b", b"rate-burst", b"1"),
        ),
    ),
}
_RECURRING: Final[dict[str, Workload]] = {
    "schedules": Workload(schedules=True, delay_s=(0, 0, 1)),
}

#: The queue of the jobs that schedules make.
SCHEDULE_QUEUE: Final = b"occurrences"
#: Dead letters, backoff and limits.
_POLICIES: Final[tuple[tuple[bytes, bytes, bytes], ...]] = (
    (b"*", b"max-deliveries", b"6"),
    (b"*", b"dead-queue", DEAD_QUEUE),
    (b"a", b"concurrency", b"4"),
    (b"b", b"retry-delay", b"0.5"),
    (b"b", b"rate", b"4"),
    (b"b", b"rate-burst", b"1"),
)
_MATCH: Final = 0.3
_KEY_POOL: Final = 12
#: Clusters in which keys are used have so many nodes at least.
KEY_NODES_MIN: Final = 3
_EVERYTHING: Final[dict[str, Workload]] = {
    "everything": Workload(
        actions=("ack",) * 10 + ("ack-elsewhere", "nack", "nack-later", "working", "ignore"),
        count=(1, 1, 3),
        match=_MATCH,
        nohang=0.1,
        leaves=True,
        schedules=True,
        waits=True,
        key_pool=_KEY_POOL,
        policies=_POLICIES,
    ),
}
_CLOCKS: Final[dict[str, Workload]] = {
    "schedules-clock": Workload(schedules=True, crowd=True, faults=("one_clock",)),
}
_SURVIVAL: Final[dict[str, Workload]] = {
    "letters-logged": Workload(
        retry_s=(1,),
        replicate=(1, 2),
        actions=("ignore", "ignore", "nack", "ack"),
        logs=True,
        policies=((b"*", b"max-deliveries", b"5"), (b"*", b"dead-queue", DEAD_QUEUE)),
        faults=("restart", "kill", "one_down"),
    ),
    "memory-full": Workload(
        nohang=0.1, actions=("ack", "ack", "nack", "enqueue"), match=0.3, faults=("memory_full",)
    ),
}
_PROCESSES: Final[dict[str, Workload]] = {
    "processes": Workload(
        processes=True,
        key_pool=12,
        actions=("ack", "ack", "ack", "ack-elsewhere", "nack", "ignore"),
        logs=True,
        tables=True,
        faults=("process_dies", "machine_down", "pause", "partition"),
    ),
    "processes-fewer": Workload(
        processes=True,
        replicate=(1, 2),
        actions=("ack",),
        count=(5, 20),
        logs=True,
        tables=True,
        faults=("fewer_processes", "process_dies"),
    ),
    "processes-week": Workload(
        processes=True,
        replicate=(1, 2),
        actions=("ack",),
        count=(5, 20),
        logs=True,
        tables=True,
        faults=("fewer_for_a_week",),
    ),
}
_REPAIRS: Final[dict[str, Workload]] = {
    "repairs": Workload(
        tables=True,
        repairs=True,
        faults=(
            *("kill", "power", "restart", "pause", "partition", "partition_one_way"),
            *("reset", "half_open", "stall", "message_loss", "stale_disk", "empty_disk"),
        ),
    ),
    "repairs-recurring": Workload(
        tables=True, repairs=True, schedules=True, faults=("one_down", "one_away", "restart")
    ),
}


#: What only nodes of ours do. Seeds from the number of a group on have its workloads, so that a new
#: one changes the seeds of its own group alone.
GROUPS: Final[dict[int, dict[str, Workload]]] = {
    1_000_000: _REDELIVERY,
    2_000_000: _KEYS,
    3_000_000: _MATCHING,
    4_000_000: _RECURRING,
    5_000_000: _OVERVIEW,
    6_000_000: _FANOUT,
    7_000_000: _REUSED_KEYS,
    8_000_000: _EVERYTHING,
    9_000_000: _CLOCKS,
    10_000_000: _SURVIVAL,
    11_000_000: _PROCESSES,
    12_000_000: _REPAIRS,
    13_000_000: LOSSES,
    14_000_000: EVACUATIONS,
    15_000_000: RESTARTS,
    16_000_000: NAMES,
    17_000_000: HOSTS,
    18_000_000: MIXED,
    19_000_000: KEPT,
}


def with_everything(workload: Workload, nodes: int) -> Workload:
    """The workload, whose clients use schedules, dead letters, patterns and limits besides what
    they do in it, and keys, if there are nodes enough to keep them. With RETRY 0 there is no
    ``concurrency``, for which jobs that consumers ignore count as long as they live."""
    once = 0 in workload.retry_s
    return attrs.evolve(
        workload,
        match=_MATCH,
        schedules=True,
        key_pool=_KEY_POOL if nodes >= KEY_NODES_MIN else 0,
        policies=tuple(one for one in _POLICIES if not (once and one[1] == b"concurrency")),
    )


def group(seed: int) -> dict[str, Workload]:
    """The workloads that this seed may have, by name."""
    begun = [first for first in GROUPS if first <= seed]
    return GROUPS[max(begun)] if begun else WORKLOADS


def workload_called(name: str) -> Workload:
    """The workload with this name."""
    for workloads in (WORKLOADS, *GROUPS.values()):
        if name in workloads:
            return workloads[name]
    raise KeyError(name)

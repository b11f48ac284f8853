"""What the clients of a run do: one line per kind of use, drawn and mixed by the seed."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen
class Workload:
    """Choices that clients draw from.

    ``retry_s``, ``ttl_s``, ``delay_s``, ``replicate``: options of ADDJOB, ``replicate`` limited by
    the size of the cluster. ``asynchronous``: share of ASYNC jobs. ``deeds``: what a consumer does
    with a job. ``count``: of GETJOB. ``nohang``: share of GETJOBs that do not wait. ``apart``:
    producers and consumers use different nodes. ``pauses``, ``leaves``: the operator pauses queues,
    lets nodes leave. ``by_hand``: the operator takes jobs out of queues and puts them back.
    ``logs``: nodes keep a log.
    """

    retry_s: tuple[int, ...] = (1, 2, 4)
    ttl_s: tuple[int, ...] = (7_200,)
    delay_s: tuple[int, ...] = (0,)
    replicate: tuple[int, ...] = (1, 2, 3)
    asynchronous: float = 0.1
    deeds: tuple[str, ...] = ("ack", "ack", "ack", "ack", "ack", "ack", "ignore")
    count: tuple[int, ...] = (1,)
    nohang: float = 0.3
    apart: bool = False
    pauses: bool = False
    leaves: bool = False
    by_hand: bool = False
    logs: bool = False


WORKLOADS: Final[dict[str, Workload]] = {
    "total-queue": Workload(),
    "at-most-once": Workload(
        retry_s=(0,),
        replicate=(1,),
        asynchronous=0.3,
        deeds=("ack", "nack", "working", "enqueue", "ignore"),
    ),
    "once-moved": Workload(
        retry_s=(0,), replicate=(1,), apart=True, count=(1, 10), nohang=0.1, leaves=True
    ),
    "ttl-and-delay": Workload(
        retry_s=(1, 3), ttl_s=(2, 5, 9, 7_200), delay_s=(0, 1, 4), asynchronous=0.3
    ),
    "once-delayed": Workload(retry_s=(0,), replicate=(1,), delay_s=(0, 1, 3), apart=True),
    "nack-and-working": Workload(
        retry_s=(1, 2), deeds=("ack", "nack", "working", "ignore", "fastack"), count=(1, 3)
    ),
    "by-hand": Workload(
        retry_s=(1, 2, 4),
        deeds=("ack", "ack", "nack", "enqueue", "dequeue", "show", "ignore"),
        count=(1, 5, 20),
        by_hand=True,
    ),
    "pause": Workload(pauses=True, asynchronous=0.2),
    "leaving": Workload(leaves=True, asynchronous=0.3, retry_s=(0, 1, 3)),
    "log": Workload(
        logs=True, delay_s=(0, 0, 1, 4), replicate=(1, 2), deeds=("ack", "ack", "nack", "deljob")
    ),
    "federation": Workload(apart=True, count=(1, 5, 20), nohang=0.1, replicate=(1, 1, 2)),
    "foreign-acks": Workload(apart=True, deeds=("ack-elsewhere", "ack", "fastack-elsewhere")),
}

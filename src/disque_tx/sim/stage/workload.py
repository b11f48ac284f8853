"""What clients of a run do, and which policies are in force."""

from __future__ import annotations

from typing import Final

import attrs

#: The queue of dead letters in all workloads.
DEAD_QUEUE: Final = b"dead"


@attrs.frozen
class Workload:
    """A kind of use: choices that clients draw from.

    ``retry_s``, ``ttl_s``, ``delay_s``, ``replicate``: options of ADDJOB, ``replicate`` limited by
    the size of the cluster. ``asynchronous``: share of ASYNC jobs. ``actions``: what a consumer
    does with a job. ``count``: of GETJOB. ``nohang``: share of GETJOBs that do not wait. ``apart``:
    producers and consumers use different nodes. ``pauses``, ``leaves``: the operator pauses queues,
    lets nodes leave. ``by_hand``: the operator takes jobs out of queues and puts them back.
    ``logs``: nodes keep a log. ``policies``: pattern, setting, value, in force on all nodes.
    ``moves``: the operator moves jobs from one queue to another. ``waits``: clients wait for the
    end of jobs. ``flushes``: a client counts the jobs of queues, and empties them. ``match``: share
    of GETJOBs by pattern. ``schedules``: an operator sets and changes schedules; the clocks of the
    nodes are right then, but for a fault. ``keys``: jobs have keys, and are added again when the
    answer is lost. ``key_pool``: number of keys of jobs, which are used again and again. ``crowd``:
    there are three nodes at least. ``processes``: daemons have several processes each. ``tables``:
    an operator changes both shared tables, by schedules that make nothing during the run.
    ``repairs``: and repairs them. ``losses``: nodes are lost with all they have, one at a time, and
    replaced by new ones. ``evacuates``: nodes give their jobs away, are lost, and replaced.
    ``mixed``: some nodes are originals, which make no copies again. ``named``: nodes find each
    other by a name, without an operator, and so do those of another cluster. ``faults``: the only
    ones that strike, all if there is none.
    """

    retry_s: tuple[int, ...] = (1, 2, 4)
    ttl_s: tuple[int, ...] = (7_200,)
    delay_s: tuple[int, ...] = (0,)
    replicate: tuple[int, ...] = (1, 2, 3)
    asynchronous: float = 0.1
    actions: tuple[str, ...] = ("ack", "ack", "ack", "ack", "ack", "ack", "ignore")
    count: tuple[int, ...] = (1,)
    nohang: float = 0.3
    apart: bool = False
    pauses: bool = False
    leaves: bool = False
    by_hand: bool = False
    logs: bool = False
    policies: tuple[tuple[bytes, bytes, bytes], ...] = ()
    moves: bool = False
    waits: bool = False
    flushes: bool = False
    match: float = 0.0
    schedules: bool = False
    keys: bool = False
    key_pool: int = 0
    crowd: bool = False
    processes: bool = False
    tables: bool = False
    repairs: bool = False
    losses: bool = False
    evacuates: bool = False
    mixed: bool = False
    named: bool = False
    faults: tuple[str, ...] = ()

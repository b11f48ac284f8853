"""What is measured: one module per kind of work; ``ROWS`` names all in the order of the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.daemon.bench import Bench
from benchmarks.daemon.rows import (
    backlog,
    beanstalk,
    connections,
    consoles,
    cycle,
    evacuation,
    fairness,
    federation,
    healing,
    histories,
    keys,
    listing,
    logs,
    matching,
    nodes,
    policies,
    processes,
    proxy,
    queues,
    redelivery,
    start,
    waiting,
    watching,
)

ROWS: Final[dict[str, Callable[[Bench], None]]] = {
    "one": cycle.one_connection,
    "depth1": cycle.depth_1,
    "depth16": cycle.depth_16,
    "blocked": waiting.blocked,
    "beanstalk": beanstalk.cycle,
    "aof": logs.aof,
    "events": logs.events,
    "copies1": nodes.depth_1,
    "copies16": nodes.depth_16,
    "federation": federation.federation,
    "healing": healing.healing,
    "evacuation": evacuation.evacuation,
    "fairness": fairness.fairness,
    "connections": connections.idle,
    "queues": queues.many,
    "match": matching.many,
    "tenants": matching.tenants,
    "policies": policies.policies,
    "keys": keys.one_node,
    "keys3": keys.three_nodes,
    "list": listing.many,
    "backoff": redelivery.backoff,
    "watched": watching.watched,
    "console": consoles.consoles,
    "history": histories.history,
    "backlog": backlog.backlog,
    "memory3": backlog.with_copies,
    "processes": processes.two,
    "processes-flow": processes.flow,
    "proxy": proxy.round_robin,
    "start": start.start,
}
"""Every row by the name that ``--only`` takes."""

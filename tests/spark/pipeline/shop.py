"""An hour of a small shop in which some things go wrong, as events of three nodes."""

from __future__ import annotations

import random
from base64 import b64encode

from tests.spark.pipeline.logs import Node, job_id

HOSTILE = '<script>alert("queue")</script>'
JOBS = 240
_QUEUES = ("mail", "orders", "thumbnails", HOSTILE)


def nodes() -> list[Node]:
    """Three nodes with runs of ``thumbnails`` that outlast their RETRY, jobs that fail repeatedly,
    some that expire, a clock half a second off, moves between nodes, and a lost event."""
    chance = random.Random(1)
    first, second, third = Node("a"), Node("b"), Node("c", ahead_s=-0.5)
    for number in range(JOBS):
        at_s = number * 15 + chance.random()
        _job(chance, (first, second), at_s, number)
    for number in range(JOBS, JOBS + 4):
        _poison(second, 1800 + number, job_id(number, "b"))
    for number in range(JOBS + 4, JOBS + 8):
        _moved(first, third, 600.0 * (number - JOBS), job_id(number, "a"))
    # An event that is missing in the log.
    third.events.pop(1)
    return [first, second, third]


def _job(chance: random.Random, nodes: tuple[Node, Node], at_s: float, number: int) -> None:
    queue = _QUEUES[min(3, int(chance.expovariate(0.9)))]
    node, job = nodes[number % 2], job_id(number, "ab"[number % 2])
    body = b64encode(b"job %d" % number).decode()
    node.add(at_s, job, queue=queue, retry_s=5 if queue == "thumbnails" else 60, body=body)
    if number % 40 == 39:
        node.log(at_s + 90, "expired", job, queue=queue)
        return
    wait_ms = int(chance.lognormvariate(4, 1.5))
    run_ms = int(chance.lognormvariate(8.5 if queue == "thumbnails" else 5, 0.7))
    begun_s = at_s + wait_ms / 1000
    node.log(begun_s, "delivered", job, queue=queue, wait_ms=wait_ms)
    if queue == "thumbnails" and run_ms > 5000:
        node.log(begun_s + 5, "requeued", job, queue=queue, reason="retry")
        node.log(begun_s + 5.1, "delivered", job, queue=queue, wait_ms=100, additional_deliveries=1)
    if number < JOBS - 6:
        node.log(begun_s + run_ms / 1000, "acked", job, queue=queue, run_ms=run_ms)


def _poison(node: Node, at_s: float, job: str) -> None:
    node.add(at_s, job, queue="orders", body=b64encode(b"poison").decode())
    for attempt in range(6):
        at_s += 2**attempt
        node.log(at_s, "delivered", job, queue="orders", wait_ms=3, nacks=attempt)
        node.log(at_s + 0.1, "nacked", job, queue="orders", run_ms=100, nacks=attempt)
        node.log(at_s + 0.1, "requeued", job, queue="orders", reason="nack", nacks=attempt + 1)


def _moved(source: Node, target: Node, at_s: float, job: str) -> None:
    source.add(at_s, job)
    source.log(at_s + 0.010, "exported", job, peer=target.letter * 40)
    target.log(at_s + 0.012, "imported", job, peer=source.letter * 40)
    target.log(at_s + 0.013, "queued", job, reason="import")
    target.work(at_s + 0.020, job, run_ms=40)

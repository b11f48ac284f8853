"""The results of the pipeline, computed in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from tests.spark.pipeline.logs import Event

_COUNTED = {
    "delivered": "deliveries",
    "nacked": "nacks",
    "requeued": "requeues",
    "imported": "moves",
}
_ENDS = ("expired", "evicted", "deleted")


def kind_of(event: Event) -> str:
    """The last part of the type."""
    return str(event["type"]).rpartition(".")[2]


def unique(events: Iterable[Event]) -> list[Event]:
    """Each event once."""
    return list({(event["source"], event["id"]): event for event in events}.values())


def jobs(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Job ID → its outcome, and how many times it was delivered, nacked, requeued and moved."""
    by_job: dict[str, list[Event]] = defaultdict(list)
    for event in unique(events):
        if "subject" in event:
            by_job[event["subject"]].append(event)
    return {job: _job(steps) for job, steps in by_job.items()}


def _job(steps: list[Event]) -> dict[str, Any]:
    kinds = Counter(map(kind_of, steps))
    outcome = next((end for end in _ENDS if kinds[end]), "pending")
    return {
        "queue": steps[0]["messaging.destination.name"],
        "outcome": "acked" if kinds["acked"] else outcome,
        "nodes": sorted({step["source"].removeprefix("disque:") for step in steps}),
        "wait_ms": sum(step.get("wait_ms", 0) for step in steps) if kinds["delivered"] else None,
        **{name: kinds[kind] for kind, name in _COUNTED.items()},
    }


def backlog(events: Iterable[Event]) -> dict[str, int]:
    """Queue → number of jobs that have not ended."""
    open_jobs = (job for job in jobs(events).values() if job["outcome"] == "pending")
    return dict(Counter(job["queue"] for job in open_jobs))

"""Event logs for tests: the events of nodes, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

EPOCH = datetime(2026, 11, 20, 19, 0, 0, tzinfo=UTC)
BOOT = 1_795_202_588_193
Event = dict[str, Any]


def node_id(letter: str) -> str:
    """The ID of a node: one hexadecimal digit 40 times."""
    return letter * 40


def job_id(number: int, letter: str = "a") -> str:
    """The ID of a job created by a node."""
    return f"D-{letter * 8}-{number:024d}-05a1"


class Node:
    """A node that logs events. ``ahead_s``: how far its clock is ahead."""

    def __init__(self, letter: str, boot: int = BOOT, ahead_s: float = 0) -> None:
        self.letter = letter
        self.events: list[Event] = []
        self._boot = boot
        self._ahead_s = ahead_s

    def log(self, at_s: float, kind: str, job: str | None, **more: Any) -> Event:
        """Log an event."""
        scope = {"paused": "queue", "flushed": "node"}.get(kind, "job")
        time = EPOCH + timedelta(seconds=at_s + self._ahead_s)
        event = {
            "specversion": "1.0",
            "id": f"{self._boot}.{len(self.events)}",
            "source": f"disque:{node_id(self.letter)}",
            "time": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": f"disque.{scope}.{kind}",
            "messaging.system": "disque",
            "messaging.destination.name": more.pop("queue", "mail"),
            "messaging.message.body.size": 5,
            "nacks": 0,
            "additional_deliveries": 0,
            **more,
        }
        if job is not None:
            event["subject"] = job
        self.events.append(event)
        return event

    def add(self, at_s: float, job: str, **more: Any) -> None:
        """Log that a job is added and queued."""
        given = {"retry_s": 60, "ttl_s": 86_400, "delay_s": 0, "replicate": 1, **more}
        queue = {"queue": given.pop("queue")} if "queue" in given else {}
        self.log(at_s, "added", job, **given, **queue)
        if given["replicate"] > 1 and given.get("reason") != "async":
            self.log(at_s, "replicated", job, copies=given["replicate"], **queue)
        self.log(at_s, "queued", job, **queue)

    def work(self, at_s: float, job: str, run_ms: int = 20, **more: Any) -> None:
        """Log that a job is delivered and acknowledged."""
        self.log(at_s, "delivered", job, wait_ms=40, **more)
        self.log(at_s + run_ms / 1000, "acked", job, run_ms=run_ms, **more)


def write(path: Path, events: Iterable[Event], tail: bytes = b"") -> Path:
    """Write a finished segment. ``tail``: more bytes, before compression."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(json.dumps(event).encode() + b"\n" for event in events) + tail
    path.write_bytes(zstandard.ZstdCompressor().compress(text) if path.suffix == ".zst" else text)
    return path


def segment(folder: Path, events: list[Event]) -> Path:
    """Write a finished segment with the name that a node gives it."""
    boot, first = events[0]["id"].split(".")
    node = events[0]["source"].removeprefix("disque:")[:8]
    return write(folder / f"events-{node}-{boot}-{int(first):012d}.jsonl.zst", events)

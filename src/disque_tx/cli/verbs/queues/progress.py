"""How far jobs in flight are, as their workers report it to the nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused, printable
from disque_tx.client.requests.encoding import encoded
from disque_tx.client.requests.replies import fields

#: Jobs that are asked for per queue and node, and that are shown.
_ASKED: Final = 10
_SHOWN_MAX: Final = 5


@attrs.frozen
class JobReport:
    """``fraction``: of the work, from 0 to 1. ``age_s``: of the report."""

    queue: str
    id: str
    fraction: float
    note: str
    age_s: float

    def line(self) -> str:
        """The report for people."""
        note = f": {self.note}" if self.note else ""
        return f"{self.queue} {self.id}: {self.fraction:.0%}{note} ({self.age_s:.0f} s ago)"


def reported(node: Disque, queues: Iterable[str]) -> list[JobReport]:
    """What a node knows about jobs of these queues; nothing of nodes that cannot be asked."""
    found: list[JobReport] = []
    for queue in queues:
        try:
            reply = fields(node.execute("ASK", "NODE", "PROGRESS", encoded(queue), _ASKED))
        except Refused:
            return []
        for _node, rows in reply.get("answers", ()):
            found += [_report(queue, row) for row in rows]
    return found


def _report(queue: str, row: list[Any]) -> JobReport:
    job_id, fraction, note, age_ms = row
    text = printable(note.decode("utf-8", "backslashreplace"))
    return JobReport(printable(queue), job_id.decode(), float(fraction), text, age_ms / 1000)


def newest(reports: list[JobReport]) -> list[JobReport]:
    """The latest of all nodes; each job once."""
    found: dict[str, JobReport] = {}
    for report in sorted(reports, key=lambda report: report.age_s):
        found.setdefault(report.id, report)
    return list(found.values())[:_SHOWN_MAX]

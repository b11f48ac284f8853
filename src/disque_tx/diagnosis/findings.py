"""All that is wrong with a cluster, in order of weight."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from disque_tx.diagnosis.facts import Survey
from disque_tx.diagnosis.finding import PROBLEM, Finding
from disque_tx.diagnosis.nodes import NODE_CHECKS
from disque_tx.diagnosis.queues import QUEUE_CHECKS

_CHECKS: Final = (*NODE_CHECKS, *QUEUE_CHECKS)


def findings(survey: Survey) -> list[Finding]:
    """All findings: problems first, each kind in the order of the checks."""
    found = [finding for check in _CHECKS for finding in check(survey)]
    return sorted(found, key=lambda finding: finding.severity != PROBLEM)


def is_problem(finding: Finding) -> bool:
    """Whether it is a problem, not only a note."""
    return finding.severity == PROBLEM


def shown(finding: Finding) -> str:
    """A finding on one line."""
    where = "" if finding.node == "cluster" else f"{finding.node} "
    return f"{finding.severity}: {where}{finding.what}{_since(finding.since_s)}"


def _since(since_s: float | None) -> str:
    if since_s is None:
        return ""
    moment = datetime.fromtimestamp(since_s, UTC).isoformat(timespec="seconds")
    return f", since {moment}"

"""What is wrong with queues: of those whose first job has waited for longest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from disque_tx.client.errors import printable
from disque_tx.diagnosis.facts import QueueFacts, Survey
from disque_tx.diagnosis.finding import NOTE, PROBLEM, Check, Finding

#: For how long nobody may fetch jobs before that is a problem.
_ALONE_S: Final = 60.0
#: What the names of queues of dead letters begin with where no policy names another.
_LETTERS: Final = "dead:"
_QUEUE_MARK: Final = "{queue}"
_CLUSTER: Final = "cluster"
#: What the pauses mean.
_PAUSED: Final = {"in": "for new jobs", "out": "for deliveries", "all": "altogether"}


def _holds_letters(name: str, survey: Survey) -> bool:
    """Whether a queue is one for dead letters: nobody is to fetch these."""
    if name.startswith(_LETTERS) or name in survey.letter_queues:
        return True
    for named in survey.letter_queues:
        start, mark, end = named.partition(_QUEUE_MARK)
        if mark and (start or end) and name.startswith(start) and name.endswith(end):
            return True
    return False


def _page(name: str) -> str:
    """The page of the console about a queue."""
    dots = name in (".", "..")
    return f"#/queues/{'=' if dots else ''}{quote(name, safe='', errors='surrogateescape')}"


def _jobs(number: int) -> str:
    return f"{number} job" if number == 1 else f"{number} jobs"


def _since_s(queue: QueueFacts, survey: Survey) -> float | None:
    return survey.now_s - queue.oldest_s if survey.now_s else None


def _alone(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        idle = not queue.blocked and not queue.in_flight and not queue.out_per_s
        waits = queue.queued and queue.oldest_s >= _ALONE_S and queue.pause in ("none", "in")
        if idle and waits and not _holds_letters(queue.name, survey):
            yield Finding(
                PROBLEM,
                _CLUSTER,
                f"nobody fetches the {_jobs(queue.queued)} of {printable(queue.name)}",
                "Start workers that serve this queue, or flush it if nobody needs its jobs.",
                _since_s(queue, survey),
                _page(queue.name),
            )


def _late(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.queued and 0 < queue.alert_wait_s < queue.oldest_s:
            yield Finding(
                PROBLEM,
                _CLUSTER,
                f"the first of the {_jobs(queue.queued)} of {printable(queue.name)} waits for more"
                f" than the {queue.alert_wait_s} s of alert-wait; {queue.blocked} clients wait for"
                f" jobs, {queue.in_flight} jobs are in flight, {queue.out_per_s:g} left per second",
                "Start more workers for it, or find out what slows them down.",
                None if not survey.now_s else survey.now_s - queue.oldest_s + queue.alert_wait_s,
                _page(queue.name),
            )


def _paused(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.queued and queue.pause in _PAUSED:
            yield Finding(
                NOTE,
                _CLUSTER,
                f"{printable(queue.name)} is paused {_PAUSED[queue.pause]}, with"
                f" {_jobs(queue.queued)} in it",
                "Its page says by what; end the pause if it was forgotten.",
                _since_s(queue, survey),
                _page(queue.name),
            )


def _failing(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.backoff:
            yield Finding(
                NOTE,
                _CLUSTER,
                f"{_jobs(queue.backoff)} of {printable(queue.name)} failed and"
                f" {'waits' if queue.backoff == 1 else 'wait'} for another attempt",
                "The jobs of the queue under 'Not queued' say how often.",
                link=_page(queue.name),
            )


def _dead(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.queued and _holds_letters(queue.name, survey):
            of = queue.name.removeprefix(_LETTERS)
            many = "dead letter" if queue.queued == 1 else "dead letters"
            yield Finding(
                NOTE,
                _CLUSTER,
                f"{queue.queued} {many} in {printable(queue.name)}: jobs that failed for good",
                f"disque dead list {printable(of)}; requeue or drop them.",
                _since_s(queue, survey),
                _page(of),
            )


#: In order of weight.
QUEUE_CHECKS: Final[tuple[Check, ...]] = (_alone, _late, _failing, _dead, _paused)

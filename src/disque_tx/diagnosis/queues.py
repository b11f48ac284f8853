"""What is wrong with queues: of those whose first job has waited for longest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from disque_tx.client.errors import printable
from disque_tx.diagnosis.answers import GROWING_MAX
from disque_tx.diagnosis.facts import FailureFacts, QueueFacts, Survey
from disque_tx.diagnosis.finding import NOTE, PROBLEM, Check, Finding
from disque_tx.text.counts import counted

#: For how long nobody may fetch jobs before that is worth a note, and before it is a problem:
#: workers may look for jobs once in a while only.
_NOTED_S: Final = 7.0
_ALONE_S: Final = 60.0
#: A queue is slow when its first job waits so many times longer than is usual, and so long at all.
_SLOWER: Final = 2.0
_SLOW_S: Final = 10.0
#: From so many failures of a job on, the job itself may be the reason; and from so many failures
#: in a minute, or dead letters in an hour, those of a queue are a problem.
_POISON: Final = 5
_MANY: Final = 10
#: What the names of queues of dead letters begin with where no policy names another.
_LETTERS: Final = "dead:"
_QUEUE_MARK: Final = "{queue}"
_CLUSTER: Final = "cluster"
#: What the pauses mean.
_PAUSED: Final = {"in": "for new jobs", "out": "for deliveries", "all": "altogether"}


def holds_letters(name: str, letter_queues: frozenset[str]) -> bool:
    """Whether a queue is one for dead letters: nobody is to fetch these. ``letter_queues``: what
    policies name as such."""
    if name.startswith(_LETTERS) or name in letter_queues:
        return True
    for named in letter_queues:
        start, mark, end = named.partition(_QUEUE_MARK)
        if mark and (start or end) and name.startswith(start) and name.endswith(end):
            return True
    return False


def letter_places(
    queues: tuple[QueueFacts, ...], letter_queues: frozenset[str]
) -> list[tuple[int, QueueFacts]]:
    """The first queues for dead letters that hold some, and their places."""
    found = [
        (place, queue)
        for place, queue in enumerate(queues)
        if queue.queued and holds_letters(queue.name, letter_queues)
    ]
    return found[:GROWING_MAX]


def _page(name: str) -> str:
    """The page of the console about a queue."""
    dots = name in (".", "..")
    return f"#/queues/{'=' if dots else ''}{quote(name, safe='', errors='surrogateescape')}"


def _since_s(queue: QueueFacts, survey: Survey) -> float | None:
    return survey.now_s - queue.oldest_s if survey.now_s else None


def _alone(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        idle = not queue.blocked and not queue.in_flight and not queue.out_per_s
        waits = queue.queued and queue.oldest_s >= _NOTED_S and queue.pause in ("none", "in")
        if idle and waits and not holds_letters(queue.name, survey.letter_queues):
            yield Finding(
                PROBLEM if queue.oldest_s >= _ALONE_S else NOTE,
                _CLUSTER,
                f"nobody fetches the {counted(queue.queued, 'job')} of {printable(queue.name)}",
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
                f"the first of the {counted(queue.queued, 'job')} of {printable(queue.name)} waits"
                f" for more than the {queue.alert_wait_s} s of alert-wait; clients waiting:"
                f" {queue.blocked}, jobs in flight: {queue.in_flight}, {queue.out_per_s:g} left"
                " per second",
                "Start more workers for it, or find out what slows them down.",
                None if not survey.now_s else survey.now_s - queue.oldest_s + queue.alert_wait_s,
                _page(queue.name),
            )


def _slow(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        usual_s = queue.usual_s
        served = queue.blocked or queue.in_flight or queue.out_per_s
        if usual_s is None or not served or queue.alert_wait_s or queue.pause in ("out", "all"):
            continue
        if queue.queued and queue.oldest_s > max(_SLOW_S, _SLOWER * usual_s):
            yield Finding(
                PROBLEM,
                _CLUSTER,
                f"the first of the {counted(queue.queued, 'job')} of {printable(queue.name)} has"
                f" waited for {queue.oldest_s:.0f} s; 99 % wait {usual_s:g} s at most usually;"
                f" jobs in flight: {queue.in_flight}, {queue.out_per_s:g} left per second",
                "Start more workers for it, or find out what slows them down: its charts show since"
                " when, and what was deployed.",
                _since_s(queue, survey),
                _page(queue.name),
            )


def _poison(survey: Survey) -> Iterator[Finding]:
    for one in survey.failures:
        if one.attempts >= _POISON and one.job_id:
            yield Finding(
                NOTE,
                _CLUSTER,
                f"job {printable(one.job_id)} of {printable(one.name)} has failed {one.attempts}"
                f" times{_why(one)}",
                "Look at its page; with the policy max-deliveries, such a job becomes a dead"
                " letter.",
                one.since_s,
                f"#/jobs/{quote(one.job_id, safe='')}",
            )


def _failures(survey: Survey) -> Iterator[Finding]:
    for one in survey.failures:
        late = 2 * one.timed_out > one.failed
        many = "delivery" if one.failed == 1 else "deliveries"
        how = (
            "not acknowledged within RETRY: a worker hangs, is too slow, or was killed"
            if late
            else f"failed{_why(one)}"
        )
        was = "was " if one.failed == 1 else "were "
        yield Finding(
            PROBLEM if one.failed >= _MANY else NOTE,
            _CLUSTER,
            f"{one.failed} {many} of {printable(one.name)} {was if late else ''}{how}, in the last"
            " minute",
            "The page of clients says which workers hold jobs; if the jobs take long, raise RETRY"
            " or let the workers send WORKING."
            if late
            else "Its charts show since when, and what was deployed; its jobs and dead letters say"
            " more.",
            one.since_s,
            _page(one.name),
        )


def _why(one: FailureFacts) -> str:
    why = f": {printable(one.error)}" if one.error else ""
    if not one.worker:
        return why
    version = f", version {printable(one.version)}" if one.version else ""
    return f"{why} (at worker {printable(one.worker)}{version})"


def _paused(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.queued and queue.pause in _PAUSED:
            yield Finding(
                NOTE,
                _CLUSTER,
                f"{printable(queue.name)} is paused {_PAUSED[queue.pause]}, with"
                f" {counted(queue.queued, 'job')} in it",
                "Its page says by what; end the pause if it was forgotten.",
                _since_s(queue, survey),
                _page(queue.name),
            )


def _failing(survey: Survey) -> Iterator[Finding]:
    explained = {one.name for one in survey.failures}
    for queue in survey.queues:
        if queue.backoff and queue.name not in explained:
            yield Finding(
                NOTE,
                _CLUSTER,
                f"{counted(queue.backoff, 'job')} of {printable(queue.name)} failed and"
                f" {'waits' if queue.backoff == 1 else 'wait'} for another attempt",
                "The jobs of the queue under 'Not queued' say how often.",
                link=_page(queue.name),
            )


def _dead(survey: Survey) -> Iterator[Finding]:
    for queue in survey.queues:
        if queue.queued and holds_letters(queue.name, survey.letter_queues):
            of = queue.name.removeprefix(_LETTERS)
            many = "dead letter" if queue.queued == 1 else "dead letters"
            more = f", {queue.grown} more than an hour ago" if queue.grown else ""
            yield Finding(
                PROBLEM if queue.grown >= _MANY else NOTE,
                _CLUSTER,
                f"{queue.queued} {many} in {printable(queue.name)}{more}: jobs that failed for"
                " good",
                f"disque dead list {shlex.quote(printable(of))}; requeue or drop them.",
                _since_s(queue, survey),
                _page(of),
            )


#: In order of weight.
QUEUE_CHECKS: Final[tuple[Check, ...]] = (
    _alone,
    _late,
    _slow,
    _poison,
    _failures,
    _failing,
    _dead,
    _paused,
)

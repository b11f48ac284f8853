"""Requests about schedules, which only nodes of disque-tx answer (client protocol, section 30).
They are about the schedules of the whole cluster, whichever node answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs

from disque_tx.client.options import AddOptions
from disque_tx.client.requests import adding, replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded

#: What becomes of occurrences that no node could make in time.
MISSED: Final = ("skip", "one", "all")
#: Where the options begin in the words of ADDJOB.
_OPTIONS_AT: Final = 4


@attrs.frozen
class Schedule:
    """One schedule. ``when``: a cron expression, or ``EVERY`` and a number of seconds. ``options``:
    words of ADDJOB. ``last``: the time of the last occurrence that was made, ``None`` for none.
    ``next``: those to come. ``node``: the ID of the node that makes them. ``error``: why that node
    could not make one, if it is the one that answers."""

    name: str
    when: str
    zone: str
    missed: str
    paused: bool
    queue: str
    body: bytes
    options: tuple[str, ...]
    last: datetime | None
    next: tuple[datetime, ...]
    node: str
    error: str


def schedule_set(
    name: Name,
    when: str | int,
    queue: Name,
    body: Name,
    *,
    tz: str | None = None,
    missed: str | None = None,
    options: AddOptions | None = None,
) -> Request[None]:
    """SCHEDULE SET: add a job whenever it is due; one that is there already is changed.

    ``when``: a cron expression, or a number of seconds. ``tz``: the time zone of a cron expression,
    UTC if none is named. ``missed``: what becomes of occurrences that no node could make in time:
    ``skip``, ``one`` or ``all``. ``options``: of the job; its timeout is of no use here.

    :raises CommandFailed: the expression, the zone, the name or the job cannot be, the table is
        full, or it cannot be saved; the text says which. Originals do not know the command.
    """
    words: list[Word] = ["SCHEDULE", "SET", encoded(name)]
    words += ("EVERY", when) if isinstance(when, int) else (when,)
    if tz is not None:
        words += ("TZ", tz)
    if missed is not None:
        words += ("MISSED", missed)
    words += ("QUEUE", encoded(queue), encoded(body))
    if options is not None:
        words += adding.add_job_with(queue, body, options).words[_OPTIONS_AT:]
    return Request(tuple(words), replies.done)


def schedule_list() -> Request[list[Schedule]]:
    """SCHEDULE LIST: all schedules, each with its next occurrence."""
    return Request(("SCHEDULE", "LIST"), _schedules, repeatable=True)


def schedule_get(name: Name) -> Request[Schedule]:
    """SCHEDULE GET: one schedule, with its next five occurrences.

    :raises CommandFailed: NOSCHEDULE, there is none of this name.
    """
    return Request(("SCHEDULE", "GET", encoded(name)), _schedule, repeatable=True)


def schedule_del(name: Name) -> Request[bool]:
    """SCHEDULE DEL: delete a schedule; whether there was one. Jobs that it added stay."""
    return Request(("SCHEDULE", "DEL", encoded(name)), _changed)


def schedule_repair() -> Request[int]:
    """SCHEDULE REPAIR: number the table of schedules anew on all nodes, so that it can be changed
    again after a node has run its counters ahead; returns how many entries it has."""
    return Request(("SCHEDULE", "REPAIR"), replies.integer)


def schedule_pause(name: Name) -> Request[bool]:
    """SCHEDULE PAUSE: make no jobs until it is resumed; whether that was not so already.

    :raises CommandFailed: NOSCHEDULE, there is none of this name.
    """
    return Request(("SCHEDULE", "PAUSE", encoded(name)), _changed)


def schedule_resume(name: Name) -> Request[bool]:
    """SCHEDULE RESUME: go on from now, without what was due meanwhile; whether it was paused.

    :raises CommandFailed: NOSCHEDULE, there is none of this name.
    """
    return Request(("SCHEDULE", "RESUME", encoded(name)), _changed)


def schedule_skip(name: Name) -> Request[datetime]:
    """SCHEDULE SKIP: leave out the next occurrence; returns its time, in UTC. Each further call
    leaves out one more.

    :raises CommandFailed: NOSCHEDULE, there is none of this name, or there is no next occurrence.
    :raises OutcomeUnknown: the answer was lost; it may be left out.
    """
    return Request(("SCHEDULE", "SKIP", encoded(name)), _occurrence)


def schedule_run(name: Name) -> Request[str]:
    """SCHEDULE RUN: add the job of a schedule now, besides its occurrences; returns its ID.

    :raises CommandFailed: NOSCHEDULE, there is none of this name.
    :raises Refused: the job cannot be added, as by ``add_job``.
    :raises OutcomeUnknown: the answer was lost; the job may have been added.
    """
    return Request(("SCHEDULE", "RUN", encoded(name)), replies.text)


def _changed(reply: Any) -> bool:
    return replies.integer(reply) > 0


def _schedules(reply: Any) -> list[Schedule]:
    return [_schedule(row) for row in replies.array(reply)]


def _schedule(reply: Any) -> Schedule:
    found = replies.Named(reply)
    text, times = replies.text, replies.array
    return Schedule(
        name=found("name", text),
        when=found("when", text),
        zone=found("zone", text),
        missed=found("missed", text),
        paused=found("state", text) == "paused",
        queue=found("queue", text),
        body=found("body", replies.data),
        options=found("options", replies.texts),
        last=found("last", _time),
        next=tuple(time for time in map(_time, found("next", times)) if time is not None),
        node=found("node", text),
        error=found("error", text),
    )


def _occurrence(reply: Any) -> datetime:
    found = _time(reply)
    if found is None:
        raise replies.MalformedReply("a time", reply)
    return found


def _time(reply: Any) -> datetime | None:
    time_s = replies.integer(reply)
    try:
        return datetime.fromtimestamp(time_s, UTC) if time_s else None
    except (ValueError, OverflowError, OSError):
        raise replies.MalformedReply("a time", reply) from None

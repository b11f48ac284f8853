"""Metrics per queue, as text, in slices: there may be 100,000 queues."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import translate
from re import compile as compiled
from typing import Final

import attrs

from disque_tx.protocols.http.api.slices import all_queues, pause
from disque_tx.protocols.http.problems import bad_request
from disque_tx.services.interfaces import IHost, QueueFigures

_LINES_PER_SLICE: Final = 200
_PATTERN_MAX: Final = 256
_NAME_MAX: Final = 1_024
_SPECIAL: Final = frozenset("()[]{}+?*|^$\\")


@attrs.frozen
class Family:
    """One metric. ``counter``: it only grows. ``labels``: besides ``queue``."""

    name: str
    help: str
    value: Callable[[QueueFigures], float]
    counter: bool = False
    labels: str = ""


FAMILIES: Final = {
    family.name: family
    for family in (
        Family("disque_queue_jobs", "Jobs in it", lambda q: q.queued, labels=',state="queued"'),
        Family("disque_queue_oldest_age_seconds", "Wait of its first job", lambda q: q.oldest_s),
        Family("disque_queue_clients_blocked", "Clients that wait for a job", lambda q: q.blocked),
        Family("disque_queue_jobs_in", "Jobs queued", lambda q: q.jobs_in, counter=True),
        Family("disque_queue_jobs_out", "Jobs fetched", lambda q: q.jobs_out, counter=True),
        Family("disque_queue_import_rate", "Jobs per second imported", lambda q: q.import_rate),
        Family("disque_queue_paused", "The queue is paused", lambda q: int(q.pause != "none")),
    )
}  # fmt: skip


def name_filter(pattern: str) -> Callable[[bytes], bool]:
    """Whether a queue's name matches all of a regular expression.

    Of regular expressions this takes letters, ``.``, ``.*``, ``|`` and characters escaped with a
    backslash: with groups and counts, a pattern could occupy the node for hours.
    """
    if len(pattern) > _PATTERN_MAX:
        raise bad_request(f"A pattern has {_PATTERN_MAX} characters at most.")
    branches, glob, rest = [], "", pattern
    while rest:
        one, rest = rest[0], rest[1:]
        if one == "|":
            branches.append(glob)
            glob = ""
        elif one == "\\" and rest and not rest[0].isalnum():
            glob, rest = f"{glob}[{rest[0]}]" if rest[0] in "*?[" else glob + rest[0], rest[1:]
        elif one == "." and rest.startswith("*"):
            glob, rest = f"{glob}*", rest[1:]
        elif one == ".":
            glob += "?"
        elif one in _SPECIAL:
            raise bad_request(f"A pattern may contain . and .* and |, and {one!r} only behind \\.")
        else:
            glob += one
    matches = [compiled(translate(branch)).match for branch in (*branches, glob)]

    def wanted(name: bytes) -> bool:
        text = name.decode("utf-8", "replace")
        return len(name) <= _NAME_MAX and any(match(text) for match in matches)

    return wanted


def _label(name: bytes) -> str:
    text = name.decode("utf-8", "backslashreplace")
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


async def queue_metrics(
    host: IHost, families: list[Family], wanted: Callable[[bytes], bool], openmetrics: bool
) -> bytes:
    """The text of these families."""
    queues: list[QueueFigures] = []
    async for some in all_queues(host):
        queues += [queue for queue in some if wanted(queue.name)]
    lines: list[str] = []
    slices: list[bytes] = []
    for family in families:
        sample = f"{family.name}_total" if family.counter else family.name
        title = family.name if openmetrics else sample
        lines.append(f"# HELP {title} {family.help}")
        lines.append(f"# TYPE {title} {'counter' if family.counter else 'gauge'}")
        for number, queue in enumerate(queues):
            label = f'{{queue="{_label(queue.name)}"{family.labels}}}'
            lines.append(f"{sample}{label} {family.value(queue)}")
            if number % _LINES_PER_SLICE == _LINES_PER_SLICE - 1:
                slices.append(_text(lines))
                await pause(host)
    if openmetrics:
        lines.append("# EOF")
    return b"".join((*slices, _text(lines)))


def _text(lines: list[str]) -> bytes:
    """These lines, which are taken out of the list."""
    text = "".join(f"{line}\n" for line in lines).encode()
    lines.clear()
    return text

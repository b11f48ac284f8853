"""Metrics per queue, as text, in slices: there may be 100,000 queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import translate
from itertools import chain
from operator import attrgetter
from re import compile as compiled
from typing import Any, Final

import attrs

from disque_tx.protocols.http.api.slices import all_queues
from disque_tx.protocols.http.problems import bad_request
from disque_tx.services.interfaces import IHost, QueueFigures

_PATTERN_MAX: Final = 256
_NAME_MAX: Final = 1_024
_SPECIAL: Final = frozenset("()[]{}+?*|^$\\")


@attrs.frozen
class Family:
    """One metric. ``members``: the figures of a queue that it shows, the name of each in ``label``
    if there is one. ``counter``: it only grows."""

    name: str
    help: str
    members: tuple[str, ...]
    label: str = ""
    counter: bool = False

    @property
    def sample(self) -> str:
        """The name in front of the values."""
        return f"{self.name}_total" if self.counter else self.name

    def title(self, openmetrics: bool) -> str:
        """The lines above the values."""
        name = self.name if openmetrics else self.sample
        kind = "counter" if self.counter else "gauge"
        return f"# HELP {name} {self.help}\n# TYPE {name} {kind}\n"

    def lines(self, labels: list[str], queues: list[QueueFigures]) -> str:
        """The values of these queues."""
        before, text = f'{self.sample}{{queue="', ""
        for member in self.members:
            after = f'",{self.label}="{member}"}} ' if self.label else '"} '
            values: Iterable[Any] = map(attrgetter(member), queues)
            if member == "pause":
                values = [int(value != "none") for value in values]
            pairs = zip(labels, values, strict=True)
            text += "".join([f"{before}{label}{after}{value}\n" for label, value in pairs])
        return text


#: ``queued`` is in the queue; the others are jobs that come back to it, unless they end.
_STATES: Final = ("queued", "in_hand", "delayed", "backoff", "loaded")
FAMILIES: Final = {
    family.name: family
    for family in (
        Family("disque_queue_jobs", "Its jobs, by where they are", _STATES, label="state"),
        Family("disque_queue_oldest_age_seconds", "Wait of its first job", ("oldest_s",)),
        Family("disque_queue_clients_blocked", "Clients that wait for a job", ("blocked",)),
        Family("disque_queue_jobs_in", "Jobs queued", ("jobs_in",), counter=True),
        Family("disque_queue_jobs_out", "Jobs fetched", ("jobs_out",), counter=True),
        Family("disque_queue_import_rate", "Jobs per second imported", ("import_rate",)),
        Family("disque_queue_paused", "The queue is paused", ("pause",)),
    )
}


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
    branches.append(glob)
    if "*" in branches:
        return lambda name: len(name) <= _NAME_MAX
    match = compiled("|".join(map(translate, branches))).match
    return lambda name: len(name) <= _NAME_MAX and bool(match(name.decode("utf-8", "replace")))


def _label(name: bytes) -> str:
    text = name.decode("utf-8", "backslashreplace")
    if text.isalnum():
        return text
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


async def queue_metrics(
    host: IHost, families: list[Family], wanted: Callable[[bytes], bool], openmetrics: bool
) -> bytes:
    """The text of these families."""
    texts = [[family.title(openmetrics)] for family in families]
    async for some in all_queues(host):
        queues = [queue for queue in some if wanted(queue.name)]
        labels = [_label(queue.name) for queue in queues]
        for family, text in zip(families, texts, strict=True):
            text.append(family.lines(labels, queues))
    if openmetrics:
        texts.append(["# EOF\n"])
    return "".join(chain.from_iterable(texts)).encode()

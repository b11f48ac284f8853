"""The last actions of clients that changed how the node works: who, from where, and what."""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.answers import JobCount

ACTIONS_MAX: Final = 1_000
#: Bytes of what is kept of a text.
_WHO_BYTES_MAX: Final = 160
_WHAT_BYTES_MAX: Final = 400
#: The action of a node that has started; it has no client.
START: Final = b"start"
#: What is done within this time of its like is one action.
_PART_MS: Final = 10_000


class Action:
    """``at_ms``: since 1970. ``command``: in lower case. ``who``: the address of the client, and
    its name in parentheses. ``what``: the request, quoted, without passwords. ``refused``: why it
    was; empty if it was not. ``jobs``: how many it was about."""

    __slots__ = ("at_ms", "command", "jobs", "refused", "what", "who")

    def __init__(
        self,
        at_ms: i64,
        command: bytes,
        who: bytes,
        what: bytes,
        refused: bytes = b"",
        jobs: JobCount | None = None,
    ) -> None:
        self.at_ms: i64 = at_ms
        self.command = command
        self.who = who[:_WHO_BYTES_MAX]
        self.what = what[:_WHAT_BYTES_MAX]
        self.refused = refused[:_WHAT_BYTES_MAX]
        self.jobs: JobCount = jobs if jobs is not None else JobCount()

    def goes_on(self, before: Action) -> bool:
        """Whether this is the next part of what was done before, such as a long list of jobs."""
        same = self.who == before.who and self.what == before.what
        counted = self.jobs.value >= 0 and before.jobs.value >= 0
        return same and counted and self.at_ms - before.at_ms < _PART_MS


class Actions:
    """``entries``: newest first. ``unsaved``: some are not in the file of the node yet."""

    def __init__(self) -> None:
        self.entries: deque[Action] = deque(maxlen=ACTIONS_MAX)
        self.unsaved: bool = False
        self._counted: JobCount | None = None

    def counted(self) -> JobCount:
        """For a command that learns later how many jobs it is about: the number that belongs to
        the action that is added next."""
        self._counted = JobCount()
        return self._counted

    def add(self, action: Action) -> None:
        """Keep this one, and forget the oldest if there are too many."""
        counted, self._counted = self._counted, None
        if counted is not None:
            action.jobs = counted
        self.unsaved = True
        if self.entries and not action.refused and action.goes_on(self.entries[0]):
            part = self.entries.popleft()
            action.jobs.value += part.jobs.value
        self.entries.appendleft(action)

    def load(self, before: list[Action]) -> None:
        """Keep these, newest first, as older ones than those that are there."""
        self.entries.extend(before[: ACTIONS_MAX - len(self.entries)])

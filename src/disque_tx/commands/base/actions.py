"""The last actions of clients that changed how the node works: who, from where, and what."""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

ACTIONS_MAX: Final = 1_000
#: Bytes of what is kept of a text.
_WHO_BYTES_MAX: Final = 160
_WHAT_BYTES_MAX: Final = 400
#: The action of a node that has started; it has no client.
START: Final = b"start"


class Action:
    """``at_ms``: since 1970. ``command``: in lower case. ``who``: the address of the client, and
    its name in parentheses. ``what``: the request, quoted, without passwords. ``refused``: why it
    was; empty if it was not."""

    __slots__ = ("at_ms", "command", "refused", "what", "who")

    def __init__(
        self, at_ms: i64, command: bytes, who: bytes, what: bytes, refused: bytes = b""
    ) -> None:
        self.at_ms: i64 = at_ms
        self.command = command
        self.who = who[:_WHO_BYTES_MAX]
        self.what = what[:_WHAT_BYTES_MAX]
        self.refused = refused[:_WHAT_BYTES_MAX]


class Actions:
    """``entries``: newest first. ``unsaved``: some are not in the file of the node yet."""

    def __init__(self) -> None:
        self.entries: deque[Action] = deque(maxlen=ACTIONS_MAX)
        self.unsaved: bool = False

    def add(self, action: Action) -> None:
        """Keep this one, and forget the oldest if there are too many."""
        self.entries.appendleft(action)
        self.unsaved = True

    def load(self, before: list[Action]) -> None:
        """Keep these, newest first, as older ones than those that are there."""
        self.entries.extend(before[: ACTIONS_MAX - len(self.entries)])

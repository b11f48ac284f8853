"""Two processes under one node ID, as when a machine is copied with its nodes file.

Every start of a node of ours numbers its connections from a number of its own, later starts from
higher ones, and PING and PONG carry that number. So whoever hears a node knows which start of it
speaks. In return he tells a process that he does not heed which start he takes for that node.

1. A start that nobody contradicts is the node: the first one heard; one at the same address; one
   that appears when there is no link to the earlier one, or that one is silent. So a restart, here
   or elsewhere, works at once, and a change of address of a running node was never in question.
2. Otherwise two starts are alive. The newcomer is not heeded, and if that goes on for a second, it
   is a twin: the one that was started first is the node, and the other is not heeded.
3. A start that hears that an earlier one is taken for its node stands aside: it neither takes jobs
   nor delivers any, until nobody has said so for the node time-out. It was copied with its log, so
   its jobs may be those of the other one.
4. Nodes of the original number nothing, and are believed as before.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.busmessages import Gossip
from disque_tx.errors import CommandError
from disque_tx.nodetable import Link, NodeEntry

#: Connections that one start numbers at the most; two starts lie further apart.
START_SPAN: Final = 1 << 26
#: How long two starts have to be heard before both count as alive: longer than any message is on
#: its way.
_CERTAIN_MS: Final = 1_000
#: Message flag of PING and PONG, of ours: another process also speaks under your ID.
TWIN: Final = 128


def same_start(one: i64, other: i64) -> bool:
    """Whether two connections were numbered by one process."""
    apart = one - other
    return -START_SPAN < apart < START_SPAN


def has_twin(entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> bool:
    """Whether another process than the node was heard under its ID lately."""
    certain = entry.twin_ms - entry.twin_first_ms >= _CERTAIN_MS
    return entry.twin_first_ms > 0 and certain and now_ms - entry.twin_ms < node_timeout_ms


def heeded(
    entry: NodeEntry, link: Link, start: i64, moved: bool, now_ms: i64, node_timeout_ms: i64
) -> bool:
    """Whether the process that speaks on ``link`` under the ID of ``entry`` is that node.

    ``start``: the number it speaks with. ``moved``: it is not where the node was.
    """
    link.muted = not _believed(entry, start, moved, now_ms, node_timeout_ms)
    if link.muted:
        entry.twin_ip = link.peer_ip
    return not link.muted


def _believed(entry: NodeEntry, start: i64, moved: bool, now_ms: i64, node_timeout_ms: i64) -> bool:
    if start == 0:
        return True
    if entry.start == 0 or same_start(start, entry.start):
        entry.start = start
        entry.start_heard_ms = now_ms
        return True
    former = same_start(start, entry.twin_start)
    gone = entry.link is None or now_ms - entry.start_heard_ms > node_timeout_ms
    if gone or not (moved or former):
        _take(entry, start, now_ms)
        return True
    if not former or now_ms - entry.twin_ms > node_timeout_ms:
        entry.twin_first_ms = now_ms
    entry.twin_start = start
    entry.twin_ms = now_ms
    if start < entry.start and has_twin(entry, now_ms, node_timeout_ms):
        first_ms = entry.twin_first_ms
        _take(entry, start, now_ms)
        entry.twin_first_ms, entry.twin_ms = first_ms, now_ms
        return True
    return False


def _take(entry: NodeEntry, start: i64, now_ms: i64) -> None:
    """This start is the node now; should the earlier one speak again, both are alive."""
    entry.twin_start = entry.start
    entry.twin_first_ms = entry.twin_ms = 0
    entry.start = start
    entry.start_heard_ms = now_ms


class Standing:
    """What this process knows of others that speak under its own ID.

    ``start``: the number from which it numbers its connections. ``aside``: it must not take part.
    ``doubled``: it heard of another one lately. ``twin_ip``: where that was, as far as it is known.
    ``heard``: how often it heard of one.
    """

    __slots__ = ("aside", "doubled", "heard", "start", "twin_ip", "_aside_ms", "_twin_ms")

    def __init__(self) -> None:
        self.start: i64 = 0
        self.aside: bool = False
        self.twin_ip: bytes = b""
        self.doubled: bool = False
        self.heard: i64 = 0
        self._twin_ms: i64 = 0
        self._aside_ms: i64 = 0

    def told(self, message: Gossip, now_ms: i64) -> None:
        """A node says whom it takes for this one."""
        if self.start == 0 or message.epoch == 0:
            return
        other = message.serial != 0 and not same_start(message.serial, self.start)
        if other and message.serial < self.start:
            self.aside = True
            self._aside_ms = now_ms
        if other or message.mflags & TWIN:
            self._note(now_ms)

    def met(self, link: Link, message: Gossip, now_ms: i64) -> bool:
        """Somebody speaks under this node's ID; whether it is another process."""
        other = message.epoch != 0 and not same_start(message.epoch, self.start)
        if other:
            self._note(now_ms)
            self.twin_ip = link.peer_ip
        return other

    def _note(self, now_ms: i64) -> None:
        self.heard += 1
        self.doubled = True
        self._twin_ms = now_ms

    def tick(self, now_ms: i64, node_timeout_ms: i64) -> None:
        """Take part again when nobody objects any more."""
        if self.aside and now_ms - self._aside_ms > node_timeout_ms:
            self.aside = False
        if self.doubled and now_ms - self._twin_ms > node_timeout_ms:
            self.doubled = False


def standing_aside() -> CommandError:
    """What a process that stands aside tells clients; they go to other nodes as from one that is
    leaving."""
    return CommandError(
        "LEAVING",
        "Another process that was started earlier has the ID of this node: its nodes file was"
        " copied. Stop this one, remove its nodes file and its log, and start it again",
    )

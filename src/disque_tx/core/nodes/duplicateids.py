"""Two processes under one node ID, as when a machine is copied with its nodes file.

Every start of a node of ours numbers its connections from a number of its own, later starts from
higher ones, and PING and PONG carry that number. So the receiver knows which start of a node a
message is from. To a process whose messages it ignores it replies with the number of the start that
it takes for that node.

1. A start without a rival is the node: the first one seen; one at the same address; one that
   appears when there is no link to the earlier one, or that one has become silent. So a restart,
   here or elsewhere, works at once, and so does a change of address of a running node.
2. Otherwise two starts are alive. The newcomer's messages are ignored, and if that goes on for a
   second, the ID is in use twice: the start that began first is the node, the other one is ignored.
3. A start that learns that an earlier one is taken for its node stands aside: it neither accepts
   jobs nor delivers any, until no node has objected for the node time-out. It was copied with its
   log, so its jobs may be those of the other one.
4. Nodes of the original number nothing, and are accepted as before.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import CommandError
from disque_tx.messages.bus import Gossip
from disque_tx.messages.nodes import Link, NodeEntry

#: Connections that one start numbers at the most; two starts lie further apart.
START_SPAN: Final = 1 << 26
#: How long messages of two starts have to arrive before both count as alive: longer than any
#: message is on its way.
_CERTAIN_MS: Final = 1_000
#: Message flag of PING and PONG, of ours: another process also uses your ID.
DUPLICATE_ID: Final = 128


def same_start(one: i64, other: i64) -> bool:
    """Whether two connections were numbered by one process."""
    apart = one - other
    return -START_SPAN < apart < START_SPAN


def record_number(entry: NodeEntry, link: Link, number: i64) -> None:
    """The node made ``link`` to this one, and gave its number (0: an original)."""
    link.number = number
    if number > entry.newest_link or not same_start(number, entry.newest_link):
        entry.newest_link = number


def is_replaced(entry: NodeEntry, link: Link) -> bool:
    """Whether the node has made another link to this one since it made ``link``, so that what
    arrives on this one was sent before all that came on the other."""
    newest = entry.newest_link
    return 0 < link.number < newest and same_start(link.number, newest)


def has_duplicate(entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> bool:
    """Whether another process than the node used its ID lately."""
    certain = entry.duplicate_ms - entry.duplicate_first_ms >= _CERTAIN_MS
    return (
        entry.duplicate_first_ms > 0 and certain and now_ms - entry.duplicate_ms < node_timeout_ms
    )


def is_that_node(
    entry: NodeEntry, link: Link, start: i64, moved: bool, now_ms: i64, node_timeout_ms: i64
) -> bool:
    """Whether the process that sends on ``link`` under the ID of ``entry`` is that node.

    ``start``: the number that it sends. ``moved``: its address is another one than the node's.
    """
    link.ignored = not _believed(entry, start, moved, now_ms, node_timeout_ms)
    if link.ignored:
        entry.duplicate_ip = link.peer_ip
    return not link.ignored


def _believed(entry: NodeEntry, start: i64, moved: bool, now_ms: i64, node_timeout_ms: i64) -> bool:
    if start == 0:
        return True
    if entry.start == 0 or same_start(start, entry.start):
        entry.start = start
        entry.start_seen_ms = now_ms
        return True
    former = same_start(start, entry.duplicate_start)
    gone = entry.link is None or now_ms - entry.start_seen_ms > node_timeout_ms
    if gone or not (moved or former):
        _accept(entry, start, now_ms)
        return True
    if not former or now_ms - entry.duplicate_ms > node_timeout_ms:
        entry.duplicate_first_ms = now_ms
    entry.duplicate_start = start
    entry.duplicate_ms = now_ms
    if start < entry.start and has_duplicate(entry, now_ms, node_timeout_ms):
        first_ms = entry.duplicate_first_ms
        _accept(entry, start, now_ms)
        entry.duplicate_first_ms, entry.duplicate_ms = first_ms, now_ms
        return True
    return False


def _accept(entry: NodeEntry, start: i64, now_ms: i64) -> None:
    """This start is the node now; should the earlier one send again, both are alive."""
    entry.duplicate_start = entry.start
    entry.duplicate_first_ms = entry.duplicate_ms = 0
    entry.start = start
    entry.start_seen_ms = now_ms


class IdentityConflict:
    """What this process knows of others that use its own ID.

    ``start``: the number from which it numbers its connections. ``suspended``: it must not serve.
    ``contested``: there was a sign of another one lately. ``duplicate_ip``: its address, as far as
    known. ``duplicate_messages``: how many showed one.
    """

    __slots__ = (
        "suspended",
        "contested",
        "duplicate_messages",
        "start",
        "duplicate_ip",
        "_suspended_ms",
        "_contested_ms",
    )

    def __init__(self) -> None:
        self.start: i64 = 0
        self.suspended: bool = False
        self.duplicate_ip: bytes = b""
        self.contested: bool = False
        self.duplicate_messages: i64 = 0
        self._contested_ms: i64 = 0
        self._suspended_ms: i64 = 0

    def receive(self, message: Gossip, now_ms: i64) -> None:
        """A heartbeat shows which start its sender takes for this node."""
        if self.start == 0 or message.epoch == 0:
            return
        other = message.serial != 0 and not same_start(message.serial, self.start)
        if other and message.serial < self.start:
            self.suspended = True
            self._suspended_ms = now_ms
        if other or message.mflags & DUPLICATE_ID:
            self._contest(now_ms)

    def own_id_seen(self, link: Link, message: Gossip, now_ms: i64) -> bool:
        """A message under this node's ID arrived; whether it is from another process."""
        other = message.epoch != 0 and not same_start(message.epoch, self.start)
        if other:
            self._contest(now_ms)
            self.duplicate_ip = link.peer_ip
        return other

    def _contest(self, now_ms: i64) -> None:
        self.duplicate_messages += 1
        self.contested = True
        self._contested_ms = now_ms

    def tick(self, now_ms: i64, node_timeout_ms: i64) -> None:
        """Take part again when no node objects any more."""
        if self.suspended and now_ms - self._suspended_ms > node_timeout_ms:
            self.suspended = False
        if self.contested and now_ms - self._contested_ms > node_timeout_ms:
            self.contested = False


def identity_conflict_error() -> CommandError:
    """The error for clients of a process that stands aside; they go to other nodes, as from one
    that is leaving."""
    return CommandError(
        "LEAVING",
        "Another process that was started earlier has the ID of this node: its nodes file was"
        " copied. Stop this one, remove its nodes file and its log, and start it again",
    )

"""Tables that all nodes have alike, between nodes (cluster protocol, section 21.3).

1. A change is sent to all nodes at once; a node that misses it gets it by what follows.
2. With every PING goes the digest of a table, and one more as soon as a link shows that the node
   at its other end has tables. So a node that joins, or was away, has the table a moment after the
   link to it is up.
3. A node that gets another digest than its own pulls the table of the sender, a message at a time,
   and merges it. As both do so, both have the same in the end.
4. A node answers a limited number of pulls of another at once; of those beyond, the last one waits.
   Who waits for each answer before the next pull notices nothing of it.
5. It pulls from one node at a time. After a pull that brought nothing new, it waits for longer and
   longer before the next one from the same node: the difference is what the other side lacks.

Nothing is sent to a node that has not shown ``CAN_TABLES``, on any link. A table that was repaired
is exchanged only with nodes that know what that is (``CAN_REPAIR``); an older one has what it had.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.base.slices import SlicedTask, SlicedWork
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.core.tables.registers import Registers
from disque_tx.core.tables.shares import Shares
from disque_tx.core.tables.table import SharedTable
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_REPAIR, CAN_TABLES
from disque_tx.messages.nodes import HANDSHAKE, Link, NodeEntry
from disque_tx.messages.tables import (
    CHANGES_BYTES_MAX,
    CHANGES_MAX,
    POLICIES,
    Register,
    TableChange,
    TableDigest,
    TablePull,
)

#: A pull that gets no answer for so long is given up.
PULL_MS_MAX: Final = 5_000
#: How long to wait after a pull that brought nothing, at first and in the end.
_WAIT_MS: Final = 1_000
_WAIT_MS_MAX: Final = 64_000
#: Pulls of one node that are answered in a millisecond.
ANSWERS_AT_ONCE: Final = 4


class TableExchange:
    """Keeps a table of this node and those of the other nodes alike. ``table``: whose changes are
    exchanged."""

    __slots__ = (
        "_membership",
        "_next_ms",
        "_number",
        "_peers",
        "_pull_ms",
        "_pull_news",
        "_pulled_from",
        "_registers",
        "_shares",
        "_slices",
        "_table",
        "_turn",
        "_wait_ms",
        "_waiting",
    )

    def __init__(
        self,
        turn: Turn,
        membership: Membership,
        peers: Peers,
        table: SharedTable,
        slices: SlicedWork,
    ) -> None:
        self._turn: Turn = turn
        self._membership: Membership = membership
        self._peers: Peers = peers
        self._table: SharedTable = table
        self._number: i64 = table.number
        self._registers: Registers = table.registers
        # The node of the pull under way, when that last got an answer, and whether it was news.
        self._pulled_from: bytes = b""
        self._pull_ms: i64 = 0
        self._pull_news: bool = False
        # By node: the pull that waits for its answer.
        self._waiting: dict[bytes, TablePull] = {}
        self._shares: Shares = Shares(ANSWERS_AT_ONCE)
        self._slices: SlicedWork = slices
        # By node: when it may be pulled from again, and how long it was waited.
        self._next_ms: dict[bytes, int] = {}
        self._wait_ms: dict[bytes, int] = {}

    def announce(self, registers: list[Register]) -> None:
        """Send changes of this node to all others."""
        for entry in self._membership.nodes.values():
            link = entry.link
            if link is not None and not entry.flags & HANDSHAKE and self._has_tables(link):
                for changes in _parts(registers):
                    self._peers.answer(link, TableChange(changes, table=self._number))

    def greet(self, link: Link) -> None:
        """A PING was sent on this link, or its other end has just shown what it can do. The table
        of a feature that is not in use is not mentioned."""
        registers = self._registers
        if self._has_tables(link) and (len(registers) or self._number == POLICIES):
            self._peers.answer(link, TableDigest(registers.digest, len(registers), self._number))

    def _has_tables(self, link: Link) -> bool:
        needed = CAN_TABLES | CAN_REPAIR if self._registers.generation else CAN_TABLES
        return link.features & self._membership.features & needed == needed

    def _is_older(self, sender: NodeEntry) -> bool:
        """Whether a node is known to know nothing of the repair of this table."""
        link = sender.link
        if not self._registers.generation or link is None or not link.features:
            return False
        return not link.features & CAN_REPAIR

    def receive(self, sender: NodeEntry, message: Message, wall_s: i64) -> None:
        """Take a TABLE CHANGE, DIGEST or PULL of a node in the node table."""
        if isinstance(message, TableChange):
            if message.table == self._number and not self._is_older(sender):
                self._changed(sender, message, wall_s)
        elif isinstance(message, TableDigest):
            if message.table == self._number:
                self._compare(sender, message)
        elif isinstance(message, TablePull):
            if message.table == self._number:
                self._pulled(sender, message)

    def _changed(self, sender: NodeEntry, message: TableChange, wall_s: i64) -> None:
        news = self._table.merge(message.registers, wall_s, sender.id)
        if not message.pulled or sender.id != self._pulled_from:
            return
        self._pull_ms = self._turn.now_ms
        if news:
            self._pull_news = True
        if message.last or not message.registers:
            self._pull_done(sender.id)
        else:
            last = message.registers[-1]
            self._ask(sender, last.pattern, last.name)

    def _compare(self, sender: NodeEntry, message: TableDigest) -> None:
        now_ms = self._turn.now_ms
        registers = self._registers
        if message.digest == registers.digest and message.registers == len(registers):
            self._next_ms.pop(sender.id, 0)
            self._wait_ms.pop(sender.id, 0)
            return
        if self._pulled_from and now_ms - self._pull_ms < PULL_MS_MAX:
            return
        if message.registers == 0 or now_ms < self._next_ms.get(sender.id, 0):
            return
        self._pulled_from = sender.id
        self._pull_ms = now_ms
        self._pull_news = False
        self._ask(sender, b"", b"")

    def _ask(self, sender: NodeEntry, pattern: bytes, name: bytes) -> None:
        """Ask for the registers behind this key; without a link, the pull is over."""
        link = sender.link
        if link is None or not self._has_tables(link):
            self._pulled_from = b""
        else:
            self._peers.answer(link, TablePull(pattern, name, self._number))

    def _pull_done(self, node_id: bytes) -> None:
        self._pulled_from = b""
        if self._pull_news:
            self._next_ms.pop(node_id, 0)
            self._wait_ms.pop(node_id, 0)
            return
        if len(self._next_ms) > len(self._membership.nodes):
            self._next_ms.clear()
            self._wait_ms.clear()
        wait_ms = min(2 * self._wait_ms.get(node_id, _WAIT_MS // 2), _WAIT_MS_MAX)
        self._wait_ms[node_id] = wait_ms
        self._next_ms[node_id] = int(self._turn.now_ms) + wait_ms

    def _pulled(self, sender: NodeEntry, message: TablePull) -> None:
        """Answer a pull, now or in one of the next turns."""
        if self._shares.take(sender.id, self._turn.now_ms):
            self._answer(sender, message)
            return
        if not self._waiting:
            self._slices.add(_Answering(self))
        self._waiting[sender.id] = message

    def answer_waiting(self) -> bool:
        """Answer the pulls that wait, one of each node; whether none waits any more."""
        now_ms = self._turn.now_ms
        waiting, self._waiting = self._waiting, {}
        for node_id, message in waiting.items():
            sender = self._membership.nodes.get(node_id)
            if sender is not None and self._shares.take(node_id, now_ms):
                self._answer(sender, message)
            elif sender is not None:
                self._waiting[node_id] = message
        return not self._waiting

    def _answer(self, sender: NodeEntry, message: TablePull) -> None:
        link = sender.link
        if link is None or not self._has_tables(link):
            return
        found = self._registers.after(message.pattern, message.name, CHANGES_MAX, CHANGES_BYTES_MAX)
        last = True
        if found:
            behind = found[-1]
            last = not self._registers.after(behind.pattern, behind.name, 1, CHANGES_BYTES_MAX)
        self._peers.answer(link, TableChange(found, True, last, self._number))


class _Answering(SlicedTask):
    """Answers pulls that had to wait."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: TableExchange) -> None:
        self._exchange: TableExchange = exchange

    def step(self, now_ms: i64) -> bool:
        return self._exchange.answer_waiting()


class Exchanges:
    """All tables of this node. ``policies``, ``schedules``: one of them each."""

    __slots__ = ("policies", "schedules")

    def __init__(self, policies: TableExchange, schedules: TableExchange) -> None:
        self.policies: TableExchange = policies
        self.schedules: TableExchange = schedules

    def greet(self, link: Link) -> None:
        """See :meth:`TableExchange.greet`."""
        self.policies.greet(link)
        self.schedules.greet(link)

    def receive(self, sender: NodeEntry, message: Message, wall_s: i64) -> None:
        """See :meth:`TableExchange.receive`; messages about unknown tables are ignored."""
        self.policies.receive(sender, message, wall_s)
        self.schedules.receive(sender, message, wall_s)


def _parts(registers: list[Register]) -> list[list[Register]]:
    """The registers in lists that fit into one message each."""
    parts: list[list[Register]] = []
    part: list[Register] = []
    size: i64 = 0
    for register in registers:
        size += register.wire_bytes()
        if part and (size > CHANGES_BYTES_MAX or len(part) >= CHANGES_MAX):
            parts.append(part)
            part = []
            size = register.wire_bytes()
        part.append(register)
    if part:
        parts.append(part)
    return parts

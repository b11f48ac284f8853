"""The table of policies of one node: what may be changed, and what a change puts in force.

Checks are made where a client changes the table. What other nodes changed is taken as it is, or
the tables would differ: what this version does not know, or could not set, is kept and passed on,
and is not in force here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.shared.policies import PATTERNS_MAX, Policies, check_pattern, literal_prefix
from disque_tx.core.shared.registers import REGISTERS_MAX, Key, Registers
from disque_tx.core.shared.settings import QUEUE_MARK, is_valid, normal_value
from disque_tx.errors import CommandError
from disque_tx.globs import glob_match
from disque_tx.quoting import split
from disque_tx.tablemessages import Register

Pairs = list[tuple[bytes, bytes]]
_DEAD_QUEUE: Final = b"dead-queue"
_COPY_TO: Final = b"copy-to"
#: Dead letters of dead letters are followed so far to find a circle.
_CHAIN_MAX: Final = 16
#: So many queues are looked at to find copies that go round in a circle.
_COPIES_MAX: Final = 256


class PolicyTable:
    """``registers``: all of the table. ``received``: how many changes came from other nodes;
    ``refused``: how many of theirs could not be taken. ``unsaved``: the file does not have all of
    the table. ``registers_max``: how many registers clients may make."""

    __slots__ = ("_policies", "received", "refused", "registers", "registers_max", "unsaved")

    def __init__(self, policies: Policies) -> None:
        self._policies: Policies = policies
        self.registers: Registers = Registers()
        self.registers_max: i64 = REGISTERS_MAX
        self.received: i64 = 0
        self.refused: i64 = 0
        self.unsaved: bool = False

    # -- changes of clients ------------------------------------------------------------------

    def plan_set(self, pattern: bytes, pairs: Pairs, node_id: bytes) -> list[Register]:
        """The changes that give a pattern these settings; nothing is changed yet.

        ``CommandError`` for a pattern, setting or value that cannot be, for a table that is full,
        and for dead letters or copies that would move in a circle.
        """
        check_pattern(pattern)
        values: dict[bytes, bytes] = {}
        for name, value in pairs:
            name = name.lower()
            values[name] = normal_value(name, value)
        self._check_room(pattern, values)
        if _DEAD_QUEUE in values:
            self._check_chain(pattern, values[_DEAD_QUEUE])
        if _COPY_TO in values:
            self._check_copies(pattern, split(values[_COPY_TO]) or [])
        counter = self.registers.next_counter()
        return [Register(pattern, name, values[name], counter, node_id) for name in values]

    def plan_del(
        self, pattern: bytes, names: list[bytes], node_id: bytes, wall_s: i64
    ) -> list[Register]:
        """The changes that take these settings from a pattern, all of them if none is named; those
        that it does not have are skipped. Nothing is changed yet."""
        there: list[bytes] = []
        for register in self.registers.of(pattern):
            if not register.deleted_s:
                there.append(register.name)
        if names:
            wanted = {name.lower() for name in names}
            there = [name for name in there if name in wanted]
        if not there:
            return []
        counter = self.registers.next_counter()
        deleted_s = max(wall_s, 1)
        return [Register(pattern, name, b"", counter, node_id, deleted_s) for name in there]

    def _check_room(self, pattern: bytes, values: dict[bytes, bytes]) -> None:
        if not self._policies.values(pattern) and len(self._policies) >= PATTERNS_MAX:
            raise CommandError("ERR", f"There are {PATTERNS_MAX} patterns with policies already")
        new = [name for name in values if self.registers.get(pattern, name) is None]
        if len(self.registers) + len(new) > self.registers_max:
            raise CommandError(
                "ERR",
                f"The table of policies holds {self.registers_max} settings already, those that"
                " were deleted in the last 7 days among them",
            )

    def _check_chain(self, pattern: bytes, dead_queue: bytes) -> None:
        """Refuse a queue of dead letters whose own dead letters come back to it."""
        if len(literal_prefix(pattern)) < len(pattern):
            return  # its queues are not known; a circle is noticed when a letter is made
        queue = dead_queue.replace(QUEUE_MARK, pattern)
        seen: list[bytes] = []
        while queue and queue not in seen and len(seen) < _CHAIN_MAX:
            if queue == pattern:
                way = " -> ".join([_shown(name) for name in (pattern, *seen, queue)])
                raise CommandError("ERR", f"Policy setting 'dead-queue' goes round: {way}")
            seen.append(queue)
            source = self._policies.sources(queue).get(_DEAD_QUEUE)
            if source is None:
                return
            queue = source[0].replace(QUEUE_MARK, queue)

    def _check_copies(self, pattern: bytes, names: list[bytes]) -> None:
        """Refuse copies that come back to the queue whose jobs they are."""
        ways = [[name] for name in names]
        seen = set(names)
        while ways:
            way = ways.pop()
            queue = way[len(way) - 1]
            if glob_match(pattern, queue):
                shown = " -> ".join([_shown(name) for name in (pattern, *way)])
                raise CommandError("ERR", f"Policy setting 'copy-to' goes round: {shown}")
            policy = self._policies.of(queue)
            if policy is None or len(seen) >= _COPIES_MAX:
                continue
            for name in policy.copy_to:
                if name not in seen:
                    seen.add(name)
                    ways.append([*way, name])

    def apply(self, registers: list[Register], wall_s: i64) -> list[tuple[Key, Register | None]]:
        """Make changes that were planned; returns what was there before, for :meth:`revert`."""
        before: list[tuple[Key, Register | None]] = []
        for register in registers:
            key = (register.pattern, register.name)
            before.append((key, self.registers.get(register.pattern, register.name)))
            self.registers.put(register, wall_s)
            self._put_in_force(register)
        self.unsaved = self.unsaved or bool(registers)
        return before

    def revert(self, before: list[tuple[Key, Register | None]]) -> None:
        """Undo changes; their counter stays used."""
        for key, register in before:
            self.registers.restore(key, register)
            if register is None:
                self._policies.unset(key[0], key[1])
            else:
                self._put_in_force(register)

    def _put_in_force(self, register: Register) -> None:
        pattern, name = register.pattern, register.name
        if register.deleted_s or not is_valid(name, register.value):
            self._policies.unset(pattern, name)
        else:
            self._policies.set(pattern, name, register.value)

    # -- changes of others -------------------------------------------------------------------

    def merge(self, registers: list[Register], wall_s: i64) -> bool:
        """Take the registers of another node, or of the file; whether any of them was new."""
        news = False
        for register in registers:
            if not self.registers.is_credible(register):
                self.refused += 1
            elif self.registers.put(register, wall_s):
                self._put_in_force(register)
                self.received += 1
                news = True
        self.unsaved = self.unsaved or news
        return news

    def load(self, registers: list[Register], greatest: i64, wall_s: i64) -> None:
        """Begin with what the file has; ``greatest``: the greatest counter seen before."""
        self.registers.greatest = greatest
        self.merge(registers, wall_s)
        self.received = 0
        self.unsaved = False

    def drop_old(self, wall_s: i64) -> None:
        """Drop deletions that were kept for long enough, a bounded number of them."""
        if self.registers.drop_old(wall_s):
            self.unsaved = True

    def clear(self) -> None:
        """Forget the table: this node belongs to no cluster any more."""
        self.registers.clear()
        for pattern in self._policies.patterns():
            for name in list(self._policies.values(pattern)):
                self._policies.unset(pattern, name)
        self.unsaved = True


def _shown(name: bytes) -> str:
    return name[:64].decode("latin-1")

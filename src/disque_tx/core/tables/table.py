"""A table that all nodes have alike, as one node holds it.

Checks are made where a client changes the table. What other nodes changed is taken as it is, or
the tables would differ: what this version does not know, or could not set, is kept and passed on,
up to a bound, and is not in force here. What being in force means is each table's own.

A repair makes all registers anew in the next generation, whose counters start again. Who made them
and what they hold stays, so that two nodes that repair the same table at once do the same. It wins
against everything of the generations before.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.tables.registers import REGISTERS_MAX, Key, Registers
from disque_tx.core.tables.unknown import Refusals, Unknown
from disque_tx.messages.tables import Register

#: The counter of registers that a repair has made.
REPAIRED: Final = 1


class SharedTable:
    """``number``: of the table, in messages. ``registers``: all of it. ``received``: how many
    changes came from other nodes; ``refused``: how many of theirs could not be taken. ``unknown``:
    those in the table that this version has no use for. ``unsaved``: the file does not have all of
    the table. ``registers_max``: how many registers clients may make."""

    __slots__ = (
        "number",
        "received",
        "refused",
        "registers",
        "registers_max",
        "unknown",
        "unsaved",
    )

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.registers: Registers = Registers()
        self.registers_max: i64 = REGISTERS_MAX
        self.received: i64 = 0
        self.refused: Refusals = Refusals()
        self.unknown: Unknown = Unknown()
        self.unsaved: bool = False

    def put_in_force(self, register: Register) -> None:
        """Put the register, which may be a deletion, into force."""
        raise NotImplementedError

    def put_out_of_force(self, key: Key) -> None:
        """Remove what was in force under the key."""
        raise NotImplementedError

    def is_known(self, register: Register) -> bool:
        """Whether this version has a use for the register."""
        raise NotImplementedError

    def renumbered(self, register: Register, wall_s: i64) -> Register:
        """What a repair makes of a register: the same one in the next generation."""
        return Register(
            register.pattern,
            register.name,
            register.value,
            REPAIRED,
            register.node,
            register.deleted_s,
            generation=self.registers.generation + 1,
        )

    # -- changes of clients ------------------------------------------------------------------

    def apply(self, registers: list[Register], wall_s: i64) -> list[tuple[Key, Register | None]]:
        """Make changes that were planned; returns what was there before, for :meth:`revert`."""
        before: list[tuple[Key, Register | None]] = []
        for register in registers:
            key = (register.pattern, register.name)
            before.append((key, self.registers.get(register.pattern, register.name)))
            self.registers.put(register, wall_s)
            self.put_in_force(register)
            if self.is_known(register):
                self.unknown.forget(key)
        self.unsaved = self.unsaved or bool(registers)
        return before

    def plan_repair(self, wall_s: i64) -> list[Register]:
        """The changes that a repair is: all registers, deletions among them."""
        return [self.renumbered(register, wall_s) for register in self.registers.all()]

    def revert(self, before: list[tuple[Key, Register | None]]) -> None:
        """Undo changes; their generation and counter stay used."""
        for key, register in before:
            self.registers.restore(key, register)
            if register is None:
                self.put_out_of_force(key)
            else:
                self.put_in_force(register)

    # -- changes of others -------------------------------------------------------------------

    def merge(self, registers: list[Register], wall_s: i64, sender: bytes = b"") -> bool:
        """Take the registers of another node, or of the file; whether any of them was new.
        ``sender``: the ID of the node; empty for the file, which may be of any that made them."""
        news = False
        taken = False
        for register in registers:
            if not self.registers.is_credible(register, wall_s):
                self.refused.count(sender)
            elif self.registers.put(register, wall_s):
                self.put_in_force(register)
                self.received += 1
                taken = True
                # What pushes others out is no reason to ask its sender for more.
                if self._has_room(register, sender if sender else register.node):
                    news = True
        self.unsaved = self.unsaved or taken
        return news

    def _has_room(self, register: Register, sender: bytes) -> bool:
        """Note a register that was taken. If it is one too many of those that are unknown, the
        oldest of these is dropped; ``False`` then."""
        key = (register.pattern, register.name)
        if self.is_known(register):
            self.unknown.forget(key)
            return True
        oldest = self.unknown.add(key, sender)
        if oldest is None:
            return True
        self.registers.restore(oldest, None)
        self.put_out_of_force(oldest)
        return False

    def load(
        self, registers: list[Register], greatest: i64, wall_s: i64, generation: i64 = 0
    ) -> None:
        """Begin with what the file has; ``generation``, ``greatest``: the greatest generation, and
        counter of it, seen before."""
        self.registers.begin(generation, greatest)
        self.merge(registers, wall_s)
        self.refused = Refusals()
        self.received = 0
        self.unsaved = False

    def drop_old(self, wall_s: i64) -> None:
        """Drop deletions that were kept for long enough, a bounded number of them."""
        if self.registers.drop_old(wall_s):
            self.unsaved = True

    def clear(self) -> None:
        """Forget the table: this node belongs to no cluster any more."""
        keys = [(register.pattern, register.name) for register in self.registers.all()]
        self.registers.clear()
        self.unknown = Unknown()
        for key in keys:
            self.put_out_of_force(key)
        self.unsaved = True

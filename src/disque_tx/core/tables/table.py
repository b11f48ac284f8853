"""A table that all nodes have alike, as one node holds it.

Checks are made where a client changes the table. What other nodes changed is taken as it is, or
the tables would differ: what this version does not know, or could not set, is kept and passed on,
and is not in force here. What being in force means is each table's own.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.tables.registers import REGISTERS_MAX, Key, Registers
from disque_tx.messages.tables import Register


class SharedTable:
    """``number``: of the table, in messages. ``registers``: all of it. ``received``: how many
    changes came from other nodes; ``refused``: how many of theirs could not be taken. ``unsaved``:
    the file does not have all of the table. ``registers_max``: how many registers clients may
    make."""

    __slots__ = ("number", "received", "refused", "registers", "registers_max", "unsaved")

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.registers: Registers = Registers()
        self.registers_max: i64 = REGISTERS_MAX
        self.received: i64 = 0
        self.refused: i64 = 0
        self.unsaved: bool = False

    def put_in_force(self, register: Register) -> None:
        """The register, which may be a deletion, holds from now on."""
        raise NotImplementedError

    def put_out_of_force(self, key: Key) -> None:
        """There is nothing under this key any more."""
        raise NotImplementedError

    # -- changes of clients ------------------------------------------------------------------

    def apply(self, registers: list[Register], wall_s: i64) -> list[tuple[Key, Register | None]]:
        """Make changes that were planned; returns what was there before, for :meth:`revert`."""
        before: list[tuple[Key, Register | None]] = []
        for register in registers:
            key = (register.pattern, register.name)
            before.append((key, self.registers.get(register.pattern, register.name)))
            self.registers.put(register, wall_s)
            self.put_in_force(register)
        self.unsaved = self.unsaved or bool(registers)
        return before

    def revert(self, before: list[tuple[Key, Register | None]]) -> None:
        """Undo changes; their counter stays used."""
        for key, register in before:
            self.registers.restore(key, register)
            if register is None:
                self.put_out_of_force(key)
            else:
                self.put_in_force(register)

    # -- changes of others -------------------------------------------------------------------

    def merge(self, registers: list[Register], wall_s: i64) -> bool:
        """Take the registers of another node, or of the file; whether any of them was new."""
        news = False
        for register in registers:
            if not self.registers.is_credible(register, wall_s):
                self.refused += 1
            elif self.registers.put(register, wall_s):
                self.put_in_force(register)
                self.received += 1
                news = True
        self.unsaved = self.unsaved or news
        return news

    def load(self, registers: list[Register], greatest: i64, wall_s: i64) -> None:
        """Begin with what the file has; ``greatest``: the greatest counter seen before."""
        self.registers.greatest = self.registers.loaded = greatest
        self.merge(registers, wall_s)
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
        for key in keys:
            self.put_out_of_force(key)
        self.unsaved = True

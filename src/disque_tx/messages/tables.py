"""The messages about a table that all nodes have alike, and the registers that it is made of.

Cluster protocol, section 21.3. They are sent to nodes that have shown ``CAN_TABLES`` only.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import TABLE_CHANGE, TABLE_DIGEST, TABLE_PULL

#: The table of policies, and that of schedules; others may follow.
POLICIES: Final = 1
SCHEDULES: Final = 2
#: The longest pattern, name of a setting, and value, in bytes.
PATTERN_BYTES_MAX: Final = 1_024
NAME_BYTES_MAX: Final = 64
VALUE_BYTES_MAX: Final = 4_096
#: The longest value in the table of schedules: a body and what else a schedule consists of.
SCHEDULE_BYTES_MAX: Final = 24 * 1024
#: What a register takes on the bus besides its pattern, name and value.
REGISTER_BYTES: Final = 64
#: The most registers, and bytes of them, in one message.
CHANGES_MAX: Final = 500
CHANGES_BYTES_MAX: Final = 48 * 1024


@mypyc_attr(acyclic=True)
class Register:
    """The value of one setting of one pattern. A register never changes: a new value is a new
    register.

    ``generation``: how often its table had been repaired when it was made. ``counter`` and
    ``node``: the change that it is, and the ID of the node that made it. ``deleted_s``: 0, or when
    the setting was deleted, in seconds since 1970; the value is empty then. ``line``: its line in
    the file, once that was needed.
    """

    __slots__ = ("counter", "deleted_s", "generation", "line", "name", "node", "pattern", "value")

    def __init__(
        self,
        pattern: bytes,
        name: bytes,
        value: bytes,
        counter: i64,
        node: bytes,
        deleted_s: i64 = 0,
        *,
        generation: i64 = 0,
    ) -> None:
        self.pattern: bytes = pattern
        self.name: bytes = name
        self.value: bytes = value
        self.counter: i64 = counter
        self.node: bytes = node
        self.deleted_s: i64 = deleted_s
        self.generation: i64 = generation
        self.line: bytes = b""

    def wire_bytes(self) -> i64:
        """What it takes on the bus."""
        return REGISTER_BYTES + len(self.pattern) + len(self.name) + len(self.value)

    def fields(self) -> tuple[bytes, bytes, bytes, int, bytes, int, int]:
        """Everything that makes it this register."""
        counter, deleted_s = int(self.counter), int(self.deleted_s)
        generation = int(self.generation)
        return self.pattern, self.name, self.value, counter, self.node, deleted_s, generation


@mypyc_attr(acyclic=True)
class TableChange(Message):
    """TABLE CHANGE: registers that the receiver may not have. ``table``: which table they are of.
    ``pulled``: they answer a TABLE PULL; ``last``: and there are no more behind them."""

    __slots__ = ("last", "pulled", "registers", "table")

    def __init__(
        self,
        registers: list[Register],
        pulled: bool = False,
        last: bool = False,
        table: i64 = POLICIES,
    ) -> None:
        super().__init__(TABLE_CHANGE)
        self.table: i64 = table
        self.registers: list[Register] = registers
        self.pulled: bool = pulled
        self.last: bool = last


@mypyc_attr(acyclic=True)
class TableDigest(Message):
    """TABLE DIGEST: what the sender's table adds up to. ``digest``: of all registers, 64 bits.
    ``registers``: how many there are."""

    __slots__ = ("digest", "registers", "table")

    def __init__(self, digest: int, registers: i64, table: i64 = POLICIES) -> None:
        super().__init__(TABLE_DIGEST)
        self.table: i64 = table
        self.digest: int = digest
        self.registers: i64 = registers


@mypyc_attr(acyclic=True)
class TablePull(Message):
    """TABLE PULL: the registers behind this key are wanted; both empty: from the first on."""

    __slots__ = ("name", "pattern", "table")

    def __init__(self, pattern: bytes, name: bytes, table: i64 = POLICIES) -> None:
        super().__init__(TABLE_PULL)
        self.table: i64 = table
        self.pattern: bytes = pattern
        self.name: bytes = name

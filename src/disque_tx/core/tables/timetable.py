"""The table of schedules: what may be changed, and what is in force (client protocol, section 30).

A schedule has two registers: its definition, and the last occurrence of it that was made. The
counter of the second is the time of that occurrence, or one more than the register had if that is
greater: so it grows with every occurrence, whatever the clocks say. A third one is there if a
client wanted an occurrence left out: up to which time. It does not count as made.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.tables.definition import (
    DEFINITION,
    LAST,
    SKIPPED,
    TIME_S_MAX,
    Definition,
    check_job,
    check_name,
    read,
)
from disque_tx.core.tables.registers import COUNTER_MAX, Key
from disque_tx.core.tables.table import REPAIRED, SharedTable
from disque_tx.errors import CommandError
from disque_tx.messages.tables import SCHEDULE_BYTES_MAX, SCHEDULES, Register

#: Schedules, and bytes of all their definitions, up to which clients may add more.
SCHEDULES_MAX: Final = 10_000
BYTES_MAX: Final = 16 * 1024 * 1024
_DIGITS_MAX: Final = 18


class Timetable(SharedTable):
    """``active``: there is at least one schedule. ``definitions``: by name. ``changed``: names of
    schedules of which something has changed, until whoever acts on that has read it.
    ``schedules_max``, ``bytes_max``: how many of them clients may make, and of what size."""

    __slots__ = (
        "_bytes",
        "_last",
        "_skipped",
        "active",
        "bytes_max",
        "changed",
        "definitions",
        "schedules_max",
    )

    def __init__(self) -> None:
        super().__init__(SCHEDULES)
        self.registers.value_bytes_max = SCHEDULE_BYTES_MAX
        self.active: bool = False
        self.definitions: dict[bytes, Definition] = {}
        self.changed: OrderedDict[bytes, None] = OrderedDict()
        self.schedules_max: i64 = SCHEDULES_MAX
        self.bytes_max: i64 = BYTES_MAX
        self._last: dict[bytes, tuple[int, int]] = {}
        self._skipped: dict[bytes, tuple[int, int]] = {}
        self._bytes: i64 = 0

    def names(self) -> list[bytes]:
        """The names of all schedules, in byte order."""
        return sorted(self.definitions)

    def position_s(self, name: bytes) -> i64:
        """Up to which time the occurrences of a schedule are done with: the last one made, or else
        when it was set."""
        definition = self.definitions[name]
        return max(self.last_s(name), definition.start_s)

    def last_s(self, name: bytes) -> i64:
        """The last occurrence that was made of a schedule since it was set; 0 if there is none."""
        return self._of_definition(name, self._last)

    def skipped_s(self, name: bytes) -> i64:
        """Up to which time the occurrences of a schedule are left out because clients want that; 0
        for none. What was wanted of another definition does not count."""
        return self._of_definition(name, self._skipped)

    def _of_definition(self, name: bytes, times: dict[bytes, tuple[int, int]]) -> i64:
        counter, time_s = times.get(name, (0, 0))
        return time_s if counter == self.definitions[name].counter else 0

    # -- changes -----------------------------------------------------------------------------

    def plan_set(self, name: bytes, wanted: Definition, node_id: bytes) -> list[Register]:
        """The change that makes a schedule, or gives it another definition; none if it has that
        one. A schedule that is paused stays paused.

        ``CommandError`` for a name or a job that cannot be, and for a table that is full.
        """
        check_name(name)
        check_job(wanted.request)
        before = self.definitions.get(name)
        if before is not None:
            if before.content() == wanted.content():
                return []
            wanted.paused = before.paused
        elif len(self.definitions) >= self.schedules_max:
            raise CommandError("ERR", f"There are {self.schedules_max} schedules already")
        value = wanted.value()
        if self._bytes + len(value) > self.bytes_max:
            text = f"All schedules together take more than {self.bytes_max} bytes"
            raise CommandError("ERR", text)
        self._check_room(2)
        return [self._definition(name, value, node_id)]

    def _check_room(self, registers: i64) -> None:
        """Raise ``CommandError`` if the table has no room for more registers."""
        if len(self.registers) + registers > self.registers_max:
            raise CommandError(
                "ERR",
                f"The table of schedules holds {self.registers_max} entries already, those that"
                " were deleted in the last 7 days among them",
            )

    def _definition(self, name: bytes, value: bytes, node_id: bytes) -> Register:
        registers = self.registers
        counter = registers.next_counter()
        return Register(name, DEFINITION, value, counter, node_id, generation=registers.generation)

    def plan_del(self, name: bytes, node_id: bytes, wall_s: i64) -> list[Register]:
        """The changes that delete a schedule; none if there is none."""
        if name not in self.definitions:
            return []
        counter, generation = self.registers.next_counter(), self.registers.generation
        deleted_s = max(wall_s, 1)
        return [
            Register(name, register.name, b"", counter, node_id, deleted_s, generation=generation)
            for register in self.registers.of(name)
            if not register.deleted_s
        ]

    def plan_pause(self, name: bytes, paused: bool, node_id: bytes, wall_s: i64) -> list[Register]:
        """The change that pauses a schedule, or lets it go on from now; none if that is so already.

        ``CommandError`` NOSCHEDULE if there is none.
        """
        definition = self.find(name)
        if definition.paused == paused:
            return []
        changed = definition.started(wall_s)
        changed.paused = paused
        return [self._definition(name, changed.value(), node_id)]

    def plan_skip(self, name: bytes, time_s: i64, node_id: bytes) -> list[Register]:
        """The change that leaves out the occurrences of a schedule up to this time.

        ``CommandError`` NOSCHEDULE if there is none, and for a table that is full.
        """
        value = b"%d %d" % (self.find(name).counter, time_s)
        registers = self.registers
        if registers.get(name, SKIPPED) is None:
            self._check_room(1)
        counter, generation = registers.next_counter(), registers.generation
        return [Register(name, SKIPPED, value, counter, node_id, generation=generation)]

    def find(self, name: bytes) -> Definition:
        """The schedule of this name; ``CommandError`` NOSCHEDULE if there is none."""
        definition = self.definitions.get(name)
        if definition is None:
            raise CommandError("NOSCHEDULE", "There is no schedule of this name")
        return definition

    def made(self, name: bytes, time_s: i64, node_id: bytes, wall_s: i64) -> list[Register]:
        """Note that an occurrence is done with; the change, for the other nodes."""
        before = self.registers.get(name, LAST)
        generation = self.registers.generation
        counter = time_s
        if before is not None and before.generation == generation:
            counter = min(max(time_s, before.counter + 1), COUNTER_MAX)
        value = b"%d %d" % (self.definitions[name].counter, time_s)
        change = Register(name, LAST, value, counter, node_id, generation=generation)
        self.apply([change], wall_s)
        return [change]

    def renumbered(self, register: Register, wall_s: i64) -> Register:
        """What a schedule was done up to becomes its start, unless a wrong clock has set that: so
        a node that gets the definition before the last occurrence makes nothing again. The last
        occurrence counts from the new definition."""
        found = super().renumbered(register, wall_s)
        definition = self.definitions.get(register.pattern)
        if definition is None or register.deleted_s:
            return found
        if register.name == LAST:
            last_s = self.last_s(register.pattern)
            found.counter = max(last_s, 1)
            found.value = b"%d %d" % (REPAIRED, last_s) if last_s else found.value
        elif register.name == SKIPPED:
            found.value = b"%d %d" % (REPAIRED, self.skipped_s(register.pattern))
        elif register.name == DEFINITION:
            position_s = self.position_s(register.pattern)
            if definition.start_s < position_s <= wall_s:
                found.value = definition.started(position_s).value()
        return found

    # -- what is in force --------------------------------------------------------------------

    def is_known(self, register: Register) -> bool:
        return register.name in (DEFINITION, LAST, SKIPPED)

    def put_in_force(self, register: Register) -> None:
        name = register.pattern
        if register.name == LAST:
            self._last[name] = _occurrence(register.value)
        elif register.name == SKIPPED:
            self._skipped[name] = _occurrence(register.value)
        elif register.name == DEFINITION:
            definition = None if register.deleted_s else read(register)
            self._replace(name, definition, len(register.value))
        self.changed[name] = None

    def put_out_of_force(self, key: Key) -> None:
        name, what = key
        if what == LAST:
            self._last.pop(name, None)
        elif what == SKIPPED:
            self._skipped.pop(name, None)
        elif what == DEFINITION:
            self._replace(name, None, 0)
        self.changed[name] = None

    def _replace(self, name: bytes, definition: Definition | None, size: i64) -> None:
        before = self.definitions.pop(name, None)
        if before is not None:
            self._bytes -= before.bytes
        if definition is not None:
            definition.bytes = size
            self._bytes += size
            self.definitions[name] = definition
        self.active = bool(self.definitions)


def _occurrence(value: bytes) -> tuple[int, int]:
    """The definition and the time of an occurrence; zeros for a damaged or deleted one."""
    words = value.split()
    if len(words) != 2:
        return 0, 0
    counter, time_s = words
    if not counter.isdigit() or not time_s.isdigit():
        return 0, 0
    if len(counter) > _DIGITS_MAX or len(time_s) > _DIGITS_MAX:
        return 0, 0
    if int(time_s) > TIME_S_MAX:
        return 0, 0
    return int(counter), int(time_s)

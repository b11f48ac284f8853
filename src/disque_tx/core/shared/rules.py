"""The table of policies of one node: what may be changed, and what a change puts in force."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.bounds import check_glob
from disque_tx.core.shared.patterns import PLAIN_MAX
from disque_tx.core.shared.policies import PATTERNS_MAX, Policies, check_pattern, is_exact
from disque_tx.core.shared.registers import Key
from disque_tx.core.shared.settings import (
    COPY_TO,
    QUEUE_MARK,
    SETTINGS,
    is_valid,
    normal_value,
)
from disque_tx.core.shared.table import SharedTable
from disque_tx.errors import CommandError
from disque_tx.globs import glob_match
from disque_tx.quoting import split
from disque_tx.tablemessages import POLICIES, Register

Pairs = list[tuple[bytes, bytes]]
_DEAD_QUEUE: Final = b"dead-queue"
#: Dead letters of dead letters are followed so far to find a circle.
_CHAIN_MAX: Final = 16
#: So many queues are looked at to find copies that go round in a circle.
_COPIES_MAX: Final = 256


class PolicyTable(SharedTable):
    """The settings of all patterns, a register each."""

    __slots__ = ("_policies",)

    def __init__(self, policies: Policies) -> None:
        super().__init__(POLICIES)
        self._policies: Policies = policies

    # -- changes of clients ------------------------------------------------------------------

    def plan_set(self, pattern: bytes, pairs: Pairs, node_id: bytes) -> list[Register]:
        """The changes that give a pattern these settings; nothing is changed yet.

        ``CommandError`` for a pattern, setting or value that cannot be, for a table that is full,
        and for dead letters or copies that would move in a circle.
        """
        check_pattern(pattern)
        if not self._policies.values(pattern):
            check_glob("Policy pattern", pattern)
        values: dict[bytes, bytes] = {}
        for name, value in pairs:
            name = name.lower()
            values[name] = normal_value(name, value)
        self._check_room(pattern, values)
        if _DEAD_QUEUE in values:
            self._check_chain(pattern, values[_DEAD_QUEUE])
        if COPY_TO in values:
            self._check_copies(pattern, split(values[COPY_TO]) or [])
        counter, generation = self.registers.next_counter(), self.registers.generation
        return [
            Register(pattern, name, values[name], counter, node_id, generation=generation)
            for name in values
        ]

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
        counter, generation = self.registers.next_counter(), self.registers.generation
        deleted_s = max(wall_s, 1)
        return [
            Register(pattern, name, b"", counter, node_id, deleted_s, generation=generation)
            for name in there
        ]

    def _check_room(self, pattern: bytes, values: dict[bytes, bytes]) -> None:
        if not self._policies.values(pattern) and len(self._policies) >= PATTERNS_MAX:
            raise CommandError("ERR", f"There are {PATTERNS_MAX} patterns with policies already")
        if not self._policies.values(pattern) and not self._policies.has_room(pattern):
            raise CommandError(
                "ERR",
                f"There are {PLAIN_MAX} patterns that begin like this one already, and have no"
                " other letters behind a star",
            )
        new = [name for name in values if self.registers.get(pattern, name) is None]
        if len(self.registers) + len(new) > self.registers_max:
            raise CommandError(
                "ERR",
                f"The table of policies holds {self.registers_max} settings already, those that"
                " were deleted in the last 7 days among them",
            )

    def _check_chain(self, pattern: bytes, dead_queue: bytes) -> None:
        """Refuse a queue of dead letters whose own dead letters come back to it."""
        if not is_exact(pattern):
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

    # -- what is in force --------------------------------------------------------------------

    def is_known(self, register: Register) -> bool:
        if register.deleted_s:
            return register.name in SETTINGS
        return is_valid(register.name, register.value)

    def put_in_force(self, register: Register) -> None:
        pattern, name = register.pattern, register.name
        if register.deleted_s or not is_valid(name, register.value):
            self._policies.unset(pattern, name)
        else:
            self._policies.set(pattern, name, register.value)

    def put_out_of_force(self, key: Key) -> None:
        self._policies.unset(key[0], key[1])


def _shown(name: bytes) -> str:
    return name[:64].decode("latin-1")

"""A table that all nodes have alike: registers, of which the last writer wins.

1. A register is the value of one setting of one pattern, or that it was deleted. Two registers of
   the same key are ordered by (generation, counter, node ID), and, should those be equal because a
   node has lost its disk, by what they hold; so all nodes agree on the greater one, in whatever
   order they get them, and however often.
2. The counter of a change is one more than the greatest of its generation that the node has seen.
   A repair begins the next generation, in which counters start again.
3. A deletion is kept for seven days by the wall clock, so that a node that was away gets it; then
   it is dropped. Its time is a part of it, so all nodes drop it at about the same time.
4. The digest is the sum of a hash of every register: it does not depend on their order, and is
   kept up to date with every change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.errors import CommandError
from disque_tx.messages.records import NODE_ID_LENGTH
from disque_tx.messages.tables import (
    NAME_BYTES_MAX,
    PATTERN_BYTES_MAX,
    VALUE_BYTES_MAX,
    Register,
)

#: Registers, deletions among them, up to which a node makes new ones; it takes twice as many from
#: others, who may have made theirs while they were apart.
REGISTERS_MAX: Final = 200_000
#: A deletion is kept for so long.
DELETION_KEPT_S: Final = 7 * 86_400
#: Where counters end.
COUNTER_MAX: Final = 10**18 - 1
#: The counter of a received register may be what a change per millisecond since 1970 comes to, and
#: a day of them more. No table gets there by itself; and who runs its counters up to this cannot
#: keep others from changing it, as time goes on. A clock that is behind ``CLOCK_S_MIN`` is not
#: believed.
COUNTER_AHEAD_MAX: Final = 86_400_000
CLOCK_S_MIN: Final = 1_700_000_000
#: A table that was run up before goes on from where its file ends, by so much.
COUNTER_STEP_MAX: Final = 1 << 30
#: Generations are bounded by the wall clock, too: one for each second since 1970, and a day more.
GENERATION_AHEAD_MAX: Final = 86_400
#: Deletions dropped at once.
DROPPED_MAX: Final = 1_000
_TIME_MAX: Final = 1 << 40
_DIGEST_MASK: Final = (1 << 64) - 1

Key = tuple[bytes, bytes]


def check_register(register: Register, value_bytes_max: i64 = VALUE_BYTES_MAX) -> bool:
    """Whether a register can be in a table at all; its setting and value need not be known."""
    return (
        0 < len(register.pattern) <= PATTERN_BYTES_MAX
        and 0 < len(register.name) <= NAME_BYTES_MAX
        and len(register.value) <= value_bytes_max
        and len(register.node) == NODE_ID_LENGTH
        and 0 < register.counter <= COUNTER_MAX
        and register.generation >= 0
        and 0 <= register.deleted_s < _TIME_MAX
        and (register.deleted_s == 0 or not register.value)
    )


def hash64(register: Register) -> int:
    """The part of a register in the digest."""
    head = b"%d %s %d %d %d " % (
        register.counter,
        register.node,
        register.deleted_s,
        len(register.pattern),
        len(register.name),
    )
    text = head + register.pattern + register.name + register.value
    if register.generation:
        text = b"%d " % register.generation + text
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def is_later(register: Register, other: Register) -> bool:
    """Whether ``register`` wins against ``other``, which has the same key."""
    if register.generation != other.generation:
        return register.generation > other.generation
    if register.counter != other.counter:
        return register.counter > other.counter
    mine = (register.node, int(register.deleted_s), register.value)
    return mine > (other.node, int(other.deleted_s), other.value)


@mypyc_attr(acyclic=True)
class Registers:
    """The table. ``generation``: the greatest one ever seen; ``greatest``: the greatest counter
    seen of it; ``loaded``: that of the file. ``digest``: of all registers. ``value_bytes_max``: the
    longest value of this table."""

    __slots__ = (
        "_deletions",
        "_dropping",
        "_keys",
        "_registers",
        "digest",
        "generation",
        "greatest",
        "loaded",
        "value_bytes_max",
    )

    def __init__(self) -> None:
        self.value_bytes_max: i64 = VALUE_BYTES_MAX
        self.generation: i64 = 0
        self.greatest: i64 = 0
        self.loaded: i64 = 0
        self.digest: int = 0
        self._registers: dict[Key, Register] = {}
        self._keys: list[Key] = []
        self._deletions: i64 = 0
        # When deletions are dropped; entries of registers that were written again are skipped.
        self._dropping: list[tuple[int, Key]] = []

    def __len__(self) -> int:
        return len(self._registers)

    def get(self, pattern: bytes, name: bytes) -> Register | None:
        """The register of a setting, which may be a deletion."""
        return self._registers.get((pattern, name))

    def next_counter(self) -> i64:
        """The counter of the next change; ``CommandError`` when there is none left."""
        if self.greatest >= COUNTER_MAX:
            raise CommandError("ERR", "The counter of the table is at its end")
        return self.greatest + 1

    def begin(self, generation: i64, greatest: i64) -> None:
        """Go on from this generation and this greatest counter of it, as the file says."""
        self.generation = generation
        self.greatest = self.loaded = greatest

    def is_credible(self, register: Register, wall_s: i64) -> bool:
        """Whether a register that came from outside may be put into the table. Registers of
        earlier generations use up no counters, so theirs may be any."""
        if register.generation >= self.generation:
            clock_s = max(wall_s, CLOCK_S_MIN)
            most = clock_s * 1000 + COUNTER_AHEAD_MAX
            if register.generation == self.generation:
                most = max(most, self.loaded + COUNTER_STEP_MAX)
            elif register.generation > clock_s + GENERATION_AHEAD_MAX:
                return False
            if register.counter > most:
                return False
        return check_register(register, self.value_bytes_max)

    def put(self, register: Register, wall_s: i64) -> bool:
        """Take a register in; ``False`` if nothing changed: it lost against the one that is there,
        or it is a deletion of nothing that is kept for too long already."""
        key = (register.pattern, register.name)
        if register.generation > self.generation:
            self.begin(register.generation, 0)
        if register.generation == self.generation:
            self.greatest = max(self.greatest, register.counter)
        before = self._registers.get(key)
        if before is None:
            if is_over(register, wall_s) or len(self._registers) >= 2 * REGISTERS_MAX:
                return False
        elif not is_later(register, before):
            return False
        self.restore(key, register)
        return True

    def restore(self, key: Key, register: Register | None) -> None:
        """Set the register of a key, whatever was there before; ``None`` for none."""
        before = self._registers.get(key)
        if before is not None:
            self.digest = (self.digest - hash64(before)) & _DIGEST_MASK
            self._deletions -= before.deleted_s != 0
        if register is None:
            if before is not None:
                del self._registers[key]
                del self._keys[bisect_left(self._keys, key)]
            return
        if before is None:
            insort(self._keys, key)
        self._registers[key] = register
        self.digest = (self.digest + hash64(register)) & _DIGEST_MASK
        if register.deleted_s:
            self._deletions += 1
            heappush(self._dropping, (int(register.deleted_s) + DELETION_KEPT_S, key))
            if len(self._dropping) > 2 * self._deletions + DROPPED_MAX:
                self._forget_skipped()

    def _forget_skipped(self) -> None:
        kept: list[tuple[int, Key]] = []
        for key in self._keys:
            deleted_s = self._registers[key].deleted_s
            if deleted_s:
                kept.append((int(deleted_s) + DELETION_KEPT_S, key))
        heapify(kept)
        self._dropping = kept

    def drop_old(self, wall_s: i64) -> bool:
        """Drop deletions that were kept long enough, a bounded number of them; whether there were
        any."""
        dropped = False
        for _ in range(DROPPED_MAX):
            if not self._dropping or self._dropping[0][0] > wall_s:
                break
            due_s, key = heappop(self._dropping)
            register = self._registers.get(key)
            if register is not None and register.deleted_s:
                if int(register.deleted_s) + DELETION_KEPT_S == due_s:
                    self.restore(key, None)
                    dropped = True
        return dropped

    def after(self, pattern: bytes, name: bytes, count: i64, size: i64) -> list[Register]:
        """The registers behind this key, in the order of their keys: up to ``count`` of them, and
        up to ``size`` bytes, but at least one if there is one."""
        found: list[Register] = []
        at: i64 = bisect_right(self._keys, (pattern, name))
        while at < len(self._keys) and len(found) < count:
            register = self._registers[self._keys[at]]
            size -= register.wire_bytes()
            if found and size < 0:
                break
            found.append(register)
            at += 1
        return found

    def of(self, pattern: bytes) -> list[Register]:
        """The registers of one pattern, in the order of their names."""
        found: list[Register] = []
        at: i64 = bisect_left(self._keys, (pattern, b""))
        while at < len(self._keys) and self._keys[at][0] == pattern:
            found.append(self._registers[self._keys[at]])
            at += 1
        return found

    def all(self) -> list[Register]:
        """All registers, in the order of their keys."""
        return [self._registers[key] for key in self._keys]

    def clear(self) -> None:
        """Forget everything; the generation and the greatest counter, too."""
        self.begin(0, 0)
        self.digest = 0
        self._registers = {}
        self._keys = []
        self._deletions = 0
        self._dropping = []


def is_over(register: Register, wall_s: i64) -> bool:
    """Whether this is a deletion that needs not be kept any more."""
    return register.deleted_s != 0 and register.deleted_s + DELETION_KEPT_S <= wall_s

"""Policies: which settings are in force for a queue.

1. A policy is settings for the queues whose names match a pattern (a glob).
2. A queue takes each setting from the most specific matching pattern that has it: an exact name,
   then the longest literal prefix, then the greater pattern in byte order.
3. What the configuration file of a node says is weaker than anything in the table of the cluster.
4. No request walks the patterns: what was found for a queue is remembered until a policy changes,
   and what is not an exact name is found by its literal prefix, and by what else it must have.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.shared.patterns import PatternIndex, literal_prefix
from disque_tx.core.shared.settings import (
    COPY_TO,
    LIMITS,
    MAX_LENGTH,
    RETRY_FROM,
    QueuePolicy,
    normal_value,
    set_value,
)
from disque_tx.errors import CommandError
from disque_tx.tablemessages import PATTERN_BYTES_MAX

#: Patterns in the table.
PATTERNS_MAX: Final = 10_000
#: Queues whose policy is remembered, and bytes of their names.
REMEMBERED_MAX: Final = 100_000
_REMEMBERED_BYTES_MAX: Final = 16 * 1024 * 1024

Values = dict[bytes, bytes]
_NONE: Final = QueuePolicy(b"")


def is_exact(pattern: bytes) -> bool:
    """Whether a pattern is nothing but the name of a queue."""
    return len(literal_prefix(pattern)) == len(pattern)


def check_pattern(pattern: bytes) -> None:
    """Raise ``CommandError`` for a pattern that no policy can have."""
    if not pattern:
        raise CommandError("ERR", "A policy needs a pattern")
    if len(pattern) > PATTERN_BYTES_MAX:
        raise CommandError("ERR", f"Policy pattern longer than {PATTERN_BYTES_MAX} bytes")


def checked_pairs(pattern: bytes, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Settings of a pattern with their values in normal form, for a configuration; ``ValueError``
    for what no policy can have."""
    try:
        check_pattern(pattern)
        return [(name.lower(), normal_value(name.lower(), value)) for name, value in pairs]
    except CommandError as error:
        raise ValueError(error.text) from None


class PolicyWatcher:
    """Who acts when a setting comes into force, changes, or goes out of force."""

    def changed(self, pattern: bytes, name: bytes, exact: bool) -> None:
        """The setting ``name`` of a pattern changed. ``exact``: only one queue can match."""
        raise NotImplementedError


class Layer:
    """Settings by pattern, and which patterns match a queue. ``counts``: how many patterns have a
    setting, by its name."""

    __slots__ = ("_exact", "_globs", "_patterns", "counts")

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self._patterns: dict[bytes, Values] = {}
        self._exact: dict[bytes, Values] = {}
        self._globs = PatternIndex()

    def __len__(self) -> int:
        return len(self._patterns)

    def patterns(self) -> list[bytes]:
        """All patterns, in byte order."""
        return sorted(self._patterns)

    def values(self, pattern: bytes) -> Values:
        """The settings of one pattern, by name; empty if it has none."""
        return self._patterns.get(pattern, {})

    def settings(self) -> set[tuple[bytes, bytes]]:
        """Every pattern with every setting that it has."""
        return {(pattern, name) for pattern in self._patterns for name in self._patterns[pattern]}

    def set(self, pattern: bytes, name: bytes, value: bytes) -> None:
        """Set a setting, its value in its normal form."""
        values = self._patterns.get(pattern)
        if values is None:
            values = self._patterns[pattern] = {}
            if is_exact(pattern):
                self._exact[pattern] = values
            else:
                self._globs.add(pattern)
        if name not in values:
            self.counts[name] = self.counts.get(name, 0) + 1
        values[name] = value

    def unset(self, pattern: bytes, name: bytes) -> bool:
        """Remove a setting; ``False`` if it was not there."""
        values = self._patterns.get(pattern)
        if values is None or values.pop(name, None) is None:
            return False
        self.counts[name] -= 1
        if not values:
            del self._patterns[pattern]
            if self._exact.pop(pattern, None) is None:
                self._globs.remove(pattern)
        return True

    def has_room(self, pattern: bytes) -> bool:
        """See :meth:`PatternIndex.has_room`."""
        return is_exact(pattern) or self._globs.has_room(pattern)

    def matching(self, queue: bytes) -> list[bytes]:
        """The patterns that match a queue, the most specific first."""
        found: list[bytes] = []
        if queue in self._exact:
            found.append(queue)
        found += self._globs.matching(queue)
        return found


class Policies:
    """The policies in force. ``active``: there is at least one; of some pattern at least,
    ``limited``: one that limits what is delivered, ``copying``: ``copy-to``, ``bounded``:
    ``max-length``, ``delivering``: one that is looked at with each delivery.

    There are two layers: what the cluster has agreed on, and what the configuration file of this
    node says, which is in force only where the first says nothing. :meth:`set`, :meth:`unset` and
    :meth:`set_directives` change what is in force here, and nothing else: values were checked
    before, and other nodes get them elsewhere. ``watcher``: ``None`` for none.
    """

    __slots__ = (
        "_directives",
        "_known",
        "_known_bytes",
        "_table",
        "active",
        "bounded",
        "copying",
        "delivering",
        "limited",
        "watcher",
    )

    def __init__(self) -> None:
        self.active: bool = False
        self.limited: bool = False
        self.copying: bool = False
        self.bounded: bool = False
        self.delivering: bool = False
        self.watcher: PolicyWatcher | None = None
        self._table = Layer()
        self._directives = Layer()
        # For queues without a policy, ``_NONE``.
        self._known: dict[bytes, QueuePolicy] = {}
        self._known_bytes: i64 = 0

    def __len__(self) -> int:
        return len(self._table)

    def patterns(self) -> list[bytes]:
        """All patterns of the cluster, in byte order."""
        return self._table.patterns()

    def values(self, pattern: bytes) -> Values:
        """The settings that the cluster has for one pattern, by name; empty if it has none."""
        return self._table.values(pattern)

    def has_room(self, pattern: bytes) -> bool:
        """Whether a client may give this pattern, which has none, settings: not if too many have
        to be compared with each name already."""
        return self._table.has_room(pattern)

    def set(self, pattern: bytes, name: bytes, value: bytes) -> None:
        """Put a setting in force, its value in its normal form."""
        self._table.set(pattern, name, value)
        self._changed()
        self._watched(pattern, name)

    def unset(self, pattern: bytes, name: bytes) -> None:
        """Take a setting out of force, if it is in force."""
        if self._table.unset(pattern, name):
            self._changed()
            self._watched(pattern, name)

    def set_directives(self, rows: list[tuple[bytes, bytes, bytes]]) -> None:
        """The configuration has these patterns, settings and values, and no others."""
        before = self._directives.settings()
        self._directives = Layer()
        for pattern, name, value in rows:
            self._directives.set(pattern, name, value)
        self._changed()
        for pattern, name in before | self._directives.settings():
            self._watched(pattern, name)

    def _changed(self) -> None:
        self._known.clear()
        self._known_bytes = 0
        self.active = len(self._table) > 0 or len(self._directives) > 0
        self.limited = self._has(*LIMITS)
        self.copying = self._has(COPY_TO)
        self.bounded = self._has(MAX_LENGTH)
        self.delivering = self.limited or self._has(RETRY_FROM)

    def _has(self, *names: bytes) -> bool:
        """Whether any pattern has any of these settings."""
        for layer in (self._table, self._directives):
            for name in names:
                if layer.counts.get(name, 0) > 0:
                    return True
        return False

    def _watched(self, pattern: bytes, name: bytes) -> None:
        if self.watcher is not None:
            self.watcher.changed(pattern, name, is_exact(pattern))

    # -- for one queue -----------------------------------------------------------------------

    def of(self, queue: bytes) -> QueuePolicy | None:
        """What is in force for a queue; ``None`` if nothing is."""
        if not self.active:
            return None
        policy = self._known.get(queue)
        if policy is None:
            policy = self._remembered(queue)
        return policy if policy is not _NONE else None

    def _remembered(self, queue: bytes) -> QueuePolicy:
        """What is in force for a queue, looked for once."""
        policy = _NONE
        sources = self.sources(queue)
        if sources:
            policy = QueuePolicy(queue)
            for name, (value, _) in sources.items():
                set_value(policy, queue, name, value)
        self._known_bytes += len(queue)
        if len(self._known) >= REMEMBERED_MAX or self._known_bytes > _REMEMBERED_BYTES_MAX:
            self._known.clear()
            self._known_bytes = len(queue)
        self._known[queue] = policy
        return policy

    def sources(self, queue: bytes) -> dict[bytes, tuple[bytes, bytes]]:
        """The settings in force for a queue: by name, the value and the pattern it comes from."""
        found: dict[bytes, tuple[bytes, bytes]] = {}
        for layer in (self._table, self._directives):
            for pattern in layer.matching(queue):
                for name, value in layer.values(pattern).items():
                    if name not in found:
                        found[name] = (value, pattern)
        return found

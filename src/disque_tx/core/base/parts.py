"""The parts of a node, in the order in which they have their turn."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.base.part import NEVER_MS, Part
from disque_tx.core.base.schedule import earlier


class Parts(Part):
    """All parts as one. They are asked for their deadlines in every turn, so they form a chain:
    where it is compiled, that costs half of a list, whose elements must be checked."""

    def __init__(self, parts: list[Part]) -> None:
        self._first: Part | None = None
        for part in reversed(parts):
            part.next_part = self._first
            self._first = part

    def run_due(self) -> None:
        part = self._first
        while part is not None:
            part.run_due()
            part = part.next_part

    def next_due_ms(self) -> i64:
        due_ms: i64 = NEVER_MS
        part = self._first
        while part is not None:
            due_ms = earlier(due_ms, part.next_due_ms())
            part = part.next_part
        return due_ms

    def forget_all(self) -> None:
        part = self._first
        while part is not None:
            part.forget_all()
            part = part.next_part

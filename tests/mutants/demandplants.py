"""Defects of standing demand (see :mod:`tests.mutants.defects`)."""

from __future__ import annotations

from typing import Any


def keep_credit(right: Any) -> Any:
    """Jobs that come use up no credit, as far as the node knows that was told."""

    def arrived(self: Any, giver: bytes, size: int, more: bool) -> None:
        grants, self.grants = self.grants, {}
        right(self, giver, size, more)
        self.grants = grants

    return arrived


def keep_used_up(right: Any) -> Any:
    """A demand does not end at a node that has sent all that was demanded, as far as is known."""

    def withdraw(self: Any, standing: Any, words: list[bytes]) -> None:
        left = {node_id: one for node_id, one in standing.grants.items() if one.credit > 0}
        standing.grants = left
        right(self, standing, words)

    return withdraw


def refuse_for_good(right: Any) -> Any:
    """Queues of which no jobs were welcome stay so until nodes are asked again."""

    def take(self: Any, name: bytes) -> list[Any]:
        right(self, name)
        return []

    return take

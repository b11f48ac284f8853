"""Defects of keys whose nodes were away, or left."""

from __future__ import annotations

from typing import Any


def always_awake(right: Any) -> Any:
    """A node does not notice that it stood still."""

    def stood_still(self: Any) -> bool:
        return False

    return stood_still

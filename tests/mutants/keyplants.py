"""Defects of keys whose nodes were away, or left."""

from __future__ import annotations

from typing import Any


def always_awake(right: Any) -> Any:
    """A node does not notice that it stood still."""

    def stood_still(self: Any) -> bool:
        return False

    return stood_still


def only_here(right: Any) -> Any:
    """A job that only another node holds counts as gone."""

    def elsewhere(self: Any, job: Any) -> bool:
        return len(job.nodes) > 1

    return elsewhere

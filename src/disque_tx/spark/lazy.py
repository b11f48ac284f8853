"""Names of a package that are imported when they are first used.

Spark's Python library takes a tenth of a second to import, and what runs without Spark must also
run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_from(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package. ``places``: name → the module that defines it."""

    def found(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return found

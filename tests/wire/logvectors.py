"""Logs written by the original, and their contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAMES = ("node0", "node1", "node2", "node0-bgrewrite", "shutdown-rewrite")
_FOLDER = Path(__file__).parent.parent / "vectors" / "aof"


def log(name: str) -> bytes:
    """The bytes of the file."""
    return (_FOLDER / f"{name}.aof").read_bytes()


def rows(name: str) -> list[Any]:
    """The records of the file, as a list of dictionaries."""
    found = json.loads((_FOLDER / f"{name}.aof.json").read_bytes())
    return found if isinstance(found, list) else found["commands"]

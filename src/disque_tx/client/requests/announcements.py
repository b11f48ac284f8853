"""The text by which a worker, or what works like one, describes itself to nodes: CLIENT ANNOUNCE
(client protocol, section 8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

#: The longest text that a node takes.
TEXT_BYTES_MAX: Final = 4_096
_CHARACTERS_MAX: Final = 100


def short(text: str) -> str:
    """A text that leaves room for others."""
    return text[:_CHARACTERS_MAX]


def announcement(values: dict[str, Any], lists: Sequence[str]) -> bytes:
    """Members as an object in JSON that a node takes. Of ``lists``, which are members, the longest
    are cut until it does; ``cut`` says so."""
    text = _encoded(values)
    while len(text) > TEXT_BYTES_MAX:
        values["cut"] = True
        longest = max((values[name] for name in lists), key=lambda one: len(_encoded(one)))
        del longest[len(longest) // 2 :]
        text = _encoded(values)
    return text


def _encoded(values: object) -> bytes:
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")

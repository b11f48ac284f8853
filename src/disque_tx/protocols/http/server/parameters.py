"""What a route takes besides a body: words of the query and headers, and how long they may be."""

from __future__ import annotations

from typing import Any, Final

import attrs

#: Bytes of the name of a queue or a schedule, and of a pattern for names.
NAME_BYTES: Final = 1_024
PATTERN_BYTES: Final = 256
#: And of names with commas between them.
LIST_BYTES: Final = 4 * 1024


@attrs.frozen
class Parameter:
    """A word of the query, or a header. ``kind``: its type in JSON Schema. ``least``, ``most``: of
    a number. ``longest``: bytes of text. ``place``: ``query`` or ``header``."""

    name: str
    summary: str
    kind: str = "string"
    default: Any = None
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    required: bool = False
    longest: int = PATTERN_BYTES
    place: str = "query"

"""Requests as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from disque_tx.client.requests import Word


def pack_in_python(words: tuple[Word, ...]) -> bytes:
    """A request as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def _chosen() -> Callable[[tuple[Word, ...]], bytes]:
    try:
        from hiredis import pack_command
    except ImportError:
        return pack_in_python
    in_c: Any = pack_command
    return in_c  # type: ignore[no-any-return]


#: The fastest that is there.
pack = _chosen()

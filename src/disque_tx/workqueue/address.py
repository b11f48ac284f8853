"""Where a Redis server is."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from disque_tx.workqueue.errors import BadRedisUrl

_PORT: Final = 6379
_FORM: Final = "The address of a Redis server looks like redis://[[user]:password@]host[:port][/db]"


@attrs.frozen
class RedisAddress:
    """``user`` and ``password``: ``None`` for none. ``database``: its number."""

    host: str
    port: int = _PORT
    database: int = 0
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(url: str, password: str | None = None) -> RedisAddress:
    """Understand ``redis://[[user]:password@]host[:port][/db]``.

    Special characters of user and password are %-encoded. ``password``: the one to take when the
    URL has none.

    :raises BadRedisUrl: for anything else; its text holds nothing of the URL.
    """
    try:
        parts = urlsplit(url)
        port = _PORT if parts.port is None else parts.port
    except ValueError:
        raise BadRedisUrl(f"{_FORM}, with a port from 1 to 65535.") from None
    if parts.scheme != "redis" or not parts.hostname or parts.query or parts.fragment:
        raise BadRedisUrl(f"{_FORM}. This has another scheme, no host, or more than that.")
    if not 0 < port < 65536:
        raise BadRedisUrl(f"{_FORM}, with a port from 1 to 65535.")
    if parts.username and parts.password is None:
        raise BadRedisUrl(f"{_FORM}: a colon stands before the password.")
    given = unquote(parts.password) if parts.password else password
    user = unquote(parts.username) if parts.username else None
    return RedisAddress(parts.hostname, port, _database(parts.path), user, given or None)


def _database(path: str) -> int:
    """The number in the path of a URL."""
    text = path.strip("/")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise BadRedisUrl(f"{_FORM}, where db is the number of a database.")
    return int(text)

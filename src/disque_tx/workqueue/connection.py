"""The address of a Redis server, and one connection to it, on txredisapi's protocol."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.protocol import Factory

from disque_tx.workqueue.errors import (
    BadRedisUrl,
    PasswordRefused,
    RedisLost,
    RedisRefused,
    refusal,
)

_PORT: Final = 6379
_FORM: Final = "The address of a Redis server looks like redis://[[user]:password@]host[:port][/db]"


@attrs.frozen
class RedisAddress:
    """Where a Redis server listens. ``user`` and ``password``: ``None`` for none. ``database``: its
    number."""

    host: str
    port: int = _PORT
    database: int = 0
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(url: str, password: str | None = None) -> RedisAddress:
    """Parse ``redis://[[user]:password@]host[:port][/db]``.

    Special characters of user and password are %-encoded. ``password``: used when the URL has
    none.

    :raises BadRedisUrl: for anything else; its text contains nothing of the URL.
    """
    try:
        parts = urlsplit(url)
        port = _PORT if parts.port is None else parts.port
    except ValueError:
        raise BadRedisUrl(f"{_FORM}, with a port from 1 to 65535.") from None
    if parts.scheme != "redis" or not parts.hostname or parts.query or parts.fragment:
        raise BadRedisUrl(f"{_FORM}. This has another scheme, no host, or more parts.")
    if not 0 < port < 65536:
        raise BadRedisUrl(f"{_FORM}, with a port from 1 to 65535.")
    if parts.username and parts.password is None:
        raise BadRedisUrl(f"{_FORM}: a colon stands before the password.")
    if parts.password:
        password = unquote(parts.password)
    user = unquote(parts.username) if parts.username else None
    return RedisAddress(parts.hostname, port, _database(parts.path), user, password or None)


def _database(path: str) -> int:
    """The number in the path of a URL."""
    text = path.strip("/")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise BadRedisUrl(f"{_FORM}, where db is the number of a database.")
    return int(text)


class RedisConnection:
    """An open connection. ``protocol``: txredisapi's, connected. ``id``: the connection's ID, as
    CLIENT ID returns it."""

    def __init__(self, protocol: Any, address: RedisAddress, reactor: Any) -> None:
        self._protocol = protocol
        self._address = address
        self._reactor = reactor
        self.id = 0

    @property
    def usable(self) -> bool:
        """Whether it is connected."""
        return bool(self._protocol.connected)

    def close_now(self) -> Deferred[object]:
        """Close it now. Fires when it is closed."""
        if not self.usable:
            gone: Deferred[object] = Deferred()
            gone.callback(None)
            return gone
        gone = self._protocol.whenDisconnected()
        self._protocol.transport.abortConnection()
        return gone

    async def execute(self, timeout_s: float, *words: str | bytes | int | float) -> Any:
        """Send a command and return the reply: bytes, numbers, ``None``, lists of these.

        Commands may be sent before earlier ones are answered. A cancelled one is executed
        nevertheless.

        :raises RedisRefused: when the reply is an error.
        :raises RedisLost: when the connection fails, or no reply came within ``timeout_s``.
        """
        from txredisapi import RedisError, ResponseError

        if not self.usable:
            raise RedisLost(str(self._address), "the connection was lost", False)
        try:
            reply = self._protocol.execute_command(*words)
            return await reply.addTimeout(timeout_s, self._reactor)
        except ResponseError as error:
            raise refusal(str(self._address), str(error)) from None
        except RedisError as error:
            self._protocol.transport.abortConnection()
            raise RedisLost(str(self._address), str(error), True) from None
        except DeferredTimeout:
            self._protocol.transport.abortConnection()
            raise RedisLost(
                str(self._address), f"it has not answered for {timeout_s:g} s", True
            ) from None


async def connect(address: RedisAddress, reactor: Any, timeout_s: float) -> RedisConnection:
    """Open a connection, authenticate, and select the database.

    :raises RedisLost: when that fails, or takes too long.
    :raises RedisRefused: when the server refuses it.
    """
    # txredisapi imports the global reactor; until it connects, a program can install another one.
    from txredisapi import RedisProtocol

    factory = Factory.forProtocol(lambda: RedisProtocol(charset=None, convertNumbers=False))
    factory.noisy = False
    endpoint = HostnameEndpoint(reactor, address.host, address.port, timeout=timeout_s)
    try:
        protocol: Any = await endpoint.connect(factory)
    except (ConnectError, DNSLookupError, OSError) as error:
        raise RedisLost(str(address), str(error) or type(error).__name__, False) from None
    protocol.transport.setTcpNoDelay(True)
    protocol.transport.setTcpKeepAlive(True)
    connection = RedisConnection(protocol, address, reactor)
    try:
        await _authenticate(connection, address, timeout_s)
    except BaseException:
        connection.close_now()
        raise
    return connection


async def _authenticate(
    connection: RedisConnection, address: RedisAddress, timeout_s: float
) -> None:
    if address.password is not None:
        user = [] if address.user is None else [address.user]
        try:
            await connection.execute(timeout_s, "AUTH", *user, address.password)
        except RedisRefused as error:
            raise PasswordRefused(str(address), error.code, "the password is wrong.") from None
    if address.database:
        await connection.execute(timeout_s, "SELECT", address.database)
    connection.id = int(await connection.execute(timeout_s, "CLIENT", "ID"))

"""One connection to a Redis server, on txredisapi's protocol."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.protocol import Factory

from disque_tx.workqueue.address import RedisAddress
from disque_tx.workqueue.errors import PasswordRefused, RedisLost, RedisRefused, refusal


class Link:
    """``protocol``: txredisapi's, connected. ``id``: what the server calls this connection."""

    def __init__(self, protocol: Any, address: RedisAddress, reactor: Any) -> None:
        self._protocol = protocol
        self._address = address
        self._reactor = reactor
        self.id = 0

    @property
    def usable(self) -> bool:
        """Whether it is connected."""
        return bool(self._protocol.connected)

    def drop(self) -> Deferred[object]:
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

        Commands may be sent before the replies to earlier ones are there. One that is cancelled
        is executed nevertheless.

        :raises RedisRefused: when the reply is an error.
        :raises RedisLost: when the connection fails, or no reply came for so long.
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
                str(self._address), f"it is silent for more than {timeout_s:g} s", True
            ) from None


async def connect(address: RedisAddress, reactor: Any, timeout_s: float) -> Link:
    """Open a connection, give the password, and choose the database.

    :raises RedisLost: when that fails, or takes too long.
    :raises RedisRefused: when the server does not want it.
    """
    # txredisapi imports the global reactor, and a program may choose one until it connects.
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
    link = Link(protocol, address, reactor)
    try:
        await _introduce(link, address, timeout_s)
    except BaseException:
        link.drop()
        raise
    return link


async def _introduce(link: Link, address: RedisAddress, timeout_s: float) -> None:
    if address.password is not None:
        user = [] if address.user is None else [address.user]
        try:
            await link.execute(timeout_s, "AUTH", *user, address.password)
        except RedisRefused as error:
            raise PasswordRefused(str(address), error.code, "the password is not right.") from None
    if address.database:
        await link.execute(timeout_s, "SELECT", address.database)
    link.id = int(await link.execute(timeout_s, "CLIENT", "ID"))

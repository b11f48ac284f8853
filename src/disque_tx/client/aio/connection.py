"""One connection to one node: bytes by asyncio, replies by hiredis.

Requests may follow each other without waiting; replies come in their order. Replies are those of
RESP2, which every node speaks.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import hiredis

from disque_tx.client.addresses import Address
from disque_tx.client.encryption import ssl_context
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    Refused,
    printable,
    refusal,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request, Word
from disque_tx.client.requests.replies import MalformedReply
from disque_tx.client.values import Hello

_T = TypeVar("_T")
#: The largest bulk string that a node accepts, and some more for what goes around it.
_REPLY_BYTES_MAX: Final = 513 * 1024 * 1024


class NodeConnection(asyncio.Protocol):
    """An open connection to the node at ``address``; made by :func:`connect`."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._reader = hiredis.Reader()
        self._unfinished_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._pending: deque[tuple[Request[Any], asyncio.Future[Any]]] = deque()
        self._lost: ConnectionLost | None = None
        self._retired = False

    # -- requests ----------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether it takes another request, as far as is known here."""
        return self._lost is None and self._transport is not None and not self._retired

    def send(self, request: Request[_T]) -> asyncio.Future[_T]:
        """Send a request; returns a future of its value. Whoever cancels it does not want the
        reply, which is dropped when it comes.

        The future raises what :meth:`call` does, but does not end by itself when no reply comes.
        """
        return self.send_all((request,))[0]

    def send_all(self, many: Sequence[Request[_T]]) -> list[asyncio.Future[_T]]:
        """Send requests with one write; returns a future for each."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[_T]] = [loop.create_future() for _ in many]
        if self._transport is None or self._lost is not None:
            for future in futures:
                _fail(future, self._lost or self._lost_by("it is closed", sent=False))
            return futures
        self._pending.extend(zip(many, futures, strict=True))
        self._transport.write(b"".join([_packed(request.words) for request in many]))
        return futures

    async def call(self, request: Request[_T]) -> _T:
        """Send a request and wait for its reply.

        :raises Refused: the reply was an error.
        :raises ConnectionLost: the connection ended, or no reply came in time.
        :raises BrokenReply: the reply was malformed; the connection is closed.
        """
        future = self.send(request)
        try:
            return await self.answer(request, future)
        except asyncio.CancelledError:
            future.cancel()
            raise

    async def answer(self, request: Request[_T], future: asyncio.Future[_T]) -> _T:
        """Wait for the reply to a request that was sent, as long as it may take. When the caller
        is cancelled, the future is not."""
        wait_s = request.wait_s
        timeout_s = None if wait_s is None else wait_s + self._timeout_s
        await asyncio.wait((future,), timeout=timeout_s)
        if not future.done():
            self.close(f"no reply in {timeout_s:.1f} s")
        return future.result()

    def hang_up(self) -> None:
        """Send nothing more. A node that holds a request that waits drops it then, or its reply is
        on its way already, and still comes. With TLS there is no such half-way: the connection is
        closed."""
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self.close("it was not needed any more")

    def retire(self) -> None:
        """Take no more requests, and close it when those that were sent are answered."""
        self._retired = True
        if not self._pending:
            self.close()

    def close(self, reason: str = "it was closed") -> None:
        """Close the connection; what waits for replies fails."""
        self._end(self._lost_by(reason, sent=True))
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self._unfinished_bytes += len(data)
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                self._unfinished_bytes = 0
                self._received(reply)
        except hiredis.ProtocolError as error:
            self._broken(printable(str(error)))
        if self._unfinished_bytes > _REPLY_BYTES_MAX:
            self._broken(f"a reply of more than {_REPLY_BYTES_MAX} bytes")

    def connection_lost(self, error: Exception | None) -> None:
        reason = printable(str(error)) if error is not None else "the node closed it"
        self._end(self._lost_by(reason, sent=True))

    # -- replies -----------------------------------------------------------------------------

    def _received(self, reply: Any) -> None:
        if not self._pending:
            self._broken("a reply that nobody asked for")
            return
        request, future = self._pending.popleft()
        if not future.cancelled():
            self._answer(request, future, reply)
        if self._retired and not self._pending:
            self.close()

    def _answer(self, request: Request[Any], future: asyncio.Future[Any], reply: Any) -> None:
        if isinstance(reply, hiredis.ReplyError):
            _fail(future, refusal(request.name, str(self.address), str(reply)))
            return
        try:
            value = request.parse(reply)
        except MalformedReply as error:
            _fail(future, BrokenReply(request.name, str(self.address), printable(str(error))))
            self.close("the reply before was malformed")
        else:
            future.set_result(value)

    def _broken(self, what: str) -> None:
        """The bytes are not a reply: nothing after them can be understood."""
        if self._pending:
            request, future = self._pending.popleft()
            if not future.done():
                _fail(future, BrokenReply(request.name, str(self.address), what))
        self.close(what)

    def _end(self, lost: ConnectionLost) -> None:
        if self._lost is None:
            self._lost = ConnectionLost(lost.address, lost.reason, sent=False)
        pending, self._pending = self._pending, deque()
        for _, future in pending:
            if not future.done():
                _fail(future, lost)

    def _lost_by(self, reason: str, sent: bool) -> ConnectionLost:
        return ConnectionLost(str(self.address), reason.rstrip(".") or "unknown", sent)


async def connect(address: Address, options: ConnectionOptions) -> tuple[NodeConnection, Hello]:
    """Connect to a node and introduce this client; returns the connection, and the node's HELLO.

    :raises ConnectionLost: it cannot be reached, or does not answer in time.
    :raises AuthenticationRefused: it wants another password.
    :raises Refused, BrokenReply: its HELLO failed; it may be no Disque node.
    """
    connection = NodeConnection(address, options.timeout_s)
    try:
        async with asyncio.timeout(options.timeout_s):
            await _open(connection, options)
    except TimeoutError:
        raise ConnectionLost(
            str(address), f"no answer in {options.timeout_s:.1f} s", False
        ) from None
    except (OSError, UnicodeError) as error:
        # UnicodeError: a host name that cannot be encoded.
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        raise ConnectionLost(str(address), reason, sent=False) from error
    try:
        if options.password is not None:
            await _authenticate(connection, options.password)
        return connection, await connection.call(requests.hello())
    except ConnectionLost as lost:
        raise ConnectionLost(lost.address, lost.reason, sent=False) from lost
    except BaseException:
        connection.close()
        raise


async def _open(connection: NodeConnection, options: ConnectionOptions) -> None:
    loop = asyncio.get_running_loop()
    address = connection.address
    encryption = None if options.tls is None else ssl_context(options.tls)
    if address.path is not None:
        await loop.create_unix_connection(lambda: connection, address.path)
        return
    await loop.create_connection(
        lambda: connection, address.host, address.port, ssl=encryption, happy_eyeballs_delay=0.25
    )


async def _authenticate(connection: NodeConnection, password: str) -> None:
    try:
        await connection.call(requests.auth(password))
    except Refused as error:
        if type(error) is Refused:  # by no code that is known: it is no Disque node
            raise ConnectionLost(str(connection.address), str(error), sent=False) from error
        raise


def _fail(future: asyncio.Future[Any], error: ClientError) -> None:
    """The error is the result. Whoever waited may have been cancelled, and never look at it."""
    future.set_exception(error)
    future.exception()


def _packed(words: Sequence[Word]) -> bytes:
    all_words: Any = tuple(words)  # hiredis's types allow one word only
    packed: bytes = hiredis.pack_command(all_words)
    return packed

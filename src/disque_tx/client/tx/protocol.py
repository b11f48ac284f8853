"""Requests to bytes, and bytes to replies, on txredisapi's protocols.

txredisapi parses, with hiredis if it is installed. Its other features are turned off: numbers and
text are not converted, replies do not go through its queue, and its delayed calls use the client's
reactor. Replies are bytes, ``int``, ``None``, lists of such, or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import txredisapi

from disque_tx.client.requests.encoding import Word

#: The largest bulk string that the daemon accepts. A longer reply is an error.
REPLY_BYTES_MAX: Final = 512 * 1024 * 1024
_ELEMENTS_MAX: Final = 1 << 20
_DEPTH_MAX: Final = 8
_LINE_TYPES: Final = frozenset("+-:$*")
#: Exceptions of the parsers for bytes that are not a reply.
_UNPARSABLE: Final = (txredisapi.InvalidData, ValueError, OverflowError, MemoryError)


class ReplyReceiver(Protocol):
    """Receives the replies."""

    def connected(self) -> None:
        """Requests may be sent."""

    def received(self, reply: Any) -> None:
        """A whole reply; an error reply is a :class:`txredisapi.ResponseError`."""

    def broken(self, what: str) -> None:
        """The bytes are not a reply. The connection cannot be used any more."""

    def disconnected(self, reason: BaseException) -> None:
        """The connection has ended."""


class _Replies:
    """A mixin for both parsers of txredisapi; comes before them in the bases.

    Requests that are sent while received replies are handled are written together after the last
    of these replies.
    """

    transport: Any

    def __init__(self, reactor: Any, receiver: ReplyReceiver) -> None:
        super().__init__(charset=None, convertNumbers=False)  # type: ignore[call-arg]
        self.callLater = reactor.callLater
        self._receiver = receiver
        self._parsing = False
        self._outgoing: list[bytes] = []
        self._unfinished_bytes = 0

    def connectionMade(self) -> None:
        self._receiver.connected()

    def connectionLost(self, reason: Any) -> None:
        self._receiver.disconnected(reason.value)

    def send(self, data: bytes) -> None:
        """Write a request, now or after the received replies have been handled."""
        if self._parsing:
            self._outgoing.append(data)
        else:
            self.transport.write(data)

    def dataReceived(self, data: bytes, unpause: bool = False) -> None:
        self._unfinished_bytes += len(data)
        self._parsing = True
        try:
            super().dataReceived(data, unpause)  # type: ignore[misc]
        except _UNPARSABLE as error:
            self._receiver.broken(str(error))
        finally:
            self._parsing = False
        if self._unfinished_bytes > REPLY_BYTES_MAX:
            self._receiver.broken(f"a reply of more than {REPLY_BYTES_MAX} bytes")
        elif self._outgoing:
            self.transport.write(b"".join(self._outgoing))
            self._outgoing.clear()

    def replyReceived(self, reply: Any) -> None:
        self._unfinished_bytes = 0
        self._receiver.received(reply)

    def tryConvertData(self, data: Any) -> Any:
        """No conversion."""
        return data


class FastProtocol(_Replies, txredisapi.HiredisProtocol):  # type: ignore[misc]
    """Parses in C."""


class PlainProtocol(_Replies, txredisapi.BaseRedisProtocol):  # type: ignore[misc]
    """Parses in Python. Without these overrides it would accept any length in a header, and return
    statuses as text."""

    def lineReceived(self, line: str) -> None:
        if line[:1] not in _LINE_TYPES or not self._is_sound(line):
            raise txredisapi.InvalidData("a line that begins no reply")
        super().lineReceived(line)

    def _is_sound(self, line: str) -> bool:
        """Whether the number in a header is valid and within the limits."""
        if line[0] not in "$*":
            return True
        digits = line[1:]
        if digits == "-1":
            return True
        most = REPLY_BYTES_MAX if line[0] == "$" else _ELEMENTS_MAX
        right = digits.isascii() and digits.isdigit() and len(digits) < 12 and int(digits) <= most
        return right and (line[0] == "$" or self._depth() < _DEPTH_MAX)

    def _depth(self) -> int:
        """How deep in nested arrays the parser is."""
        depth, storage = 0, self.multi_bulk
        while storage is not None:
            depth, storage = depth + 1, storage.parent
        return depth

    def lineLengthExceeded(self, line: bytes) -> None:
        raise txredisapi.InvalidData("a line without an end")

    def handleMultiBulkElement(self, element: Any) -> None:
        """Statuses within arrays become bytes."""
        super().handleMultiBulkElement(_as_bytes(element))

    def replyReceived(self, reply: Any) -> None:
        """Statuses become bytes."""
        super().replyReceived(_as_bytes(reply))


def _as_bytes(reply: Any) -> Any:
    return reply.encode("utf-8") if isinstance(reply, str) else reply


def new_protocol(reactor: Any, receiver: ReplyReceiver) -> Any:
    """The parser in C if hiredis is installed, otherwise the one in Python."""
    kind = PlainProtocol if txredisapi.hiredis is None else FastProtocol
    return kind(reactor, receiver)


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

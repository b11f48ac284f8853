"""A minimal client of the daemon: sends requests, and reads replies as values or as the exact
bytes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

TIMEOUT_S = 60.0


class ReplyError(Exception):
    """An error reply; its text begins with the code."""


class ClosedError(Exception):
    """The daemon closed the connection."""


def encode(*words: bytes | str | int) -> bytes:
    """A request as an array of bulk strings."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


class Connection:
    """One connection to ``address``, a (host, port) or the path of a Unix socket."""

    def __init__(self, address: tuple[str, int] | str, timeout_s: float = TIMEOUT_S) -> None:
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout_s)
            self.sock.connect(address)
        else:
            self.sock = socket.create_connection(address, timeout_s)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def send(self, *words: bytes | str | int) -> None:
        """Send a request without reading the reply."""
        self.sock.sendall(encode(*words))

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.sock.sendall(data)

    def call(self, *words: bytes | str | int) -> Any:
        """Send a request and read its reply; an error reply raises :class:`ReplyError`."""
        self.send(*words)
        value = self.read()
        if isinstance(value, ReplyError):
            raise value
        return value

    def error(self, *words: bytes | str | int) -> str:
        """The text of the error reply to a request, or of any other reply."""
        self.send(*words)
        return str(self.read())

    def read(self) -> Any:
        """One reply as a value; an error reply is returned as :class:`ReplyError`."""
        return parse(self.read_raw())[0]

    def read_raw(self) -> bytes:
        """The exact bytes of one reply."""
        end = 0
        pending = 1
        while pending:
            line_end = self._wait(lambda start=end: self._buffer.find(b"\r\n", start))
            kind, number = self._buffer[end : end + 1], self._buffer[end + 1 : line_end]
            end = line_end + 2
            pending -= 1
            if kind == b"$" and int(number) >= 0:
                end += int(number) + 2
                self._wait(lambda size=end: 0 if len(self._buffer) >= size else -1)
            elif bytes(kind) in (b"*", b"~", b">"):
                pending += max(0, int(number))
            elif kind == b"%":
                pending += 2 * int(number)
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        return raw

    def _wait(self, ready: Callable[..., int]) -> int:
        while (found := ready()) < 0:
            self._receive()
        return found

    def _receive(self) -> None:
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError as error:
            raise ClosedError("reset") from error
        if not data:
            raise ClosedError("end of stream")
        self._buffer += data

    def closed(self) -> bool:
        """Whether the daemon closes the connection without sending more data; waits until it does,
        or for the timeout."""
        if self._buffer:
            return False
        try:
            self._receive()
        except ClosedError:
            return True
        except TimeoutError:
            return False
        return False


def parse(raw: bytes, start: int = 0) -> tuple[Any, int]:
    """The value that begins at ``start``, and where it ends; statuses are ``str``."""
    line_end = raw.index(b"\r\n", start)
    kind, text = raw[start : start + 1], raw[start + 1 : line_end]
    end = line_end + 2
    if kind == b"+":
        return text.decode("latin-1"), end
    if kind == b"-":
        return ReplyError(text.decode("latin-1")), end
    if kind == b":":
        return int(text), end
    if kind == b"_" or text == b"-1":
        return None, end
    if kind == b"$":
        return raw[end : end + int(text)], end + int(text) + 2
    items = []
    for _ in range(int(text) * (2 if kind == b"%" else 1)):
        item, end = parse(raw, end)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if kind == b"%" else items), end

"""A connection of beanstalkd's protocol, for tests that look at replies as they are."""

from __future__ import annotations

import socket


class BeanstalkConnection:
    """Sends requests, and returns replies with what belongs to them."""

    def __init__(self, port: int, ip: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((ip, port), timeout=60)
        self._stream = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self._socket.sendall(data)

    def reply(self) -> bytes:
        """The next reply: its line and, behind a job or a report, the body."""
        line = self._stream.readline()
        words = line.split()
        if words and words[0] in (b"RESERVED", b"FOUND", b"OK"):
            return line + self._stream.read(int(words[-1]) + 2)
        return line

    def call(self, line: bytes) -> bytes:
        """The reply to one line."""
        self.send(line + b"\r\n")
        return self.reply()

    def put(self, body: bytes, priority: int = 10, delay_s: int = 0, ttr_s: int = 60) -> bytes:
        """The reply to a put."""
        return self.call(b"put %d %d %d %d\r\n" % (priority, delay_s, ttr_s, len(body)) + body)

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        self._socket.close()

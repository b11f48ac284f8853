"""Mass insertion: sends a stream of requests unchanged and counts the replies (``--pipe``)."""

from __future__ import annotations

import os
import select
import ssl
from collections.abc import Callable
from socket import socket
from typing import BinaryIO, Final, TextIO

import hiredis

from disque_tx.cli.connection import ServerConnection, ServerConnectionLost, encode

MARK_LENGTH: Final = 20
#: With TLS, a socket may be readable and yet hold no byte of the stream.
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_CHUNK: Final = 65536


class PipeMode:
    """Copies ``source`` (a file descriptor) to a connection and reads the replies.

    A mark shows the end: a PING with 20 random bytes, whose answer is the last one. ``errors`` and
    ``replies`` do not count it. ``poll_s``: how often to check the idle timeout.
    """

    def __init__(
        self, connection: ServerConnection, source: int, out: BinaryIO, err: TextIO, mark: bytes
    ) -> None:
        self.socket = connection.socket
        self.source = source
        self.out = out
        self.err = err
        self.mark = mark
        self.poll_s = 1.0
        self.errors = 0
        self.replies = 0
        self._reader = hiredis.Reader()
        self._unsent = b""
        self._source_ended = False
        self._finished = False

    def run(self, timeout_s: float, clock: Callable[[], float]) -> int:
        """Copy until the mark comes back; returns the exit status.

        ``timeout_s``: give up when no reply comes for this long after the end of the input; 0 waits
        forever. Raises ``ServerConnectionLost``.
        """
        self.socket.setblocking(False)
        active_s = clock()
        try:
            while not self._finished:
                readable, writable = self._wait()
                if self.socket in readable:
                    self._receive()
                    active_s = clock()
                if self.source in readable:
                    self._fill()
                    active_s = clock()
                if writable:
                    self._transmit()
                if self._source_ended and timeout_s and clock() - active_s > timeout_s:
                    self._give_up(timeout_s)
        finally:
            # The counts are printed in any case.
            self._print(b"errors: %d, replies: %d\n" % (self.errors, self.replies))
        return 1 if self.errors else 0

    def _wait(self) -> tuple[list[socket | int], list[socket]]:
        readers: list[socket | int] = [self.socket]
        writers = [self.socket] if self._unsent else []
        if not self._unsent and not self._source_ended:
            readers.append(self.source)
        readable, writable, _ = select.select(readers, writers, [], self.poll_s)
        return readable, writable

    def _fill(self) -> None:
        self._unsent = os.read(self.source, _CHUNK)
        if not self._unsent:
            self._source_ended = True
            # The line end closes an inline request that the input left open.
            self._unsent = b"\r\n" + encode([b"PING", self.mark])
            self._print(b"All data transferred. Waiting for the last reply...\n")

    def _transmit(self) -> None:
        try:
            sent = self.socket.send(self._unsent)
        except _NOT_NOW:
            return
        except OSError as error:
            raise ServerConnectionLost(error.strerror or str(error)) from error
        self._unsent = self._unsent[sent:]

    def _receive(self) -> None:
        self._take()
        # Bytes that are already decrypted do not make the socket readable.
        while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            self._take()

    def _take(self) -> None:
        try:
            data = self.socket.recv(_CHUNK)
        except _NOT_NOW:
            return
        except OSError as error:
            raise ServerConnectionLost(error.strerror or str(error)) from error
        if not data:
            raise ServerConnectionLost("Server closed the connection")
        try:
            self._reader.feed(data)
            while self._reader.has_data() and self._count(self._reader.gets(False)):
                pass
        except hiredis.ProtocolError as error:
            raise ServerConnectionLost(f"this is not a Disque server: {error}") from error

    def _count(self, reply: object) -> bool:
        """Count a reply; ``False`` when there was none, or when it is the mark."""
        if reply is False:
            return False
        if reply == self.mark and self._source_ended:
            self._print(b"Last reply received from server.\n")
            self._finished = True
            return False
        self.replies += 1
        if isinstance(reply, hiredis.ReplyError):
            self.errors += 1
            print(reply, file=self.err, flush=True)
        return True

    def _give_up(self, timeout_s: float) -> None:
        print(f"No replies for {timeout_s:g} seconds: exiting.", file=self.err, flush=True)
        self.errors += 1
        self._finished = True

    def _print(self, text: bytes) -> None:
        self.out.write(text)
        self.out.flush()

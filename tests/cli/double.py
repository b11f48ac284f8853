"""A server that sends replies from a script, for the command line clients, and what they print."""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import hiredis

from disque_tx.cli.connection import ServerAddress

#: In a script: close the connection instead of replying.
CLOSE = b""
#: At the end of a reply: close the connection after it.
THEN_CLOSE = b"<close>"
#: In a script: reply with the last argument, as PING does.
ECHO = b"<echo>"


class ScriptedServer:
    """Listens on 127.0.0.1 (or on the Unix socket ``path``) and serves one client after another.

    Each request gets the next reply of the script; after the last one the connection is closed. The
    reply to AUTH is part of the script, too. ``requests``: all requests received.
    """

    def __init__(self, *answers: bytes, path: str | None = None) -> None:
        self.requests: list[list[bytes]] = []
        self.path = path
        self._answers: Iterator[bytes] = iter(answers)
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> ServerAddress:
        """The address for clients."""
        return ServerAddress("127.0.0.1", 0 if self.path else self.port, self.path)

    def stop(self) -> None:
        """Stop listening, and wait for the end of the thread."""
        # Closing a socket does not wake a thread that waits in accept; shutting it down does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        if self.path is not None:
            os.unlink(self.path)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self._converse(client)

    def _converse(self, client: socket.socket) -> None:
        reader = hiredis.Reader()
        while data := client.recv(65536):
            # hiredis knows no empty line, which ends an unfinished inline request.
            reader.feed(data.removeprefix(b"\r\n").replace(b"\r\n\r\n*", b"\r\n*"))
            while (request := reader.gets()) is not False:
                self.requests.append(request)
                answer = next(self._answers, CLOSE)
                if answer == CLOSE:
                    return
                client.sendall(_string(request[-1]) if answer == ECHO else _text(answer))
                if answer.endswith(THEN_CLOSE):
                    return


def _text(answer: bytes) -> bytes:
    return answer.removesuffix(THEN_CLOSE)


def _string(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


class _Shown(io.RawIOBase):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data)
        return len(data)


class Screen(io.BufferedWriter):
    """A standard output: people see of it what was flushed."""

    def __init__(self) -> None:
        self._shown = _Shown()
        super().__init__(self._shown)

    def seen(self) -> bytes:
        """What people see."""
        return self._shown.data

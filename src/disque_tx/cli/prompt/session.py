"""Executes commands on a connection and prints the replies, for one-shot, piped and interactive
use."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, TextIO

from disque_tx.cli.connection import ServerAddress, ServerConnection, ServerConnectionLost
from disque_tx.cli.formatting import Style
from disque_tx.cli.replies import ErrorReply, Reply


class CommandSession:
    """The connection to a server, and the output for its replies.

    The connection is opened when it is first needed. ``sleep``: waits for a number of seconds.
    ``errors``: how many replies were errors, a refused password included.
    """

    def __init__(
        self,
        address: ServerAddress,
        password: bytes | None,
        style: Style,
        out: BinaryIO,
        err: TextIO,
        sleep: Callable[[float], None],
    ) -> None:
        self.address = address
        self.password = password
        self.style = style
        self.out = out
        self.err = err
        self.sleep = sleep
        self._connection: ServerConnection | None = None
        self.errors = 0

    @property
    def connected(self) -> bool:
        """Whether a connection is open, as far as is known."""
        return self._connection is not None

    def connect(self) -> ServerConnection:
        """The open connection, or a new one. Raises ``ServerUnreachable`` or
        ``ServerConnectionLost``."""
        if self._connection is None:
            self._connection = ServerConnection(self.address, self.password)
            refusal = self._connection.auth_error
            if refusal is not None:
                self.errors += 1
                text = refusal.decode("utf-8", "backslashreplace")
                self.complain(f"The password was refused (-a or DISQUE_PASSWORD): {text}")
        return self._connection

    def reconnect(self) -> ServerConnection:
        """A new connection. Raises ``ServerUnreachable`` or
        ``ServerConnectionLost``."""
        self.disconnect()
        return self.connect()

    def disconnect(self) -> None:
        """Close the connection; the next command opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, args: list[bytes], repeat: int = 1, interval_s: float = 0.0) -> None:
        """Send a request ``repeat`` times (negative: forever) and print each reply.

        Raises ``ServerUnreachable`` or
        ``ServerConnectionLost``.
        """
        remaining = repeat
        while remaining:
            self._run_once(args)
            remaining -= 1
            if remaining and interval_s:
                self.sleep(interval_s)

    def _run_once(self, args: list[bytes]) -> None:
        name = args[0].lower()
        try:
            connection = self.connect()
            self._print(args, connection.call(args))
            while name == b"monitor":
                self._print(args, connection.read())
        except ServerConnectionLost:
            self.disconnect()
            # The server does not answer SHUTDOWN.
            if name != b"shutdown":
                raise
        if name == b"quit":
            self.disconnect()

    def _print(self, args: list[bytes], reply: Reply) -> None:
        self.errors += isinstance(reply, ErrorReply)
        self.out.write(self.style.render(args, reply))
        self.out.flush()

    def complain(self, text: str) -> None:
        """Print a message on the error output."""
        print(text, file=self.err, flush=True)

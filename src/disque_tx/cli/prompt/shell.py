"""Executes lines of commands from the prompt or a pipe.

Besides commands of the server there are a few local words (client protocol, section 22.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.cli import help as help_texts
from disque_tx.cli.connection import ServerConnectionLost, ServerUnreachable
from disque_tx.cli.prompt.session import CommandSession
from disque_tx.messages.limits import PORT_MAX
from disque_tx.text.quoting import split

SLOW_S: Final = 0.5
_CLEAR_SCREEN: Final = b"\x1b[H\x1b[2J"


class Quit(Exception):
    """The user has entered ``quit`` or ``exit``."""


class Shell:
    """Executes lines on ``session``.

    ``interactive``: at a prompt. A lost connection is opened again and the command is repeated, the
    time of slow commands is shown, and failures do not end the shell. ``clock``: monotonic seconds.
    """

    def __init__(
        self,
        session: CommandSession,
        clock: Callable[[], float],
        interactive: bool,
        interval_s: float,
    ) -> None:
        self.session = session
        self.clock = clock
        self.interactive = interactive
        self.interval_s = interval_s

    def prompt(self) -> str:
        """The text before the cursor."""
        if not self.session.connected:
            return "not connected> "
        return f"{self.session.address.prompt()}> "

    def greet(self) -> None:
        """Connect in advance, so that the prompt shows whether there is a server."""
        try:
            self.session.connect()
        except (ServerUnreachable, ServerConnectionLost) as error:
            self.session.complain(str(error))

    def execute(self, line: bytes) -> None:
        """Execute one line.

        Raises ``Quit`` for ``quit`` and ``exit``; if not interactive, also
        ``ServerUnreachable`` and ``ServerConnectionLost``.
        """
        words = split(line)
        if words is None:
            self.session.complain("Invalid argument(s)")
        elif words:
            local = _LOCAL.get(words[0].lower())
            if local is not None and not (local is _connect and len(words) != 3):
                local(self, words[1:])
            else:
                self._send(words)

    def _send(self, words: list[bytes]) -> None:
        repeat = _count(words[0]) if len(words) > 1 else None
        if repeat is not None:
            words = words[1:]
        started_s = self.clock()
        try:
            self._run(words, repeat if repeat is not None else 1)
        except KeyboardInterrupt:
            if not self.interactive:
                raise
            # The reply may still arrive, so the connection cannot be used any more.
            self.session.disconnect()
            self.session.complain("Interrupted; the connection is closed")
        self._print_time(self.clock() - started_s)

    def _run(self, words: list[bytes], repeat: int) -> None:
        if not self.interactive:
            self.session.run(words, repeat, self.interval_s)
            return
        try:
            self._run_again(words, repeat)
        except ServerUnreachable as error:
            self.session.complain(str(error))
        except ServerConnectionLost as error:
            self.session.complain(f"Error: {error}")

    def _run_again(self, words: list[bytes], repeat: int) -> None:
        was_connected = self.session.connected
        try:
            self.session.run(words, repeat, self.interval_s)
        except ServerConnectionLost:
            if not was_connected or words[0].lower() == b"monitor":
                raise
            self.session.run(words, repeat, self.interval_s)

    def _print_time(self, elapsed_s: float) -> None:
        if self.interactive and elapsed_s >= SLOW_S:
            self.write(b"(%.2fs)\n" % elapsed_s)

    def write(self, text: bytes) -> None:
        """Print text that is not a reply."""
        self.session.out.write(text)
        self.session.out.flush()


def _count(word: bytes) -> int | None:
    return int(word) if word.isdigit() and len(word) < 10 and int(word) else None


def _quit(shell: Shell, words: list[bytes]) -> None:
    raise Quit


def _help(shell: Shell, words: list[bytes]) -> None:
    topic = b" ".join(words).decode("utf-8", "replace")
    shell.write(help_texts.render(topic, shell.session.style.colour).encode("utf-8"))


def _clear(shell: Shell, words: list[bytes]) -> None:
    if shell.interactive:
        shell.write(_CLEAR_SCREEN)


def _connect(shell: Shell, words: list[bytes]) -> None:
    port = _count(words[1])
    if port is None or port > PORT_MAX:
        shell.session.complain("The port must be a number from 1 to 65535: connect <host> <port>")
        return
    shell.session.disconnect()
    shell.session.address = shell.session.address.moved(words[0].decode("utf-8", "replace"), port)
    shell.greet()


_LOCAL: Final[dict[bytes, Callable[[Shell, list[bytes]], None]]] = {
    b"quit": _quit,
    b"exit": _quit,
    b"help": _help,
    b"?": _help,
    b"clear": _clear,
    b"connect": _connect,
}

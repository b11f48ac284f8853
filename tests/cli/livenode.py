"""A node in a thread of the tests, and the program ``disque`` run on it in the same process."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from twisted.internet.selectreactor import SelectReactor
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.client import main
from disque_tx.client.blocking.client import Disque
from disque_tx.engine.calendar import CronCalendar
from tests.acceptance.resp import Connection
from tests.commands.desk import ME
from tests.services.runningnode import RunningNode


class LiveNode:
    """One node without files and a bus, with a reactor of its own, on a port of 127.0.0.1.
    ``prepare`` may add listeners before the reactor runs. ``name``: the node's ID."""

    def __init__(
        self, prepare: Callable[[LiveNode], object] | None = None, name: bytes = ME
    ) -> None:
        self.reactor: Any = SelectReactor()
        self.node = RunningNode(self.reactor, name=name)
        self.node.node.recurring.calendar = CronCalendar()
        self.node.node.recurring.begin()
        listening = self.reactor.listenTCP(0, self.node.factory, interface="127.0.0.1")
        self.port: int = listening.getHost().port
        self.address = f"127.0.0.1:{self.port}"
        if prepare is not None:
            prepare(self)
        self._thread = threading.Thread(
            target=self.reactor.run, kwargs={"installSignalHandlers": False}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """No more clients."""
        self.reactor.callFromThread(self._stop)
        self._thread.join()

    def _stop(self) -> None:
        self.node.stop()
        self.reactor.stop()


class _Text(io.TextIOWrapper):
    """A standard stream, as a file without a name, which may claim to be a terminal."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal
        self._file = TemporaryFile()  # noqa: SIM115  closed with the stream
        super().__init__(self._file, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        """Whether it claims to be a terminal."""
        return self._terminal

    def text(self) -> str:
        """What was written."""
        self.flush()
        self._file.seek(0)
        return self._file.read().decode()


def _piped(content: bytes) -> io.TextIOWrapper:
    """A standard input that is a pipe, which has room for this."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(content)
    return io.TextIOWrapper(os.fdopen(reading, "rb"), encoding="utf-8")


#: What a terminal obeys and does not show.
_CONTROLS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def drawn(text: str) -> list[str]:
    """The lines drawn on a terminal, without their colours, and without what fills them up. A line
    that was drawn again comes again."""
    plain = _CONTROLS.sub("", text).replace("\r", "\n")
    return [line.rstrip() for line in plain.split("\n") if line.strip()]


@contextmanager
def many_columns() -> Iterator[None]:
    """Within this context terminals have 200 columns. The environment is changed in place, for
    ``rich`` looks at it where it was when it was imported."""
    before = dict(os.environ)
    os.environ.update(COLUMNS="200", TERM="xterm")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def in_process(*words: str, stdin: bytes = b"", terminal: bool = False) -> tuple[int, str, str]:
    """Run the program ``disque`` in this process: exit status, output and error output, both of
    them on a terminal of many columns if that is requested."""
    out, err, given = _Text(terminal), _Text(terminal), sys.stdin
    sys.stdin = said = _piped(stdin)
    try:
        with many_columns(), redirect_stdout(out), redirect_stderr(err):
            status = main(list(words))
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.stdin = given
    found = status, out.text(), err.text()
    for stream in (said, out, err):
        stream.close()
    return found


class VerbCase(SynchronousTestCase):
    """A node, a client of it, and the program."""

    def setUp(self) -> None:
        self.node = LiveNode()
        self.addCleanup(self.node.stop)
        self.client = Disque(f"disque://{self.node.address}")
        self.addCleanup(self.client.close)

    def call(self, *words: bytes | str | int) -> Any:
        """A request to the node, on a connection of its own."""
        return self.connect().call(*words)

    def add(self, queue: str, *bodies: bytes | str, **options: int) -> None:
        """ADDJOB for each body; options by their names."""
        words = [word for name, value in options.items() for word in (name.upper(), value)]
        connection = self.connect()
        for body in bodies:
            connection.call("ADDJOB", queue, body, 0, *words)

    def length(self, queue: str) -> int:
        """The length of a queue."""
        return int(self.call("QLEN", queue))

    def folder(self) -> Path:
        """A new and empty folder."""
        path = Path(self.mktemp()).resolve()
        path.mkdir(parents=True)
        return path

    def connect(self) -> Connection:
        """A connection to the node, for any request."""
        connection = Connection(("127.0.0.1", self.node.port))
        self.addCleanup(connection.close)
        return connection

    def disque(
        self,
        *words: str | float,
        stdin: bytes = b"",
        port: int | None = None,
        terminal: bool = False,
    ) -> tuple[int, str, str]:
        """Run the program to its end: exit status, output and error output, both of them on a
        terminal of many columns if that is requested."""
        return in_process(
            "-p", str(port or self.node.port), *map(str, words), stdin=stdin, terminal=terminal
        )

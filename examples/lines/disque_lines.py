"""A protocol for everything that can send text: every line becomes a job.

    $ echo "mail Dear Alice, ..." | nc -q 1 127.0.0.1 7720
    D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1

A line is the name of a queue, a blank, and the body of the job. The answer to each is a line with
the ID of the job, or ERROR with a code and a text. Nodes with a password want ``PASSWORD <it>``
first.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory, connectionDone
from twisted.plugin import IPlugin
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.plugins import CommandError, IClientProtocol, IConnection, IHost, Role

#: Lines that may wait for those before them; until then, nothing more is received.
WAITING_MAX = 100
#: How long a job may take until all of its copies exist.
TIMEOUT_MS = 5_000


class Lines(LineOnlyReceiver):
    """One connection. ``transport``: Twisted's."""

    transport: Any

    delimiter = b"\n"
    MAX_LENGTH = 64 * 1024

    def __init__(self, host: IHost) -> None:
        self._host = host
        self._connection: IConnection | None = None
        self._role = Role.NONE
        self._lines: deque[bytes] = deque()
        self._busy = False

    def connectionMade(self) -> None:
        """Register the client, or tell it why it is refused."""
        try:
            self._connection = self._host.admit(self.transport, "lines")
            self._role = self._connection.authenticate(None)  # all rights, without a password
        except CommandError as error:
            self._send(b"ERROR " + error.reply())
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Nothing is done for this client any more."""
        self._lines.clear()
        if self._connection is not None:
            self._connection.closed()

    def dataReceived(self, data: bytes) -> None:
        """Bytes arrived: the client is not idle."""
        if self._connection is not None:
            self._connection.received(len(data))
            super().dataReceived(data)

    def lineReceived(self, line: bytes) -> None:
        """One line after the other, and no more than a client may keep waiting."""
        self._lines.append(line.rstrip(b"\r"))
        if len(self._lines) >= WAITING_MAX:
            self.transport.pauseProducing()
        if not self._busy:
            self._busy = True
            Deferred.fromCoroutine(self._work()).addErrback(self._failed)

    async def _work(self) -> None:
        while self._lines:
            try:
                self._send(await self._answer(self._lines[0]))
            except CommandError as error:
                self._send(b"ERROR " + error.reply())
            if self._lines:  # they are forgotten when the connection is lost
                self._lines.popleft()
            self.transport.resumeProducing()
        self._busy = False

    def _failed(self, failure: Failure) -> None:
        failure.trap(CancelledError)  # the connection is lost

    async def _answer(self, line: bytes) -> bytes:
        assert self._connection is not None
        queue, _, body = line.partition(b" ")
        if queue == b"PASSWORD":
            self._role = self._connection.authenticate(body)
            return b"OK" if self._role is Role.FULL else b"ERROR NOPERM Wrong password."
        if not queue or not body:
            raise CommandError("ERR", "A line is a queue, a blank, and the body of a job.")
        added: Any = await self._connection.call(
            self._role, b"ADDJOB", queue, body, b"%d" % TIMEOUT_MS
        )
        return bytes(added.text)

    def _send(self, line: bytes) -> None:
        if self._connection is not None:
            self._connection.sent(len(line) + 1)
        self.sendLine(line)


@implementer(IPlugin, IClientProtocol)
class LinesPlugin:
    """What the directive ``listen lines`` finds."""

    name = "lines"
    description = "Every line becomes a job"

    def factory(self, host: IHost) -> Factory:
        """Protocols for the node of this host."""
        return Factory.forProtocol(lambda: Lines(host))

"""A beanstalk client of a node in memory, for any bytes that it may send."""

from __future__ import annotations

import re
from typing import Any, Final

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure

from disque_tx.commands.direct import DirectNode
from disque_tx.protocols.beanstalk.connection import BeanstalkConnection
from disque_tx.protocols.beanstalk.tubes import Tubes
from disque_tx.services.clients.direct import DirectFactory
from disque_tx.services.machine.log import DaemonLog
from tests.services.runningnode import RunningNode

_PEER: Final = IPv4Address("TCP", "127.0.0.1", 5001)
#: What depends on the moment, or on the process.
_CHANGING = re.compile(rb"OK \d+|(uptime|rusage-.time|age|time-left|pause-time-left): [\d.]+\n")


class _Log(DaemonLog):
    """``faults``: lines of warnings, of which only faults of the program count."""

    def __init__(self) -> None:
        super().__init__("warning")
        self.faults: list[str] = []

    def write(self, level: str, text: str) -> None:
        self.faults.append(text)


class _FixedClock:
    """It is always the same moment."""

    @staticmethod
    def steady_ms() -> int:
        return 50_000

    @staticmethod
    def wall_us() -> int:
        return 1_790_000_000_000_000


def replies(pieces: list[bytes]) -> bytes:
    """What a client that sends these gets; raises ``AssertionError`` for a fault of the program, or
    when something is left of a client that is gone."""
    log, clock = _Log(), MemoryReactorClock()
    running = RunningNode(clock, log, _FixedClock(), clock_ns=lambda: 0)  # type: ignore[arg-type]
    later: Any = clock.callLater
    tubes = Tubes(DirectNode(running.server, running.runtime.dispatcher), running.settings, later)
    factory = DirectFactory(
        running.runtime, running.admission, b"beanstalk", lambda: BeanstalkConnection(tubes), b""
    )
    connection, transport = factory.buildProtocol(None), StringTransport(peerAddress=_PEER)
    connection.makeConnection(transport)
    try:
        for piece in pieces:
            if not transport.disconnecting and not transport.disconnected:
                connection.dataReceived(piece)
    finally:
        connection.connectionLost(Failure(ConnectionDone()))
        running.stop()
    assert not [line for line in log.faults if "fault" in line], log.faults
    held = [entry for entry in tubes.by_number.values() if entry.holder is not None]
    assert not held and not tubes.waiting and not tubes.connected, held
    return _CHANGING.sub(b"", bytes(transport.value()))


#: Requests of all kinds.
SEEDS: Final = (
    b"put 1 0 60 5\r\nhello\r\nreserve\r\ndelete 1\r\nreserve-with-timeout 0\r\n",
    b"use a\r\nput 7 9 1 2\r\n\r\n\r\npeek-delayed\r\nkick 3\r\nwatch a\r\nignore default\r\n",
    b"put 5 0 9 1\r\nx\r\nreserve\r\nbury 1 3\r\npeek-buried\r\nkick-job 1\r\npeek-ready\r\n",
    b"put 5 0 9 1\r\nx\r\nreserve-job 1\r\nrelease 1 2 3\r\npeek 1\r\ntouch 1\r\nreserve\r\n",
    b"list-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\nstats-tube default\r\nstats\r\n",
    b"put 5 0 9 1\r\nxyzstats-job 1\r\npause-tube default 9\r\nput 1 1 1 70000\r\nquit\r\n",
)

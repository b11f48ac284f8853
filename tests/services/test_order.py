"""Output is sent after the records that it depends on, for any order of requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from disque_tx.engine.turns import CommittedLog
from disque_tx.messages.records import JobRecord, LogSink
from tests import profiles  # noqa: F401
from tests.services.nodebench import NodeCase

_REQUESTS = (
    b"GETJOB FROM q",
    b"GETJOB FROM r",
    b"GETJOB NOHANG FROM q r",
    b"ADDJOB q b 0",
    b"ADDJOB r b 0 RETRY 0",
    b"ADDJOB q b 0 DELAY 1",
    b"FASTACK D-aaaaaaaa-000000000000000000000001-05a1",
    b"PING",
)
pipelines = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from(_REQUESTS), min_size=1, max_size=4)),
    min_size=2,
    max_size=8,
)


class CountingLog(LogSink):
    """``uncommitted``: the number of records since the last commit."""

    def __init__(self) -> None:
        self.uncommitted = 0
        self.recorded = 0

    def load_job(self, job: JobRecord) -> None:
        self.uncommitted += 1
        self.recorded += 1

    def delete_job(self, job_id: bytes) -> None:
        self.uncommitted += 1
        self.recorded += 1


class CountedCommits(CommittedLog):
    """Commits what ``log`` has counted."""

    def __init__(self, log: CountingLog) -> None:
        super().__init__()
        self._log = log

    def commit(self) -> str:
        self._log.uncommitted = 0
        return ""


class WatchedTransport(StringTransport):
    """``early``: output written while records were uncommitted."""

    def __init__(self, log: CountingLog) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", "127.0.0.1", 5001))
        self.log = log
        self.early: list[bytes] = []

    def write(self, data: bytes) -> None:
        if self.log.uncommitted:
            self.early.append(data)
        super().write(data)


class OrderTests(NodeCase):
    """Clients that pipeline, block, and are unblocked by others."""

    @given(pipelines)
    def test_committed_before_replies(self, sent: list[tuple[int, list[bytes]]]) -> None:
        """Replies are sent when all records are committed; a client that was just unblocked may
        have sent further requests, which make records, too."""
        self.node.flush_all()
        log = CountingLog()
        self.node.outbox.log = log
        self.runtime.turns.log = CountedCommits(log)
        clients = []
        for _ in range(4):
            protocol = self.factory.buildProtocol(None)
            transport = WatchedTransport(log)
            protocol.makeConnection(transport)
            clients.append((protocol, transport))
        for place, requests in sent:
            protocol, transport = clients[place]
            protocol.dataReceived(b"".join(request + b"\r\n" for request in requests))
            self.assertEqual([[]] * 4, [t.early for _, t in clients])
            self.assertEqual(0, log.uncommitted)
            self.assertNotIn(b"-DENIED", transport.value())
        self.reactor.advance(1.1)
        self.assertEqual([[]] * 4, [t.early for _, t in clients])
        for protocol, transport in clients:
            transport.loseConnection()
            protocol.connectionLost()

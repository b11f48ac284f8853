"""Answers that are sent in pieces."""

from __future__ import annotations

from tests.protocols.http.httpbench import HttpCase, parsed, request


class PiecesTests(HttpCase):
    """Bodies of jobs that take several slices."""

    def test_counted(self) -> None:
        """Operators see in INFO what such answers take of their network, as of any other."""
        for _ in range(8):
            self.call(b"ADDJOB", b"q", b"x" * 60_000, b"0")
        stats = self.root.runtime.server.stats
        before = stats.net_output_bytes
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/api/v1/queues/q/jobs?count=100"))
        self.let_answer(transport, complete=True)
        answer, _ = parsed(transport.value())
        self.assertEqual((200, 8), (answer.status, len(answer.json["jobs"])))
        self.assertEqual("chunked", answer.headers["transfer-encoding"])
        self.assertGreaterEqual(stats.net_output_bytes - before, len(answer.body))

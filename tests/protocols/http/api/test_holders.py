"""Bodies of many jobs, as the nodes that hold them send them."""

from __future__ import annotations

from disque_tx.protocols.http.server.slices import SLICE_BYTES
from tests.protocols.http.api.queues.test_queues import SlicedCase
from tests.protocols.http.httpbench import parsed, request


class BodiesTests(SlicedCase):
    """``bodies``."""

    def turns(self, path: str) -> tuple[int, int]:
        """How many turns an answer takes, and how many bytes of bodies are in it."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", path))
        turns = 0
        while not transport.value().endswith(b"0\r\n\r\n"):
            self.reactor.advance(0.001)
            turns += 1
        jobs = parsed(transport.value())[0].json["jobs"]
        self.hang_up(channel)
        return turns, sum(len(job["body"]) for job in jobs)

    def test_turns(self) -> None:
        """Other clients never wait until more bodies have been read than a slice holds."""
        for _ in range(40):
            self.call(b"ADDJOB", b"q", b"x" * 100_000, b"0")
        for path in ("peek?count=1000", "jobs?count=1000"):
            turns, size = self.turns(f"/api/v1/queues/q/{path}")
            self.assertEqual(4_000_000, size)
            self.assertGreaterEqual(turns, size // SLICE_BYTES)

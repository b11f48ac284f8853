"""Counts of queues over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from disque_tx.protocols.http.server.slices import SLICE_BYTES
from tests.protocols.http.api.queues.test_queues import SlicedCase
from tests.protocols.http.httpbench import parsed, request

_COUNTS = "/api/v1/counts"


class CountTests(SlicedCase):
    """Where jobs are."""

    def setUp(self) -> None:
        super().setUp()
        for options in ((), (b"DELAY", b"60"), (), ()):
            self.call(b"ADDJOB", b"mail", b"x", b"0", *options)
        ((_queue, job_id, _body),) = self.call(b"GETJOB", b"FROM", b"mail")
        self.call(b"NACK", b"DELAY", b"30", job_id)
        self.call(b"GETJOB", b"FROM", b"mail")

    def expected(self) -> dict[str, int]:
        """One job in each state."""
        return {"queued": 1, "delayed": 1, "backoff": 1, "in_flight": 1, "dead": 0}

    def test_one(self) -> None:
        """A queue shows its jobs in every state, of this node or of the cluster."""
        for query in ("", "?cluster=0", "?cluster=1"):
            counts = self.slow("GET", f"{_COUNTS}/mail{query}").json
            self.assertEqual(self.expected(), {n: counts[n] for n in self.expected()})
            self.assertEqual((1, []), (counts["nodes"], counts["nodes_missing"]))
            self.assertEqual(0.3, counts["in_per_s"])

    def test_beside_figures(self) -> None:
        """Where queues are listed, what is counted stands beside their figures."""
        one = self.http("GET", "/api/v1/queues/mail").json
        (row,) = self.slow("GET", "/api/v1/queues").json["queues"]
        for queue in (one, row):
            self.assertEqual(self.expected(), {n: queue[n] for n in self.expected()})

    def test_pages(self) -> None:
        """Pages follow each other, whatever bytes are in the names."""
        names = [b"a/\xff%d" % number for number in range(5)]
        for name in names:
            self.call(b"ADDJOB", name, b"x", b"0")
        for cluster in (0, 1):
            found, query = [], f"match=a*&limit=2&sort=name&cluster={cluster}"
            page: Any = {"cursor": ""}
            while page["cursor"] is not None:
                cursor = f"&cursor={quote(page['cursor'])}" if page["cursor"] else ""
                page = self.slow("GET", f"{_COUNTS}?{query}{cursor}").json
                found += [row["url"] for row in page["queues"]]
            self.assertEqual([f"{_COUNTS}/{quote(name, safe='')}" for name in names], found)

    def test_long(self) -> None:
        """A page of many long names is written in pieces: a node does not stand still for it."""
        for number in range(400):
            self.call(b"ADDJOB", b"%04d" % number * 250, b"x", b"0")
        channel, transport = self.connect()
        channel.dataReceived(request("GET", f"{_COUNTS}?limit=1000&cluster=1"))
        self.let_answer(transport)
        first = len(transport.value())
        self.let_answer(transport, complete=True)
        answer, _rest = parsed(transport.value())
        self.assertEqual(401, len(answer.json["queues"]))
        self.assertLess(first, 2 * SLICE_BYTES)
        self.assertGreater(len(transport.value()), 4 * SLICE_BYTES)

    def test_sorted(self) -> None:
        """The longest queue comes first."""
        for _ in range(3):
            self.call(b"ADDJOB", b"longer", b"x", b"0")
        rows = self.slow("GET", _COUNTS).json["queues"]
        self.assertEqual(["longer", "mail"], [row["name"] for row in rows])

    def test_refused(self) -> None:
        """Wrong parameters are errors."""
        for query in (
            "?sort=size", "?limit=0", "?limit=1001", "?cursor=x", "?cursor=eDp5", "?cluster=2",
            "?cluster=yes", "?cursor=NTp4&cluster=1", f"?match={'x' * 1_025}", "?cursor=%C3%BC",
        ):  # fmt: skip
            self.problem(400, "ERR", self.slow("GET", f"{_COUNTS}{query}"))

"""Counts of queues over HTTP, and emptying queues."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from disque_tx.worker.deadletters import Letter
from tests.protocols.http.api.test_queues import SlicedCase

_COUNTS = "/api/v1/counts"
_QUEUE = "/api/v1/queues/mail"


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
        return {"queued": 1, "delayed": 1, "backoff": 1, "in_hand": 1, "dead": 0}

    def test_one(self) -> None:
        """A queue shows its jobs in every state, of this node or of the cluster."""
        for query in ("", "?cluster=0", "?cluster=1"):
            counts = self.slow("GET", f"{_COUNTS}/mail{query}").json
            self.assertEqual(self.expected(), {n: counts[n] for n in self.expected()})
            self.assertEqual((1, []), (counts["nodes"], counts["nodes_missing"]))
            self.assertEqual(0.3, counts["in_per_s"])

    def test_beside_figures(self) -> None:
        """Where queues are listed, what is counted stands beside their figures."""
        one = self.http("GET", _QUEUE).json
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


class EmptyingTests(SlicedCase):
    """Flushing queues, and moving their jobs."""

    def add(self, number: int, queue: bytes = b"mail", body: bytes = b"x") -> None:
        """Add so many jobs."""
        for _ in range(number):
            self.call(b"ADDJOB", queue, body, b"0")

    def test_flush(self) -> None:
        """All jobs in the queue end; those in other states only when they are named."""
        self.add(3)
        self.call(b"ADDJOB", b"mail", b"x", b"0", b"DELAY", b"60")
        done = self.slow("POST", f"{_QUEUE}/flush").json
        self.assertEqual({"count": 3, "nodes": 1, "nodes_missing": []}, done)
        rest = {"states": ["any"], "everywhere": True}
        self.assertEqual(1, self.slow("POST", f"{_QUEUE}/flush", rest).json["count"])

    def test_flush_refused(self) -> None:
        """A request that is wrong ends no job."""
        self.add(1)
        refused: list[Any] = [
            {"states": []}, {"states": "any"}, {"states": ["all"]}, {"states": [[]]},
            {"everywhere": 1}, {"state": ["any"]}, {"states": ["any"] * 6}, {"states": [None]},
        ]  # fmt: skip
        for bad in refused:
            self.problem(400, "ERR", self.slow("POST", f"{_QUEUE}/flush", bad))
        self.assertEqual(1, self.call(b"QLEN", b"mail"))

    def test_move(self) -> None:
        """Jobs are moved: some of them, these, or all."""
        self.add(5)
        path = f"{_QUEUE}/move"
        self.assertEqual({"count": 2}, self.slow("POST", path, {"to": "fax", "count": 2}).json)
        peeked = self.http("GET", f"{_QUEUE}/peek?count=1").json["jobs"][0]["id"]
        moved = self.slow("POST", path, {"to_base64": "/w==", "ids": [peeked]}).json
        self.assertEqual(({"count": 1}, 1), (moved, self.call(b"QLEN", b"\xff")))
        self.assertEqual({"count": 2}, self.slow("POST", path, {"to": "fax"}).json)
        self.assertEqual(4, self.call(b"QLEN", b"fax"))

    def test_move_dead(self) -> None:
        """Dead letters go back to where they came from."""
        dead = Letter(
            queue="mail", id="D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1", body=b"x", reason="",
            traceback="", worker="w", nacks=1, additional_deliveries=0, failed_at_s=1.0, retry_s=9,
        )  # fmt: skip
        self.add(2, b"dead:mail", dead.encoded())
        path = "/api/v1/queues/dead%3Amail/move"
        self.assertEqual(2, self.slow("POST", path, {"to": "*", "dead": True}).json["count"])
        self.assertEqual(2, self.call(b"QLEN", b"mail"))

    def test_move_refused(self) -> None:
        """A request that is wrong moves no job, and errors of the node keep their codes."""
        self.add(1)
        path = f"{_QUEUE}/move"
        for bad in (
            {}, {"to": 1}, {"to": "mail"}, {"to": ""}, {"to": "fax", "count": 0}, {"to": "\ud800"},
            {"to": "fax", "dead": "yes"}, {"to": "fax", "ids": []},
            {"to": "fax", "to_base64": "eA=="},
        ):  # fmt: skip
            self.problem(400, "ERR", self.slow("POST", path, bad))
        self.problem(400, "BADID", self.slow("POST", path, {"to": "fax", "ids": ["x"]}))
        self.call(b"PAUSE", b"fax", b"in")
        self.problem(409, "PAUSED", self.slow("POST", path, {"to": "fax"}))
        self.assertEqual(1, self.call(b"QLEN", b"mail"))

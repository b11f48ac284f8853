"""Emptying queues over HTTP."""

from __future__ import annotations

from typing import Any

from disque_tx.worker.settling.deadletters import Letter
from tests.protocols.http.api.queues.test_queues import SlicedCase

_QUEUE = "/api/v1/queues/mail"


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
        done = self.slow("POST", f"{_QUEUE}/flush", {"queue": "mail"}).json
        self.assertEqual({"count": 3, "nodes": 1, "nodes_missing": []}, done)
        rest = {"queue": "mail", "states": ["any"], "everywhere": True}
        self.assertEqual(1, self.slow("POST", f"{_QUEUE}/flush", rest).json["count"])

    def test_flush_refused(self) -> None:
        """A request that is wrong ends no job."""
        self.add(1)
        refused: list[Any] = [
            {"states": []}, {"states": "any"}, {"states": ["all"]}, {"states": [[]]},
            {"everywhere": 1}, {"state": ["any"]}, {"states": ["any"] * 7}, {"states": [None]},
        ]  # fmt: skip
        for bad in refused:
            answer = self.slow("POST", f"{_QUEUE}/flush", {"queue": "mail", **bad})
            self.problem(400, "ERR", answer)
        self.assertEqual(1, self.call(b"QLEN", b"mail"))

    def test_flush_unnamed(self) -> None:
        """A request that reached the path of a flush by accident or by a trick ends no job: it does
        not name the queue, or names another."""
        self.add(1)
        self.add(1, b"\xff")
        bodies: list[Any] = [
            None, {}, {"states": ["any"]}, {"queue": "fax"}, {"queue": 1}, {"queue_base64": "/w=="},
            {"queue": "mail", "queue_base64": "bWFpbA=="},
        ]  # fmt: skip
        for body in bodies:
            self.problem(400, "ERR", self.slow("POST", f"{_QUEUE}/flush", body))
        self.assertIn('{"queue": "mail"}', self.slow("POST", f"{_QUEUE}/flush").json["detail"])
        self.assertEqual(1, self.call(b"QLEN", b"mail"))
        other = self.slow("POST", "/api/v1/queues/%FF/flush", {"queue_base64": "/w=="})
        self.assertEqual(1, other.json["count"])

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

    def test_move_everywhere(self) -> None:
        """Jobs of all nodes are moved, however many there are; no more than were asked for."""
        self.add(250)
        path = f"{_QUEUE}/move?scope=cluster"
        self.assertEqual({"count": 2}, self.slow("POST", path, {"to": "fax", "count": 2}).json)
        peeked = self.http("GET", f"{_QUEUE}/peek?count=3").json["jobs"]
        ids = [job["id"] for job in peeked]
        self.assertEqual({"count": 3}, self.slow("POST", path, {"to": "fax", "ids": ids}).json)
        self.assertEqual({"count": 120}, self.slow("POST", path, {"to": "fax", "count": 120}).json)
        self.assertEqual({"count": 125}, self.slow("POST", path, {"to": "fax"}).json)
        self.assertEqual((0, 250), (self.call(b"QLEN", b"mail"), self.call(b"QLEN", b"fax")))

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

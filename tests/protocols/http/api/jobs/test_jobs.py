"""Jobs that exist, over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from tests.protocols.http.httpbench import Answer, HttpCase, parsed, request
from tests.services.nodebench import drive

_JOBS = "/api/v1/queues/mail/jobs"
_LEASE = "/api/v1/queues/mail/lease"


class LeaseTests(HttpCase):
    """Fetching jobs."""

    def lease(self, query: str = "") -> Answer:
        """The answer to a lease."""
        return self.http("POST", f"{_LEASE}{query}")

    def test_several(self) -> None:
        """A worker takes several jobs at once."""
        for number in range(3):
            self.http("POST", _JOBS, {"body": str(number)})
        jobs = self.lease("?count=2").json["jobs"]
        self.assertEqual(["0", "1"], [job["body"] for job in jobs])
        self.assertEqual((0, 0), (jobs[0]["nacks"], jobs[0]["additional_deliveries"]))
        self.assertEqual("2", self.lease().json["jobs"][0]["body"])
        self.assertEqual({"jobs": []}, self.lease().json)

    def test_waits(self) -> None:
        """A worker waits for a job without asking again and again."""
        channel, transport = self.connect()
        channel.dataReceived(request("POST", f"{_LEASE}?wait_ms=5000"))
        self.assertEqual(b"", transport.value())
        self.call(b"ADDJOB", b"mail", b"x", b"0")
        drive(self.reactor)
        self.assertEqual("x", parsed(transport.value())[0].json["jobs"][0]["body"])

    def test_gone(self) -> None:
        """A client that goes away while it waits takes no job with it."""
        channel, _transport = self.connect()
        channel.dataReceived(request("POST", f"{_LEASE}?wait_ms=5000"))
        self.hang_up(channel)
        self.call(b"ADDJOB", b"mail", b"x", b"0")
        self.assertEqual(1, self.call(b"QLEN", b"mail"))
        self.assertEqual(0, self.root.runtime.node.blocked_clients)

    def test_limits(self) -> None:
        """Numbers have limits, and the answer names them."""
        for query in ("?count=0", "?count=1001", "?count=x", "?wait_ms=-1", "?count=1&count=2"):
            self.problem(400, "ERR", self.lease(query))
        self.problem(400, "ERR", self.http("POST", _LEASE, {"count": 2}))


class SettleTests(HttpCase):
    """What becomes of leased jobs."""

    def leased(self) -> str:
        """The path of a leased job."""
        self.http("POST", _JOBS, {"body": "x", "retry_s": 60})
        path: str = self.http("POST", _LEASE).json["jobs"][0]["url"]
        return path

    def test_ack(self) -> None:
        """An acknowledged job is gone."""
        for verb in ("ack", "fastack"):
            path = self.leased()
            self.assertEqual({"count": 1}, self.http("POST", f"{path}/{verb}").json)
            self.problem(404, "NOJOB", self.http("GET", path))

    def test_nack(self) -> None:
        """A job that failed is delivered again, and counts it."""
        path = self.leased()
        self.http("POST", f"{path}/nack")
        self.assertEqual(1, self.http("POST", _LEASE).json["jobs"][0]["nacks"])

    def test_nack_later(self) -> None:
        """A job that failed can wait, and its reason is kept for people to find."""
        path = self.leased()
        job_id = path.rpartition("/")[2]
        failed = {"delay_s": 60.5, "reason": "no Grüße"}
        self.assertEqual({"count": 1}, self.http("POST", f"{path}/nack", failed).json)
        self.assertEqual([], self.http("POST", _LEASE).json["jobs"])
        _cursor, found = self.call(b"JSCAN", b"0", b"BUSYLOOP", b"REASON", "*Grüße".encode())
        self.assertEqual([job_id], [quote(found_id.text, safe="") for found_id in found])
        self.http("POST", f"{path}/enqueue")
        ids = [self.http("POST", _LEASE).json["jobs"][0]["id"]]
        several = {"ids": ids, "delay_s": 60, "reason": "x"}
        self.assertEqual({"count": 1}, self.http("POST", "/api/v1/jobs/nack", several).json)

    def test_place(self) -> None:
        """An active job is in flight, in backoff or delayed, which its state does not say."""
        path = self.leased()
        for scope in ("node", "cluster"):
            shown = self.http("GET", f"{path}?scope={scope}").json
            self.assertEqual(("active", "in-flight"), (shown["state"], shown["place"]))
        self.assertGreaterEqual(shown["place_age"], 0)
        self.http("POST", f"{path}/nack", {"delay_s": 60})
        shown = self.http("GET", path).json
        self.assertEqual(("active", "backoff"), (shown["state"], shown["place"]))
        answer = self.http("POST", _JOBS, {"body": "x", "delay_s": 60}).json
        delayed = self.http("GET", answer["url"]).json
        self.assertEqual(("active", "delayed"), (delayed["state"], delayed["place"]))
        answer = self.http("POST", _JOBS, {"body": "x"}).json
        self.assertNotIn("place", self.http("GET", answer["url"]).json)

    def test_nack_refused(self) -> None:
        """A wrong delay or reason leaves the job in the hands of its worker."""
        path = self.leased()
        for bad in (
            {"delay_s": -1}, {"delay_s": "x"}, {"delay_s": 0.0001}, {"delay_s": 1e300},
            {"delay_s": True}, {"reason": 5}, {"reason": "x" * 1_025}, {"reason": "\ud800"},
            {"ids": ["x"]},
        ):  # fmt: skip
            self.problem(400, "ERR", self.http("POST", f"{path}/nack", bad))
        self.assertEqual({"count": 1}, self.http("POST", f"{path}/ack").json)

    def test_wait(self) -> None:
        """A producer waits for the end of its job, and learns which it was."""
        for verb, ended in (("ack", "acked"), ("delete", "deleted")):
            path = self.leased()
            channel, transport = self.connect()
            channel.dataReceived(request("GET", f"{path}/wait"))
            self.assertEqual(b"", transport.value())
            ids = [unquote(path.rpartition("/")[2])]
            self.http("POST", f"/api/v1/jobs/{verb}", {"ids": ids})
            drive(self.reactor)
            self.assertEqual({"ended": ended}, parsed(transport.value())[0].json)

    def test_wait_gone(self) -> None:
        """Nothing is kept for a producer that goes away while it waits."""
        channel, _transport = self.connect()
        channel.dataReceived(request("GET", f"{self.leased()}/wait"))
        self.assertEqual(1, self.root.runtime.node.blocked_clients)
        self.hang_up(channel)
        self.assertEqual(0, self.root.runtime.node.blocked_clients)

    def test_wait_ends(self) -> None:
        """Waiting has an end, and waiting for a job that nobody knows does not begin."""
        path = self.leased()
        channel, transport = self.connect()
        channel.dataReceived(request("GET", f"{path}/wait?wait_ms=1"))
        self.let_answer(transport)
        self.assertEqual({"ended": None}, parsed(transport.value())[0].json)
        self.problem(400, "ERR", self.http("GET", f"{path}/wait?wait_ms=0"))
        self.http("DELETE", path)
        self.problem(404, "NOJOB", self.http("GET", f"{path}/wait"))
        self.problem(400, "BADID", self.http("GET", "/api/v1/jobs/x/wait"))

    def test_working(self) -> None:
        """A lease can be renewed."""
        path = self.leased()
        self.assertEqual({"retry_s": 60}, self.http("POST", f"{path}/working").json)
        self.http("DELETE", path)
        self.problem(404, "NOJOB", self.http("POST", f"{path}/working"))

    def test_progress(self) -> None:
        """How far a job is can be reported, and is shown until the job is delivered again."""
        path = self.leased()
        self.assertNotIn("progress", self.http("GET", path).json)
        report = {"progress": 0.4, "note": "page 40 ü"}
        self.assertEqual({"retry_s": 60}, self.http("POST", f"{path}/working", report).json)
        shown = self.http("GET", path).json
        self.assertEqual((0.4, "page 40 ü"), (shown["progress"], shown["progress_note"]))
        self.assertGreaterEqual(shown["progress_age"], 0)
        self.assertEqual("x", shown["body"])
        self.http("POST", f"{path}/working")
        self.assertEqual(0.4, self.http("GET", path).json["progress"])
        self.http("POST", f"{path}/nack")
        self.http("POST", _LEASE)
        self.assertNotIn("progress", self.http("GET", path).json)

    def test_progress_refused(self) -> None:
        """A wrong progress is neither kept nor a heartbeat."""
        path = self.leased()
        wrong: list[dict[str, Any]] = [
            {"progress": -0.1}, {"progress": 1.1}, {"progress": 1e400}, {"progress": "1"},
            {"progress": True}, {"progress": 10**400}, {"progress": 1, "note": 5},
            {"progress": 1, "note": "x" * 257}, {"progress": 1, "note": "\ud800"},
            {"progress": []}, {"of": 1},
        ]  # fmt: skip
        for bad in wrong:
            self.problem(400, "ERR", self.http("POST", f"{path}/working", bad))
        for raw in (b'{"progress": NaN}', b'{"progress": 1e999}', b'{"progress": -Infinity}'):
            self.problem(400, "ERR", self.http("POST", f"{path}/working", raw))
        self.assertNotIn("progress", self.http("GET", path).json)

    def test_progress_bytes(self) -> None:
        """A note that is no text does not break the answer."""
        path = self.leased()
        job_id = unquote(path.rpartition("/")[2]).encode()
        note = b'\xff"<b>'
        self.call(b"WORKING", job_id, b"PROGRESS", b"0.001", b"NOTE", note)
        shown = self.http("GET", path).json
        self.assertEqual((0.001, '\\xff"<b>'), (shown["progress"], shown["progress_note"]))

    def test_queue(self) -> None:
        """Jobs can be put into their queue and taken out of it."""
        path = self.leased()
        self.assertEqual({"count": 1}, self.http("POST", f"{path}/enqueue").json)
        self.assertEqual("queued", self.http("GET", path).json["state"])
        self.assertEqual({"count": 1}, self.http("POST", f"{path}/dequeue").json)

    def test_several(self) -> None:
        """Many jobs are settled with one request; the IDs need no encoding there."""
        self.leased()
        self.leased()
        ids = []
        for _ in range(2):
            ids.append(self.http("POST", _JOBS, {"body": "y"}).json["id"])
        self.assertEqual({"count": 2}, self.http("POST", "/api/v1/jobs/ack", {"ids": ids}).json)
        malformed: list[Any] = [{}, {"ids": []}, {"ids": "x"}, {"ids": ["x"] * 1_001}]
        for bad in malformed:
            self.problem(400, "ERR", self.http("POST", "/api/v1/jobs/ack", bad))
        malformed = [{"ids": [1]}, {"ids": ["ü"]}, {"ids": ["D-1"]}]
        for bad in malformed:
            self.problem(400, "BADID", self.http("POST", "/api/v1/jobs/ack", bad))

    def test_exact(self) -> None:
        """Numbers that JavaScript would round arrive as strings."""
        shown = self.http("GET", self.leased()).json
        self.assertIsInstance(shown["ctime"], str)
        self.assertGreater(int(shown["ctime"]), 2**53)

"""Jobs of a daemon of several processes over HTTP: each is shown once, and acted on where it is."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.protocols.http.api.queues.test_queues import letter
from tests.protocols.http.processesbench import ProcessesCase

_V1 = "/api/v1"
_UNKNOWN = "D-aaaaaaaa-" + "0" * 24 + "-05a1"


class OneTests(ProcessesCase):
    """One job, at the process without the listener."""

    def setUp(self) -> None:
        super().setUp()
        self.job_id = self.add(self.second, b"q", b'{"task": "send"}', b"RETRY", b"60")
        self.url = f"{_V1}/jobs/{quote(self.job_id, safe='')}"
        self.node = self.ids[1].decode()

    def test_shown(self) -> None:
        """It is shown as its process knows it, with that process, and all that know it."""
        found = self.slow("GET", self.url).json
        self.assertEqual(
            (self.job_id, "queued", '{"task": "send"}', self.node, 2, [self.node]),
            tuple(found[n] for n in ("id", "state", "body", "node", "process", "holders")),
        )
        self.assertNotIn("place", found)
        arguments = self.slow("GET", f"{self.url}/arguments").json
        self.assertEqual("send", arguments["task"])

    def test_in_flight(self) -> None:
        """Of one that a worker has, its place is shown, and its progress as far as it is known."""
        self.at(self.second, b"GETJOB", b"FROM", b"q")
        found = self.slow("GET", self.url).json
        self.assertEqual("active", found["state"])
        self.assertTrue({"place", "place_age"} <= found.keys(), found)
        self.assertNotIn("progress", found)
        self.at(self.second, b"WORKING", self.job_id.encode(), b"PROGRESS", b"0.5", b"NOTE", b"n")
        found = self.slow("GET", self.url).json
        self.assertEqual(("0.5", "n"), (str(found["progress"]), found["progress_note"]))

    def test_unknown(self) -> None:
        """A job that nobody knows is not there; while a process does not answer nobody can say
        that."""
        path = f"{_V1}/jobs/{_UNKNOWN}"
        answer = self.slow("GET", path)
        self.problem(404, "NOJOB", answer)
        self.assertEqual("No process of this daemon knows the job.", answer.json["detail"])
        self.problem(404, "NOJOB", self.slow("GET", f"{path}/arguments"))
        self.silent.add(self.ids[1])
        for one in (path, self.url):
            answer = self.slow("GET", one)
            self.problem(503, "TRYLATER", answer)
            self.assertEqual(
                "No process of this daemon knows the job, but one does not answer at present.",
                answer.json["detail"],
            )

    def test_acted(self) -> None:
        """It is settled at its process, and the answer counts it."""
        for verb, state in (("dequeue", "active"), ("enqueue", "queued"), ("ack", None)):
            answer = self.slow("POST", f"{self.url}/{verb}", {})
            self.assertEqual({"count": 1}, answer.json)
            shown = self.at(self.second, b"SHOW", self.job_id.encode())
            found = None if shown is None else shown[shown.index(b"state") + 1].decode()
            self.assertIn(found, (state, "acked") if state is None else (state,))


class ManyTests(ProcessesCase):
    """Jobs at both processes."""

    def setUp(self) -> None:
        super().setUp()
        self.at_roots = [self.first, self.second, self.second, self.first]
        self.jobs = [self.add(root, b"q", b"%d" % n) for n, root in enumerate(self.at_roots)]

    def test_queued(self) -> None:
        """Those in a queue are shown in the order in which they were added, whichever process has
        them; the newest ones in the other order."""
        made: dict[str, int] = {}
        for root, job_id in zip(self.at_roots, self.jobs, strict=True):
            shown = self.at(root, b"SHOW", job_id.encode())
            made[job_id] = shown[shown.index(b"ctime") + 1]
        expected = sorted(made, key=lambda job_id: (made[job_id], job_id))
        for count in (10, 3, 1):
            found = self.slow("GET", f"{_V1}/queues/q/peek?count={count}").json["jobs"]
            self.assertEqual(expected[:count], [job["id"] for job in found])

    def test_pages(self) -> None:
        """A walk over all jobs of a queue meets each once, with its process, in pages that go from
        one process to the next."""
        found: list[tuple[str, int]] = []
        cursor, pages = "0", 0
        while cursor is not None and pages < 20:
            path = f"{_V1}/queues/q/jobs?state=any&count=1&cursor={cursor}"
            answer = self.slow("GET", path).json
            found += [(job["body"], job["process"]) for job in answer["jobs"]]
            self.assertEqual((2, []), (answer["nodes"], answer["nodes_missing"]))
            cursor, pages = answer["cursor"], pages + 1
        self.assertEqual([("0", 1), ("1", 2), ("2", 2), ("3", 1)], sorted(found))
        self.assertEqual([1, 1, 2, 2], [process for _, process in found])
        for wrong in ("x", "2.0", "1.", "-1", "0.18446744073709551616"):
            path = f"{_V1}/queues/q/jobs?state=any&cursor={wrong}"
            self.problem(400, "ERR", self.slow("GET", path))

    def test_settled(self) -> None:
        """Many are settled in one request; one that nobody knows does not keep the others."""
        answer = self.slow("POST", f"{_V1}/jobs/ack", {"ids": [*self.jobs[:3], _UNKNOWN]}).json
        self.assertEqual(3, answer["count"])
        lengths = [self.at(root, b"QLEN", b"q") for root in (self.first, self.second)]
        self.assertEqual([1, 0], lengths)


class LettersTests(ProcessesCase):
    """Dead letters at both processes."""

    def setUp(self) -> None:
        super().setUp()
        self.letters = [
            self.add(root, b"dead:mail", letter(reason))
            for root, reason in ((self.second, "a"), (self.first, "b"), (self.second, "b"))
        ]

    def listed(self) -> Any:
        """What is listed."""
        answer = self.slow("GET", f"{_V1}/queues/mail/dead-letters").json
        reasons = {one["reason"]: one["count"] for one in answer["reasons"]}
        return reasons, answer["total"], answer["nodes"], answer["nodes_missing"]

    def test_listed(self) -> None:
        """All of them are listed, in the order in which they were made; while a process does not
        answer, its own are missing, and that is said."""
        self.assertEqual(({"a": 1, "b": 2}, 3, 2, []), self.listed())
        self.silent.add(self.ids[1])
        self.assertEqual(({"b": 1}, 1, 1, [self.ids[1].decode()]), self.listed())

    def test_requeued(self) -> None:
        """Their jobs are added again at the process with the listener, and each letter is ended
        where it is."""
        path = f"{_V1}/queues/mail/dead-letters/requeue"
        done = self.slow("POST", path, {"reason": "b"}).json
        self.assertEqual((2, 0), (done["count"], done["failed_count"]))
        self.assertEqual(({"a": 1}, 1, 2, []), self.listed())
        self.assertEqual(2, self.at(self.first, b"QLEN", b"mail"))

    def test_dropped(self) -> None:
        """One is dropped by its ID, wherever it is, and no other."""
        path = f"{_V1}/queues/mail/dead-letters/drop"
        self.assertEqual(1, self.slow("POST", path, {"ids": [self.letters[2]]}).json["count"])
        self.assertEqual(({"a": 1, "b": 1}, 2, 2, []), self.listed())

"""Jobs are found by what people know of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.protocols.http.api.queues.test_queues import SlicedCase


class SearchTests(SlicedCase):
    """One node with several queues."""

    def setUp(self) -> None:
        super().setUp()
        self.ada = self.add(b"mail", b'{"task": "mail.send", "args": ["Ada"]}')
        self.mueller = self.add(b"mail", b'{"task": "mail.send", "args": ["M\\u00fcller"]}')
        self.bill = self.add(b"bills", b"plain", b"UNIQUE", b"order-4711")

    def add(self, queue: bytes, body: bytes, *options: bytes) -> str:
        """The ID of a new job."""
        job_id: bytes = self.call(b"ADDJOB", queue, body, b"0", *options).text
        return job_id.decode()

    def found(self, words: str, rest: str = "") -> list[str]:
        """The IDs of what is found."""
        answer = self.slow("GET", f"/api/v1/search?text={quote(words)}{rest}").json
        self.assertIsNone(answer["cursor"])
        return sorted(job["id"] for job in answer["jobs"])

    def test_what_people_know(self) -> None:
        """The first characters of an ID, a key, the name of a task, or an argument, in any case of
        letters, escaped in JSON or not."""
        for words, ids in (
            (self.ada[:20], [self.ada]), ("ORDER-47", [self.bill]), ("Müller", [self.mueller]),
            ("mail.send", [self.ada, self.mueller]), ("nothing", []),
        ):  # fmt: skip
            self.assertEqual(sorted(ids), self.found(words), words)

    def test_why_it_failed(self) -> None:
        """A job is found by the error for which it came back, and by how often it did."""
        self.call(b"GETJOB", b"COUNT", b"2", b"FROM", b"mail")
        self.call(b"NACK", b"DELAY", b"60", b"REASON", b"Timeout of SMTP", self.ada.encode())
        self.assertEqual([self.ada], self.found("smtp"))
        self.assertEqual([self.ada], self.found("mail.send", "&attempts=1"))

    def test_filters(self) -> None:
        """By state and queue, too."""
        self.call(b"GETJOB", b"COUNT", b"1", b"FROM", b"mail")
        self.assertEqual([self.ada], self.found("mail.send", "&state=active"))
        self.assertEqual([self.mueller], self.found("mail.send", "&state=queued"))
        self.assertEqual([], self.found("mail.send", "&queue=bills"))

    def test_in_parts(self) -> None:
        """A walk over many jobs is made in parts, each of which says how far it came; none is met
        twice, and none is left out."""
        ids = [self.add(b"many", b"needle %d" % number) for number in range(300)]
        cursor, met, seen, parts = "0", list[str](), 0, 0
        while cursor is not None:
            path = f"/api/v1/search?text=needle&cursor={cursor}"
            answer: Any = self.slow("GET", path).json
            met += [job["id"] for job in answer["jobs"]]
            cursor, seen, parts = answer["cursor"], seen + answer["seen"], parts + 1
        self.assertEqual((sorted(ids), 303), (sorted(met), seen))
        self.assertGreater(parts, 3)

    def test_refused(self) -> None:
        """What cannot be meant."""
        for words in (
            "",
            "text=",
            "text=%20",
            "text=x&state=odd",
            "text=x&cursor=9.1",
            "text=x&attempts=-1",
        ):
            self.problem(400, "ERR", self.http("GET", f"/api/v1/search?{words}"))
        blank = self.http("GET", "/api/v1/search?text=%20")
        self.assertEqual("text must not be empty.", blank.json["detail"])

    def test_no_bodies_beyond(self) -> None:
        """A node looks at the beginning of bodies only, so that one job costs no more than
        others."""
        self.add(b"long", bytes(64 * 1024) + b"needle")
        self.assertEqual([], self.found("needle"))

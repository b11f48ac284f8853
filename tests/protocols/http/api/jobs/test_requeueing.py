"""Whole answers about dead letters, and the jobs that come back."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import attrs

from disque_tx.core.jobs.job import LOADED
from disque_tx.worker.settling.deadletters import Letter
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter
from tests.protocols.http.httpbench import parsed, request

_LETTERS = "/api/v1/queues/mail/dead-letters"


class LetterCase(SlicedCase):
    """A queue with dead letters."""

    def add(self, body: bytes) -> str:
        """Put a letter, or something else, into the queue of dead letters; its ID."""
        return str(self.call(b"ADDJOB", b"dead:mail", body, b"0").text.decode())

    def changed(self, reason: str = "down", **members: Any) -> bytes:
        """A letter with other members."""
        return attrs.evolve(Letter.decoded(letter(reason)), **members).encoded()

    def do(self, verb: str, **members: Any) -> Any:
        """The answer to one of the actions."""
        return self.slow("POST", f"{_LETTERS}/{verb}", members).json


class AnswerTests(LetterCase):
    """What is answered, member by member."""

    def test_listed(self) -> None:
        """A letter is shown with where it is, whose job it was, and when that failed; what is no
        letter with why. Of long words there is a beginning."""
        long = self.changed(id="D-" + "x" * 5_000, worker="w" * 5_000, failed_at_s=1.5)
        ids = [self.add(long), self.add(b"no letter")]
        answer = self.slow("GET", _LETTERS).json
        reasons = answer.pop("reasons")
        expected = {"total": 2, "read": 2, "matched": 2, "groups": 2, "truncated": False}
        self.assertEqual(expected, {name: answer[name] for name in expected})
        shown = {group["reason"]: group for group in reasons}
        (one,) = shown.pop("down")["letters"]
        size = len(one["job_id"])
        self.assertEqual(("D-" + "x" * 5_000)[:size], one["job_id"])
        self.assertEqual(size, len(one["worker"]))
        self.assertEqual(
            (ids[0], f"/api/v1/jobs/{quote(ids[0], safe='')}"), (one["id"], one["url"])
        )
        self.assertEqual(1.5, one["failed_at_s"])
        ((reason, other),) = shown.items()
        self.assertEqual(
            [{"id": ids[1], "url": f"/api/v1/jobs/{quote(ids[1], safe='')}"}], other["letters"]
        )
        self.assertEqual({"reason", "count", "letters"}, set(other))
        self.assertTrue(reason)

    def test_order(self) -> None:
        """The reason of most letters comes first, and of equal ones the first by name; of a reason
        a hundred letters are listed, and all are counted."""
        for reason in ("b", "c", "a", *["many"] * 101):
            self.add(letter(reason))
        found = self.slow("GET", _LETTERS).json["reasons"]
        shown = [(one["reason"], one["count"], len(one["letters"])) for one in found]
        self.assertEqual([("many", 101, 100), ("a", 1, 1), ("b", 1, 1), ("c", 1, 1)], shown)

    def test_done(self) -> None:
        """Each action answers how many letters it was about, and which of them stay, with why."""
        nothing = {"failed": [], "failed_count": 0}
        for verb in ("drop", "requeue"):
            self.add(letter("down"))
            self.assertEqual({"count": 1, **nothing}, self.do(verb, all=True, dry_run=True))
            self.assertEqual({"count": 1, **nothing}, self.do(verb, all=True))
            self.assertEqual({"count": 0, **nothing}, self.do(verb, all=True))
        rows = self.slow("GET", "/api/v1/actions").json["actions"]
        shown = [(row["what"], row["jobs"]) for row in rows[:2]]
        self.assertEqual([("REQUEUE mail all", 1), ("DROP mail all", 1)], shown)
        self.assertEqual(0, self.call(b"QLEN", b"dead:mail"))

    def test_failed(self) -> None:
        """Letters that cannot be put back are listed, a hundred of them, and all are counted; the
        others are put back."""
        bad = {self.add(b"no letter %d" % number) for number in range(101)}
        self.add(letter("down"))
        answer = self.do("requeue", all=True)
        self.assertEqual((1, 101), (answer["count"], answer["failed_count"]))
        self.assertEqual(100, len(answer["failed"]))
        self.assertTrue({one["id"] for one in answer["failed"]} < bad)
        (code,) = {one["code"] for one in answer["failed"]}
        self.assertEqual("ERR", code)
        self.assertEqual({"id", "code", "detail"}, set(answer["failed"][0]))
        self.assertEqual((101, 1), (self.call(b"QLEN", b"dead:mail"), self.call(b"QLEN", b"mail")))

    def test_full(self) -> None:
        """A job that its queue does not take stays a letter, and what the node said is shown."""
        name = self.add(letter("down"))
        self.call(b"PAUSE", b"mail", b"in")
        answer = self.do("requeue", all=True)
        self.assertEqual((0, 1), (answer["count"], answer["failed_count"]))
        (failed,) = answer["failed"]
        self.assertEqual((name, "PAUSED"), (failed["id"], failed["code"]))
        self.assertEqual(1, self.call(b"QLEN", b"dead:mail"))

    def test_at_once(self) -> None:
        """When two people put the same letters back at the same time, or a program repeats its
        request before the answer, each job is there once; who came later is told."""
        for _ in range(20):
            self.add(self.changed(body=bytes(100_000)))
        answers = []
        connections = [self.connect() for _ in range(2)]
        for channel, _ in connections:
            channel.dataReceived(request("POST", f"{_LETTERS}/requeue", {"all": True}))
        for channel, transport in connections:
            self.let_answer(transport, complete=True)
            answers.append(parsed(transport.value())[0].json)
            self.hang_up(channel)
        self.assertEqual(20, sum(answer["count"] for answer in answers))
        codes = {one["code"] for answer in answers for one in answer["failed"]}
        self.assertEqual({"NOJOB"}, codes)
        self.assertEqual((0, 20), (self.call(b"QLEN", b"dead:mail"), self.call(b"QLEN", b"mail")))

    def test_loaded(self) -> None:
        """A letter that came from the log is put back as others, before it is queued again."""
        name = self.add(letter("down")).encode()
        self.call(b"DEQUEUE", name)
        jobs = self.root.server.node.jobs
        job = jobs.get(name)
        assert job is not None
        jobs.set_whereabouts(job, LOADED)
        self.assertEqual(1, self.do("requeue", all=True)["count"])
        self.assertEqual(1, self.call(b"QLEN", b"mail"))


class OptionTests(LetterCase):
    """The jobs that come back."""

    def test_options(self) -> None:
        """A job comes back with the options that it had, and its body."""
        self.add(self.changed(body=b"\xff\x00", retry_s=7, ttl_s=500, replicate=1))
        self.do("requeue", all=True)
        (job,) = self.call(b"QPEEK", b"mail", b"1")
        shown = self.call(b"SHOW", job[1])
        found = {name: shown[shown.index(name) + 1] for name in (b"retry", b"repl", b"delay")}
        self.assertEqual({b"retry": 7, b"repl": 1, b"delay": 0}, found)
        self.assertTrue(490 <= shown[shown.index(b"ttl") + 1] <= 500)
        self.assertEqual(b"\xff\x00", job[2])

    def test_body(self) -> None:
        """A new body is for one letter that is named, and takes the place of the old one."""
        first, second = self.add(letter("down")), self.add(letter("down"))
        wrong: list[dict[str, Any]] = [
            {"ids": [first, second]},
            {"all": True},
            {"ids": []},
            {"ids": first},
        ]
        for members in wrong:
            answer = self.slow("POST", f"{_LETTERS}/requeue", {**members, "body_base64": "/w=="})
            self.assertEqual(400, answer.status, members)
        self.assertEqual(1, self.do("requeue", ids=[second], body_base64="/w==")["count"])
        self.assertEqual([b"\xff"], [job[2] for job in self.call(b"QPEEK", b"mail", b"9")])

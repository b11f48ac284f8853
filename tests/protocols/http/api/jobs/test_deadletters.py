"""Dead letters of a queue: none is hidden, however they are grouped and wherever they are."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import attrs

from disque_tx.protocols.http.api.jobs import deadletters
from disque_tx.protocols.http.api.jobs.letters import LETTER_BYTES_MAX
from disque_tx.worker.settling.deadletters import Letter
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter

_LETTERS = "/api/v1/queues/mail/dead-letters"


class GroupTests(SlicedCase):
    """Reasons that differ by numbers and names."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(130):
            self.add(letter(f"PaymentDeclined: card of customer {4711 + number} declined"))
        self.add(letter("timeout after 30 s"))

    def add(self, body: bytes) -> None:
        """Put a job into the queue of dead letters."""
        self.call(b"ADDJOB", b"dead:mail", body, b"0")

    def groups(self, words: str = "") -> Any:
        """The answer, by similar reasons."""
        return self.slow("GET", f"{_LETTERS}?by=similar{words}").json

    def test_similar(self) -> None:
        """One failing card service is one line, not a line per customer; a reason that all letters
        of a group share is shown as it was written."""
        answer = self.groups()
        shown = [(group["reason"], group["count"]) for group in answer["reasons"]]
        declined = "PaymentDeclined: card of customer … declined"
        self.assertEqual([(declined, 130), ("timeout after 30 s", 1)], shown)
        self.assertEqual(
            ["timeout after … s"], [group["similar"] for group in answer["reasons"][1:]]
        )

    def test_chosen(self) -> None:
        """A group is put back together, and no letter of another group with it."""
        similar = self.groups()["reasons"][0]["similar"]
        done = self.slow("POST", f"{_LETTERS}/requeue", {"similar": similar}).json
        self.assertEqual((130, 0), (done["count"], done["failed_count"]))
        self.assertEqual(1, self.call(b"QLEN", b"dead:mail"))

    def test_more_reasons(self) -> None:
        """When there are more reasons than are listed, the answer says how many."""
        answer = self.slow("GET", _LETTERS).json
        self.assertEqual((100, 131), (len(answer["reasons"]), answer["groups"]))
        self.assertEqual((131, 131, False), (answer["total"], answer["read"], answer["truncated"]))

    def test_more_letters(self) -> None:
        """The total is that of all letters, and the answer says how many of them were read."""
        self.patch(deadletters, "LETTERS_MAX", 50)
        answer = self.groups()
        self.assertEqual((131, 50, True), (answer["total"], answer["read"], answer["truncated"]))

    def test_long(self) -> None:
        """A letter may have half a mebibyte, and is listed by its reason then; a longer one is
        listed all the same, and says why its own reason is not shown."""
        for more in (0, 1):
            reason = f"long {more} "
            size = LETTER_BYTES_MAX + more - len(letter(reason))
            body = letter(reason + "x" * size)
            self.assertEqual(LETTER_BYTES_MAX + more, len(body))
            self.add(body)
        shown = {group["reason"]: group["count"] for group in self.groups()["reasons"]}
        self.assertEqual(1, shown["long 0 " + "x" * 193])
        self.assertEqual(1, shown[f"The letter has more than {LETTER_BYTES_MAX} bytes."])
        self.assertNotIn("long 1 " + "x" * 193, shown)


class PolicyTests(SlicedCase):
    """Dead letters in a queue that a policy names."""

    def setUp(self) -> None:
        super().setUp()
        self.call(b"QPOLICY", b"SET", b"mai?", b"dead-queue", b"graveyard")
        for body in (letter("down"), letter("down"), letter("x").replace(b'"mail"', b'"bills"')):
            self.call(b"ADDJOB", b"graveyard", body, b"0")
        self.call(b"ADDJOB", b"dead:mail", letter("before the policy"), b"0")

    def test_found(self) -> None:
        """They are listed, without those of other queues; and those from before the policy, too."""
        answer = self.slow("GET", _LETTERS).json
        shown = {group["reason"]: group["count"] for group in answer["reasons"]}
        self.assertEqual({"down": 2, "before the policy": 1}, shown)
        self.assertEqual((3, False), (answer["total"], answer["truncated"]))

    def test_dropped(self) -> None:
        """Whoever drops all letters of a queue drops none of another queue."""
        self.assertEqual(3, self.slow("POST", f"{_LETTERS}/drop", {"all": True}).json["count"])
        self.assertEqual(1, self.call(b"QLEN", b"graveyard"))

    def test_own_queue(self) -> None:
        """The policy may name a queue for each queue."""
        self.call(b"QPOLICY", b"SET", b"mai?", b"dead-queue", b"lost:{queue}")
        self.call(b"ADDJOB", b"lost:mail", letter("elsewhere"), b"0")
        reasons = [group["reason"] for group in self.slow("GET", _LETTERS).json["reasons"]]
        self.assertEqual(["before the policy", "elsewhere"], reasons)


class ChoiceTests(SlicedCase):
    """What is done with letters, with how many, and when."""

    def setUp(self) -> None:
        super().setUp()
        for number, body in enumerate((b'{"to": "Ada"}', b'{"to": "M\\u00fcller"}', b"plain")):
            dead = attrs.evolve(Letter.decoded(letter("down")), id=f"D-{number}", body=body)
            self.call(b"ADDJOB", b"dead:mail", dead.encoded(), b"0")

    def do(self, verb: str, **members: Any) -> Any:
        """The answer to one of the actions."""
        return self.slow("POST", f"{_LETTERS}/{verb}", members).json

    def bodies(self) -> list[bytes]:
        """Jobs that are queued again."""
        return [job[2] for job in self.call(b"QPEEK", b"mail", b"10")]

    def delays(self) -> list[int]:
        """The DELAY of the jobs that came back, in order."""
        ids = [status.text for status in self.call(b"JSCAN", b"COUNT", b"99", b"QUEUE", b"mail")[1]]
        shown = [self.call(b"SHOW", job_id) for job_id in ids]
        return sorted(job[job.index(b"delay") + 1] for job in shown)

    def test_matching(self) -> None:
        """Those with a text in them are listed, counted, and put back, and no others; whether the
        text is escaped in JSON does not matter."""
        for words, count in (("ada", 1), ("müller", 1), ("DOWN", 3), ("D-2", 1), ("nobody", 0)):
            answer = self.slow("GET", f"{_LETTERS}?matching={quote(words)}").json
            self.assertEqual((count, 3), (answer["matched"], answer["read"]), words)
            self.assertEqual(count, self.do("drop", matching=words, dry_run=True)["count"])
        self.assertEqual(1, self.do("requeue", matching="müller")["count"])
        self.assertEqual([b'{"to": "M\\u00fcller"}'], self.bodies())
        self.problem(400, "ERR", self.slow("POST", f"{_LETTERS}/drop", {"matching": ""}))
        self.problem(400, "ERR", self.slow("POST", f"{_LETTERS}/drop", {"matching": "x" * 300}))

    def test_counted_first(self) -> None:
        """Who asks how many there are has changed nothing."""
        for verb in ("requeue", "drop"):
            self.assertEqual(3, self.do(verb, all=True, dry_run=True)["count"])
        self.assertEqual(3, self.call(b"QLEN", b"dead:mail"))
        self.assertEqual([b"start"], [row[1] for row in self.call(b"ACTIONS")])

    def test_later(self) -> None:
        """Jobs that would fail again now come back later."""
        self.do("requeue", all=True, delay_s=60)
        self.assertEqual([60, 60, 60], self.delays())

    def test_spread(self) -> None:
        """Thousands of jobs that come back do not all arrive at once; a second request goes on
        where the first one ended."""
        self.do("requeue", all=True, per_minute=2, limit=2)
        self.do("requeue", all=True, per_minute=2, first=2)
        self.assertEqual([0, 30, 60], self.delays())

    def test_edited(self) -> None:
        """A job whose arguments were wrong comes back with the right ones; which job is meant must
        be clear."""
        (group,) = self.slow("GET", _LETTERS).json["reasons"]
        one = group["letters"][0]["id"]
        self.assertEqual(1, self.do("requeue", ids=[one], body='{"to": "Bob"}')["count"])
        self.assertEqual([b'{"to": "Bob"}'], self.bodies())
        wrong = self.slow("POST", f"{_LETTERS}/requeue", {"all": True, "body": "x"})
        self.problem(400, "ERR", wrong)
        self.assertEqual(2, self.call(b"QLEN", b"dead:mail"))

    def test_kept(self) -> None:
        """What was done, by whom, and with how many, is known afterwards."""
        self.do("requeue", matching="ada")
        self.do("drop", all=True)
        rows = self.slow("GET", "/api/v1/actions").json["actions"]
        shown = [(row["what"], row["jobs"]) for row in rows[:2]]
        self.assertEqual([("DROP mail all", 2), ("REQUEUE mail matching ada", 1)], shown)

"""Dead letters of a queue: none is hidden, however they are grouped and wherever they are."""

from __future__ import annotations

from typing import Any

from disque_tx.protocols.http.api.jobs import deadletters
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

"""Policies as requests."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests.policies import policy_get, policy_list, policy_set
from disque_tx.client.requests.replies import MalformedReply


class PolicyTests(SynchronousTestCase):
    """What a program passes, and what a node answers."""

    def test_values(self) -> None:
        """Values are those of the program: a boolean is yes or no, and a number is no boolean."""
        request = policy_set("a*", {"retry-on-timeout": True, "max-deliveries": 1, "ttl": "5"})
        words = ("retry-on-timeout", "yes", "max-deliveries", 1, "ttl", "5")
        self.assertEqual(("QPOLICY", "SET", b"a*", *words), request.words)
        self.assertFalse(request.repeatable)

    def test_nothing(self) -> None:
        """A policy without settings is a mistake of the program, which a node could only call a
        wrong number of arguments."""
        error = self.assertRaises(ValueError, policy_set, "a*", {})
        self.assertIn("at least one setting", str(error))

    def test_malformed(self) -> None:
        """Rows of another length are no answer."""
        wrong: list[Any] = [[[b"a*"]], [[b"a", b"b", b"c", b"d"]], [b"a"], b"a"]
        for reply in wrong:
            self.assertRaises(MalformedReply, policy_list().parse, reply)
            self.assertRaises(MalformedReply, policy_get("q").parse, reply)

"""Policies as requests."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests.policies import (
    policy_del,
    policy_get,
    policy_list,
    policy_repair,
    policy_set,
)
from disque_tx.client.requests.replies import MalformedReply
from disque_tx.client.values import PolicySetting


class PolicyTests(SynchronousTestCase):
    """What a program passes, and what a node answers."""

    def test_values(self) -> None:
        """Values are those of the program: a boolean is yes or no, and a number is no boolean."""
        request = policy_set("a*", {"retry-on-timeout": True, "max-deliveries": 1, "ttl": "5"})
        words = ("retry-on-timeout", "yes", "max-deliveries", 1, "ttl", "5")
        self.assertEqual(("QPOLICY", "SET", b"a*", *words), request.words)
        self.assertFalse(request.repeatable)

    def test_requests(self) -> None:
        """Each has the words of its command; questions are asked again after a lost answer."""
        for request, words, repeatable in (
            (policy_del("a*"), ("DEL", b"a*"), False),
            (policy_del("a*", "ttl", "retry"), ("DEL", b"a*", "ttl", "retry"), False),
            (policy_repair(), ("REPAIR",), False),
            (policy_list(), ("LIST",), True),
            (policy_list("a*"), ("LIST", b"a*"), True),
            (policy_get("a"), ("GET", b"a"), True),
        ):
            found = request.words, request.repeatable, request.wait_s
            self.assertEqual((("QPOLICY", *words), repeatable, 0.0), found)

    def test_replies(self) -> None:
        """Patterns have their settings, and a queue those in force, each with the pattern that it
        comes from."""
        rows = [[b"a*", [b"ttl", b"5", b"retry", b"7"]], [b"b", []]]
        self.assertEqual({"a*": {"ttl": "5", "retry": "7"}, "b": {}}, policy_list().parse(rows))
        found = policy_get("a").parse([[b"ttl", b"5", b"a*"], [b"retry", b"7", b"a"]])
        self.assertEqual({"ttl": PolicySetting("5", "a*"), "retry": PolicySetting("7", "a")}, found)

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

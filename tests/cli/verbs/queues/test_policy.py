"""``disque policy``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class PolicyVerbTests(VerbCase):
    """One node, with jobs in two queues."""

    def setUp(self) -> None:
        super().setUp()
        self.connection = self.connect()
        for queue in ("mail:a", "mail:b", "other"):
            self.connection.call("ADDJOB", queue, "body", 0)

    def policy(self, *words: str | float) -> tuple[int, str, str]:
        """Run ``disque policy``."""
        return self.disque("policy", *words)

    def test_round(self) -> None:
        """What is set is listed, shown for a queue, and deleted."""
        self.assertEqual((0, "", ""), self.policy("set", "mail:*", "TTL", 60, "retry", "5"))
        self.assertEqual((0, "", ""), self.policy("set", "mail:a", "ttl", 70))
        table = "pattern\tsetting\tvalue\nmail:*\tttl\t60\nmail:*\tretry\t5\nmail:a\tttl\t70\n"
        self.assertEqual((0, table, ""), self.policy("list"))
        self.assertEqual(
            (0, "pattern,setting,value\nmail:a,ttl,70\n", ""),
            self.policy("list", "mail:a", "--csv"),
        )
        _, text, _ = self.policy("list", "--json")
        self.assertEqual(
            {"pattern": "mail:*", "settings": {"ttl": "60", "retry": "5"}},
            json.loads(text.splitlines()[0]),
        )
        table = "setting\tvalue\tpattern\nttl\t70\tmail:a\nretry\t5\tmail:*\n"
        self.assertEqual((0, table, ""), self.policy("get", "mail:a"))
        _, text, _ = self.policy("get", "mail:a", "--json")
        row = {"setting": "ttl", "value": "70", "pattern": "mail:a"}
        self.assertEqual(row, json.loads(text.splitlines()[0]))
        self.assertEqual((0, "1\n", ""), self.policy("del", "mail:*", "ttl"))
        self.assertEqual((0, "1\n", ""), self.policy("del", "mail:*"))
        self.assertEqual((0, "0\n", ""), self.policy("del", "mail:*"))

    def test_dry_run(self) -> None:
        """A dry run shows the queues whose settings would change, and changes nothing."""
        self.policy("set", "mail:a", "ttl", 70)
        status, text, error = self.policy("set", "mail:*", "ttl", 60, "--dry-run")
        self.assertEqual((0, "queue\tsetting\tnow\tthen\nmail:b\tttl\t-\t60\n"), (status, text))
        self.assertEqual("1 queue would change. Nothing was changed.\n", error)
        _, text, _ = self.policy("del", "mail:a", "--dry-run", "--json")
        self.assertEqual(
            {"queue": "mail:a", "setting": "ttl", "now": "70", "then": None}, json.loads(text)
        )
        self.assertEqual([[b"mail:a", [b"ttl", b"70"]]], self.connection.call("QPOLICY", "LIST"))

    def test_repaired(self) -> None:
        """After a repair people see how many settings were numbered anew, deleted ones included."""
        self.policy("set", "mail:*", "ttl", 60, "retry", 5)
        self.policy("del", "mail:*", "ttl")
        count = self.connection.call("QPOLICY", "REPAIR")
        self.assertEqual((0, f"{count}\n", ""), self.policy("repair"))
        self.assertGreaterEqual(count, 1)

    def test_errors(self) -> None:
        """Errors name the setting and what it takes, of a dry run as of the node."""
        text = "Policy setting 'ttl' must be a whole number of seconds"
        for words in (["set", "a", "ttl", "x"], ["set", "a", "ttl", "x", "--dry-run"]):
            status, _, error = self.policy(*words)
            self.assertNotEqual(0, status)
            self.assertIn(text, error)
        status, _, error = self.policy("set", "a", "ttl")
        self.assertEqual(2, status)
        self.assertIn("Every setting needs a value.", error)

    def test_completion(self) -> None:
        """A shell completes the words behind ``policy``."""
        status, text, _ = self.disque("completion", "bash")
        self.assertEqual(0, status)
        self.assertIn("--dry-run", text)

"""``disque schedule``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class ScheduleVerbTests(VerbCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.connection = self.connect()

    def schedule(self, *words: str | float) -> tuple[int, str, str]:
        """Run ``disque schedule``."""
        return self.disque("schedule", *words)

    def test_round(self) -> None:
        """What is set is listed, shown, paused, run and deleted."""
        words = ("night", "0 3 * * *", "q", "tidy up", "--tz", "Europe/Berlin", "--ttl", 60)
        self.assertEqual((0, "", ""), self.schedule("set", *words, "--missed", "one"))
        self.assertEqual((0, "", ""), self.schedule("set", "tick", 86_400, "q", "b", "--retry", 0))
        status, text, error = self.schedule("list")
        lines = [line.split("\t") for line in text.splitlines()]
        self.assertEqual((0, "", 3), (status, error, len(lines)))
        self.assertEqual(["night", "0 3 * * *", "Europe/Berlin", "on", "q", "-"], lines[1][:6])
        self.assertEqual(["tick", "EVERY 86400", "UTC", "on", "q", "-"], lines[2][:6])
        _, text, _ = self.schedule("list", "--csv")
        self.assertEqual("name,when,zone,state,queue,last,next,error", text.splitlines()[0])
        following = json.loads(self.schedule("get", "night", "--json")[1])["next"][0]
        self.assertEqual([following], [row.split(",")[6] for row in text.splitlines()[1:2]])
        self.assertEqual([following, "-"], lines[1][6:])
        self.assertEqual((0, "", ""), self.schedule("pause", "night"))
        self.assertEqual(["-", "-"], self.schedule("list")[1].splitlines()[1].split("\t")[6:])
        _, text, _ = self.schedule("get", "night", "--json")
        found = json.loads(text)
        self.assertEqual(["paused", "tidy up", []], [found[k] for k in ("state", "body", "next")])
        self.assertEqual((0, "", ""), self.schedule("resume", "night"))
        _, text, _ = self.schedule("get", "night", "--json")
        self.assertEqual(5, len(json.loads(text)["next"]))
        status, skipped, _ = self.schedule("skip", "night")
        self.assertEqual((0, f"{json.loads(text)['next'][0]}\n"), (status, skipped))
        _, text, _ = self.schedule("get", "night")
        self.assertIn("options\tTTL, 60\n", text)
        status, text, error = self.schedule("run", "tick")
        self.assertEqual((0, "D-", ""), (status, text[:2], error))
        self.assertEqual(1, self.connection.call("QLEN", "q"))
        self.assertEqual((0, "", ""), self.schedule("del", "tick", "--yes"))
        _, text, _ = self.schedule("list", "--json")
        self.assertEqual(["night"], [json.loads(line)["name"] for line in text.splitlines()])

    def test_asks(self) -> None:
        """Nothing is deleted unless the operator says so."""
        self.schedule("set", "s", 60, "q", "b")
        status, _, error = self.schedule("del", "s")
        self.assertNotEqual(0, status)
        self.assertIn("Delete the schedule s?", error)
        self.assertEqual(1, len(self.connection.call("SCHEDULE", "LIST")))

    def test_repaired(self) -> None:
        """After a repair people see how many entries were numbered anew, deleted ones included."""
        for name in ("a", "b", "c"):
            self.schedule("set", name, 60, "q", "b")
        self.schedule("del", "c", "--yes")
        count = self.connection.call("SCHEDULE", "REPAIR")
        self.assertEqual((0, f"{count}\n", ""), self.schedule("repair"))
        self.assertGreaterEqual(count, 2)

    def test_bodies(self) -> None:
        """Programs get the very bytes of a body, as they do from drain: those that are not UTF-8
        are not mixed up with the text that stands for them."""
        for name, body in (("bytes", b"\xff"), ("text", rb"\xff")):
            self.connection.call("SCHEDULE", "SET", name, "EVERY", 60, "QUEUE", "q", body)
        _, text, _ = self.schedule("list", "--json")
        found = [json.loads(line)["body"] for line in text.splitlines()]
        self.assertEqual([{"base64": "/w=="}, r"\xff"], found)
        _, text, _ = self.schedule("get", "bytes", "--json")
        self.assertEqual({"base64": "/w=="}, json.loads(text)["body"])

    def test_errors(self) -> None:
        """Errors are the node's, which say what is wrong with which word."""
        for words, text in (
            (("set", "s", "61 * * * *", "q", "b"), "Bad minute"),
            (("set", "s", "0", "q", "b"), "EVERY takes 1 to"),
            (("set", "s", "²", "q", "b"), "is no cron expression"),
            (("set", "s", "9" * 5_000, "q", "b"), "refused SCHEDULE"),
            (("set", "s", "@daily", "q", "b", "--tz", "Mars"), "There is no time zone 'Mars'"),
            (("get", "s"), "There is no schedule of this name"),
            (("run", "s"), "There is no schedule of this name"),
            (("del", "s", "--yes"), "There is no schedule s."),
        ):
            status, _, error = self.schedule(*words)
            self.assertNotEqual(0, status)
            self.assertIn(text, error)

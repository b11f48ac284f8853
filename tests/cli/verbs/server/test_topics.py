"""``disque help`` on verbs and their parts."""

from __future__ import annotations

from tests.cli.livenode import VerbCase


class TopicTests(VerbCase):
    """No node is asked for any of it."""

    def first(self, *words: str) -> str:
        """The first line of the help on these words."""
        status, output, errors = self.disque("help", *words, port=1)
        self.assertEqual((0, ""), (status, errors))
        return output.splitlines()[0]

    def test_verbs(self) -> None:
        """Help on a verb, or on a part of it, is what its own --help shows, under the name that one
        types."""
        for words in (("schedule",), ("schedule", "set"), ("drain",), ("cluster", "downgrade")):
            status, output, _ = self.disque("help", *words)
            name = " ".join(words)
            self.assertTrue(output.startswith(f"Usage: disque {name} [OPTIONS]"), output[:60])
            self.assertEqual((0, output.rstrip("\n")), (status, self.shown(*words)))

    def shown(self, *words: str) -> str:
        """What --help shows."""
        return self.disque(*words, "--help")[1].rstrip("\n")

    def test_server(self) -> None:
        """What no verb is, or has no such part, is a command of the server; a group has its own
        mark."""
        for words, begin in (
            (("QLEN",), "QLEN queue"),
            (("cluster", "nodes"), "CLUSTER NODES"),
            (("schedule", "list", "more"), "No help"),
            (("drain", "more"), "No help"),
        ):
            self.assertIn(begin, self.disque("help", *words)[1])
        self.assertNotEqual(self.first("CLUSTER"), self.first("cluster"))

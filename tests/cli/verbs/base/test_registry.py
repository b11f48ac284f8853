"""Which words are verbs of ``disque``, and which are commands of the server."""

from __future__ import annotations

from importlib import import_module

import click
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.syntax import ENTRIES
from disque_tx.cli.verbs.base.registry import VERBS, listing, recognised
from disque_tx.cli.verbs.workers import work
from tests.cli.double import ScriptedServer
from tests.cli.livenode import VerbCase
from tests.cli.program import run


class RecognisedTests(SynchronousTestCase):
    """``recognised``."""

    def test_for_the_server(self) -> None:
        """Scripts for the original send these commands, in upper or lower case; they must reach the
        server."""
        for line in (
            b"PING|cluster nodes|cluster info|CLUSTER INFO|cluster myid|cluster meet 10.0.0.1 7711"
            b"|cluster meet ::1 7711|cluster forget 69c576d01cbe51945a0084a3b612f98447ce6e79"
            b"|cluster|cluster leaving yes|CLUSTER CHECK a:1|Drain q|TAIL q|cluster info server"
            b"|cluster nodes a:1|cluster meet :7711 1|move_|HELP|CLUSTER CREATE --yes a:1"
        ).split(b"|"):
            self.assertIsNone(recognised(line.split()), line)

    def test_verbs(self) -> None:
        """An address with a port distinguishes verbs from commands of the server."""
        for line in (
            b"cluster check a:1|cluster info [::1]:7711|cluster meet 10.0.0.1:7711 10.0.0.2:7711"
            b"|cluster forget a:1 id|cluster create a:1 b:2|cluster --help|cluster create --help"
            b"|cluster check --json a:1|cluster create --yes a:1 b:2|cluster forget --yes a:1 id"
            b"|cluster info --json a:1|cluster meet --yes --timeout 5 a:1 b:2|cluster check"
            b"|cluster check a|cluster --json check a:1|cluster meet -- a:1 b:2"
        ).split(b"|"):
            self.assertIs(VERBS["cluster"], recognised(line.split()), line)
        for word in VERBS.keys() - {"cluster"}:
            self.assertIs(VERBS[word], recognised([word.encode()]))

    def test_no_command_of_the_server_is_hidden(self) -> None:
        """Except CLUSTER, and SCHEDULE, whose verb can do all that the command can, no verb has the
        name of a command."""
        commands = {entry.name.split()[0].lower() for entry in ENTRIES}
        self.assertEqual({"cluster", "schedule"}, commands & VERBS.keys())
        self.assertIsNone(recognised([b"SCHEDULE", b"LIST"]))

    def test_modules(self) -> None:
        """Each verb is the command of its module, and is listed in the help."""
        for word, verb in VERBS.items():
            command = import_module(verb.module).command
            self.assertIsInstance(command, click.Command)
            self.assertEqual(word, command.name)
            self.assertIn(f"  {word} ", listing())


class HelpTests(VerbCase):
    """``disque help``, which needs no node."""

    def test_topics(self) -> None:
        """Each word leads one step down; what is none of the verb's is looked for among the
        commands of the server."""
        for words, begin in (
            (("dead",), "Usage: disque dead [OPTIONS] COMMAND"),
            (("dead", "list"), "Usage: disque dead list [OPTIONS] "),
            (("cluster", "create"), "Usage: disque cluster create [OPTIONS] "),
        ):
            status, output, errors = self.disque("help", *words)
            self.assertEqual((0, "", begin), (status, errors, output[: len(begin)]))
        for words, part in ((("cluster", "nodes"), "CLUSTER NODES"), (("qlen",), "QLEN queue")):
            self.assertIn(part, self.disque("help", *words)[1])
        status, output, _ = self.disque("help")
        self.assertTrue(output.startswith("Usage: disque [options]"), output[:40])
        self.assertEqual(output, self.disque("--help")[1])


class RunTests(SynchronousTestCase):
    """Verbs in processes of their own, where they need no node."""

    def test_raw_cluster(self) -> None:
        """Commands of the original are sent unchanged."""
        server = ScriptedServer(b"+OK\r\n")
        self.addCleanup(server.stop)
        words = ("-p", str(server.port), "cluster", "meet", "10.0.0.1", "7711")
        run("disque_tx.cli.programs.client", *words)
        self.assertEqual([[b"cluster", b"meet", b"10.0.0.1", b"7711"]], server.requests)


class WordTests(VerbCase):
    """Words that need no node."""

    def test_help(self) -> None:
        """Every verb has a help text, with status 0."""
        for word in ("help", "drain"):
            status, output, errors = self.disque(word, "--help")
            self.assertEqual((0, ""), (status, errors))
            self.assertTrue(output.startswith(f"Usage: disque {word}"))
        self.assertIn("ADDJOB queue body ms-timeout", self.disque("help", "addjob")[1])

    def test_bad_words(self) -> None:
        """Wrong arguments are reported on standard error, with status 2."""
        self.patch(work, "_log_to_stderr", lambda level: None)  # it would be for all tests
        for words in (
            ("drain", "q", "--count", "x"),
            ("watch",),
            ("--tls", "work", "x:y"),
            ("--tls", "--sni", "a", "tail", "q"),
            ("cluster", "forget", "a:1", "id"),
            ("cluster", "check"),
            ("cluster", "check", "--jason", "a:1"),
            ("cluster", "--json", "check", "a:1"),
            ("--csv", "move", "a", "b"),
            ("--json", "fill"),
            ("--json", "cluster", "create", "a:1", "b:2"),
            ("--csv", "dead", "drop", "--all"),
            ("--csv", "cluster", "check", "a:1"),
            ("cluster", "check", "a:99999"),
            ("-x", "drain", "q"),
        ):
            status, output, errors = self.disque(*words)
            self.assertEqual((2, ""), (status, output), words)
            self.assertIn("Error: ", errors)

    def test_without_effect(self) -> None:
        """An option that a verb would ignore is refused, and the message says what there is
        instead."""
        for option, said in (
            (("-e",), "-e is for commands of the server; verbs always report failures."),
            (("-r", "2"), "-x and -r are for commands of the server."),
            (("-x",), "-x and -r are for commands of the server."),
            (
                ("--tls", "--sni", "a"),
                "--sni is for commands of the server; verbs have --no-host-check.",
            ),
            (("--csv",), "drain has no output as --csv."),
        ):
            status, output, errors = self.disque(*option, "drain", "q")
            self.assertEqual((2, "", f"Error: {said}"), (status, output, errors.splitlines()[-1]))

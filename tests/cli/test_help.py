"""Help, hints and completion."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.help import completions, hint, render
from disque_tx.cli.syntax import ENTRIES, GROUPS
from disque_tx.commands.table import standard_registry

#: What begins with Q.
QUEUE_WORDS = ["QCOUNT", "QFLUSH", "QLEN", "QLIST", "QMOVE"]
QUEUE_WORDS += ["QPEEK", "QPOLICY", "QSCAN", "QSTAT", "QUIT"]


class EntriesTests(SynchronousTestCase):
    """The table of help texts."""

    def test_complete(self) -> None:
        """There is help for every command of the server, and for QUIT."""
        described = {entry.name.split()[0] for entry in ENTRIES}
        commands = {command.name.decode().upper() for command in standard_registry().table}
        self.assertEqual(commands | {"QUIT"}, described)

    def test_groups(self) -> None:
        """Every entry is in a known group, and no group is empty."""
        self.assertEqual(set(GROUPS), {entry.group for entry in ENTRIES})


class RenderTests(SynchronousTestCase):
    """``help``."""

    def test_command(self) -> None:
        """A command is found in upper or lower case, with its arguments, summary and group."""
        text = render("qlen")
        self.assertIn("  QLEN queue\n", text)
        self.assertIn("  group: queues\n", text)

    def test_subcommands(self) -> None:
        """A container command shows all its subcommands; two words show one."""
        self.assertEqual(8, render("cluster").count("summary"))
        self.assertEqual(1, render("cluster  meet").count("summary"))

    def test_group(self) -> None:
        """A group shows its commands and no others."""
        text = render("@queues")
        self.assertIn("QSCAN", text)
        self.assertNotIn("ADDJOB", text)

    def test_introduction_and_unknown(self) -> None:
        """Without a topic, or with an unknown one, the text says how to use help."""
        self.assertIn("help @<group>", render(""))
        self.assertIn("connection, server, cluster", render("nonsense"))

    def test_colour_only_when_asked(self) -> None:
        """Without a terminal there are no escape sequences."""
        self.assertNotIn("\x1b", render("ping"))
        self.assertIn("\x1b[1mPING\x1b[0m", render("ping", colour=True))


class HintTests(SynchronousTestCase):
    """Hints for the arguments that may follow."""

    def test_arguments_shrink(self) -> None:
        """Arguments that are typed disappear from the hint."""
        self.assertEqual(" queue count", hint("qpeek"))
        self.assertEqual("count", hint("QPEEK mail "))
        self.assertEqual("", hint("QPEEK mail 5"))

    def test_options_take_their_value(self) -> None:
        """The value of an option is not mistaken for the next argument."""
        self.assertEqual(
            "[WITHCOUNTERS] [TIMEOUT milliseconds] [EXCEPT glob] [FROM queue ...] [MATCH glob ...]",
            hint("GETJOB nohang COUNT 5 "),
        )

    def test_lists_of_values(self) -> None:
        """Names and patterns may follow in any number, and the hint shows what can end the list."""
        rest = "[NOHANG] [WITHCOUNTERS] [TIMEOUT milliseconds] [COUNT n]"
        self.assertEqual(
            f"{rest} [EXCEPT glob] [MATCH glob ...]", hint("GETJOB FROM mail fax letters ")
        )
        self.assertEqual(rest, hint("GETJOB EXCEPT x* FROM mail fax MATCH a* b* "))

    def test_match_is_completed(self) -> None:
        """The words for queues by pattern are offered."""
        self.assertEqual(["MATCH"], completions("getjob from a ma"))
        self.assertEqual(["EXCEPT"], completions("getjob ex"))

    def test_subcommand(self) -> None:
        """A command of two words has a hint."""
        self.assertEqual("ip port [bus-port]", hint("cluster meet "))

    def test_one_of_several(self) -> None:
        """Of what excludes each other nothing is offered any more when one of it is typed, and
        words that may be repeated stay."""
        rest = "[TZ zone] [MISSED skip|one|all] QUEUE queue body [ADDJOB options ...]"
        self.assertEqual(f"(cron | EVERY seconds) {rest}", hint("schedule set nightly "))
        for typed in ("@daily", "every 60"):
            self.assertEqual(rest, hint(f"schedule set nightly {typed} "))
        self.assertEqual("", hint("qcount mail processes "))
        choice = "none|in|out|all|state|bcast|processes ..."
        self.assertEqual([choice] * 2, [hint("pause mail "), hint("pause mail in ")])

    def test_unknown(self) -> None:
        """There is no hint for an unknown command."""
        self.assertEqual("", hint("nonsense "))
        self.assertEqual("", hint(""))


class CompletionTests(SynchronousTestCase):
    """Completions offered by TAB."""

    def test_commands(self) -> None:
        """The first word is completed to a command of the server or the shell."""
        self.assertEqual(QUEUE_WORDS, completions("q"))
        self.assertEqual(["HELLO", "HELP"], completions("HEL"))

    def test_subcommands(self) -> None:
        """The second word of a container command is completed to a subcommand."""
        self.assertEqual(["RESETSTAT", "REWRITE"], completions("config re"))

    def test_options(self) -> None:
        """Later words are completed to options, also those among alternatives."""
        self.assertEqual(["REPLICATE", "RETRY"], completions("addjob q b 0 re"))
        self.assertEqual(["IN", "NONE"], [w for w in completions("pause q ") if "N" in w])
        self.assertEqual(["EVERY"], completions("schedule set nightly ev"))
        self.assertEqual(["RETRY", "RETRY-DELAY"], completions("qpolicy set mail retr")[:2])
        self.assertEqual([], completions("qpolicy set retr"))

    def test_help_topics(self) -> None:
        """After ``help``, commands and groups are completed."""
        self.assertEqual(["@QUEUES"], completions("help @q"))
        self.assertEqual(["ADDJOB"], completions("? add"))

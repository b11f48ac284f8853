"""CONFIG and DEBUG: parameters of the running process, and commands for tests and emergencies."""

from __future__ import annotations

from disque_tx.commands.server.process import config, debug
from disque_tx.errors import CommandError
from tests.commands.desk import OK, DeskCase
from tests.core.bench import add_request


class ConfigTests(DeskCase):
    """Subcommands and their argument counts."""

    def test_get(self) -> None:
        """Names and values alternate in RESP2; no match means an empty reply."""
        expected = {b"requirepass": b"", b"maxmemory": b"1073741824"}
        self.assertEqual(expected, self.call(config, b"CONFIG", b"get", b"*"))
        self.assertEqual({}, self.call(config, b"CONFIG", b"GET", b"nosuch"))

    def test_long_pattern(self) -> None:
        """A pattern that takes long to be taken apart is refused: a reader may send it."""
        self.assertEqual({}, self.call(config, b"CONFIG", b"GET", b"*a" * 128))
        line = b"ERR CONFIG GET pattern longer than 256 bytes"
        self.assert_refused(line, config, b"CONFIG", b"GET", b"*a" * 129)

    def test_set(self) -> None:
        """A value that was set can be read."""
        self.assertEqual(OK, self.call(config, b"CONFIG", b"SET", b"MaxMemory", b"10mb"))
        self.assertEqual({b"maxmemory": b"10mb"}, self.call(config, b"CONFIG", b"GET", b"maxm*"))
        line = b"ERR Unsupported CONFIG parameter: foo"
        self.assert_refused(line, config, b"CONFIG", b"SET", b"foo", b"bar")

    def test_resetstat(self) -> None:
        """Counters start again, those of the process too; the slow log stays."""
        self.server.stats.commands_processed = 5
        self.server.slowlog.record([b"PING"], 1, 10**6)
        command = self.server.registry.table[0]
        command.calls, command.ns = 3, 4
        self.assertEqual(OK, self.call(config, b"CONFIG", b"RESETSTAT"))
        self.assertEqual(
            (0, 0, 0), (self.server.stats.commands_processed, command.calls, command.ns)
        )
        self.assertEqual(["reset statistics"], self.control.performed)
        self.assertEqual(1, len(self.server.slowlog.entries))

    def test_rewrite(self) -> None:
        """The file is written, or the reply contains the reason why it cannot be."""
        self.assertEqual(OK, self.call(config, b"CONFIG", b"REWRITE"))
        self.assertEqual(["rewrite config"], self.control.performed)
        self.control.refusal = CommandError("ERR", "The server is running without a config file")
        line = b"ERR The server is running without a config file"
        self.assert_refused(line, config, b"CONFIG", b"REWRITE")

    def test_counts(self) -> None:
        """The error for a wrong count shows the subcommand as typed, on one line."""
        for words in ([b"GeT"], [b"SET", b"hz"], [b"RESETSTAT", b"x"], [b"REWRITE", b"x"]):
            line = b"ERR Wrong number of arguments for CONFIG " + words[0]
            self.assert_refused(line, config, b"CONFIG", *words)
        line = b"ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE"
        self.assert_refused(line, config, b"CONFIG", b"FOO")


class DebugTests(DeskCase):
    """Subcommands."""

    def test_flushall(self) -> None:
        """Everything is deleted, even with an extra argument."""
        self.node.add_job(self.connect(b"x:1"), add_request(replicate=1))
        self.assertEqual(OK, self.call(debug, b"DEBUG", b"flushall", b"x"))
        self.assertEqual((0, 0), (len(self.node.jobs), len(self.node.queues)))

    def test_loadaof(self) -> None:
        """The log is loaded again; an empty one gets an error that is only a code."""
        self.assertEqual(OK, self.call(debug, b"DEBUG", b"LOADAOF"))
        self.assertEqual(["reload log"], self.control.performed)
        self.control.refusal = CommandError("ERR", "")
        self.assert_refused(b"ERR", debug, b"DEBUG", b"LOADAOF")

    def test_sleep(self) -> None:
        """The argument must be a decimal number of seconds."""
        self.assertEqual(OK, self.call(debug, b"DEBUG", b"SLEEP", b"0.5"))
        self.assertEqual(["sleep 0.5"], self.control.performed)
        line = b"ERR value is not a number of seconds or out of range"
        for word in (b"x", b"-1", b"nan", b"inf", b""):
            self.assert_refused(line, debug, b"DEBUG", b"SLEEP", word)
        self.assertEqual(1, len(self.control.performed))

    def test_error(self) -> None:
        """The argument is the whole error, on one line."""
        self.assert_refused(b"MYERR some text", debug, b"DEBUG", b"ERROR", b"MYERR some text")
        self.assert_refused(b"A  B C", debug, b"DEBUG", b"ERROR", b"A\r\nB\0C")

    def test_structsize(self) -> None:
        """Sizes are names and numbers, each followed by a space."""
        sizes = self.call(debug, b"DEBUG", b"STRUCTSIZE")
        assert isinstance(sizes, bytes)
        pairs = dict(pair.split(b":") for pair in sizes.split(b" ")[:-1])
        self.assertEqual([b"bits", b"job", b"client", b"node"], list(pairs))
        self.assertGreater(int(pairs[b"job"]), 0)

    def test_restart(self) -> None:
        """A process that is about to be replaced sends no reply."""
        self.assertEqual([], self.answers(debug, b"DEBUG", b"RESTART"))
        self.assertEqual([], self.answers(debug, b"DEBUG", b"CRASH-AND-RECOVER", b"250"))
        self.assertEqual([], self.answers(debug, b"DEBUG", b"RESTART", b"-7"))
        expected = ["restart after 0 ms", "recover after 250 ms", "restart after 0 ms"]
        self.assertEqual(expected, self.control.performed)
        line = b"ERR value is not an integer or out of range"
        self.assert_refused(line, debug, b"DEBUG", b"RESTART", b"soon")

    def test_crash(self) -> None:
        """Each kind of crash is passed to the process."""
        for word in (b"SEGFAULT", b"Assert", b"oom"):
            self.assertEqual([], self.answers(debug, b"DEBUG", word))
        expected = ["crash: segfault", "crash: assert", "crash: oom"]
        self.assertEqual(expected, self.control.performed)

    def test_unknown(self) -> None:
        """The error quotes the subcommand as it was typed."""
        for words in ([b"FOO"], [b"SLEEP"], [b"sleep", b"1", b"2"], [b"ERROR"]):
            line = b"ERR Unknown DEBUG subcommand or wrong number of arguments for '%s'" % words[0]
            self.assert_refused(line, debug, b"DEBUG", *words)

"""The program ``disque``, most of it run in processes of its own."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from subprocess import CompletedProcess

from twisted.trial.unittest import SynchronousTestCase

from disque_tx import __version__
from disque_tx.cli.connection import encode
from disque_tx.cli.options import parse
from disque_tx.cli.programs.client import _style, main
from tests.acceptance.daemon import free_port
from tests.cli.double import CLOSE, ECHO, THEN_CLOSE, ScriptedServer
from tests.cli.livenode import in_process
from tests.cli.program import run


class ClientTests(SynchronousTestCase):
    """Commands without the prompt."""

    def serve(self, *answers: bytes) -> ScriptedServer:
        """A server with this script."""
        server = ScriptedServer(*answers)
        self.addCleanup(server.stop)
        return server

    def disque(
        self,
        server: ScriptedServer,
        *argv: str,
        stdin: bytes = b"",
        environ: dict[str, str] | None = None,
    ) -> CompletedProcess[bytes]:
        """Run the program with the address of ``server``."""
        before = dict(os.environ)
        os.environ.update(environ or {})
        try:
            status, out, err = in_process("-p", str(server.port), *argv, stdin=stdin)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return CompletedProcess(argv, status, out.encode(), err.encode())

    def test_one_command(self) -> None:
        """A command prints its reply, with status 0."""
        server = self.serve(b"+D-1\r\n")
        result = self.disque(server, "ADDJOB", "q", "a body", "0")
        self.assertEqual((0, b"D-1\n", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual([[b"ADDJOB", b"q", b"a body", b"0"]], server.requests)

    def test_error_reply_has_status_0(self) -> None:
        """An error reply alone has status 0, which scripts for the original rely on."""
        result = self.disque(self.serve(b"-ERR no\r\n"), "FOO")
        self.assertEqual((0, b"ERR no\n\n"), (result.returncode, result.stdout))

    def test_error_has_status_1(self) -> None:
        """Error replies have status 1 with ``-e``, and always for PING, because PING is sent to
        check a server: with a missing password, in protected mode, or with a full disk."""
        for words in (("-e", "FOO"), ("PING",), ("ping",), ("-e", "-r", "2", "PING")):
            for reply in (b"-NOAUTH no\r\n", b"-DENIED no\r\n", b"-MISCONF no\r\n"):
                result = self.disque(self.serve(reply, b"+PONG\r\n"), *words)
                self.assertEqual(1, result.returncode, (words, reply))
                self.assertIn(reply[1:-2], result.stdout)
        self.assertEqual(0, self.disque(self.serve(b"+PONG\r\n"), "-e", "PING").returncode)
        lines = self.serve(b"-ERR no\r\n", b"+PONG\r\n")
        self.assertEqual(1, self.disque(lines, "-e", stdin=b"FOO\nPING\n").returncode)

    def test_refused_password_has_status_1(self) -> None:
        """With ``-e`` a refused password has status 1, even if the command itself was answered."""
        for words, status in ((("-e", "QLEN", "q"), 1), (("QLEN", "q"), 0)):
            server = self.serve(b"-ERR invalid password\r\n", b":1\r\n")
            self.assertEqual(status, self.disque(server, "-a", "x", *words).returncode)

    def test_time_limit(self) -> None:
        """With ``--timeout`` a server that does not reply does not block the client."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = str(silent.getsockname()[1])
            words = ("-p", port, "--timeout", "0.2", "PING")
            result = run("disque_tx.cli.programs.client", *words)
        self.assertEqual(1, result.returncode)
        self.assertIn(b"no reply within --timeout", result.stderr)

    def test_argument_from_input(self) -> None:
        """With ``-x`` a body of any bytes is read from the input, in place of a dash or as the last
        argument."""
        for words, expected in (
            (("-x", "ADDJOB", "q", "-", "0"), [b"ADDJOB", b"q", b"\xff\r\n\0", b"0"]),
            (("-x", "ECHO"), [b"ECHO", b"\xff\r\n\0"]),
        ):
            server = self.serve(b"+D-1\r\n")
            self.disque(server, *words, stdin=b"\xff\r\n\0")
            self.assertEqual([expected], server.requests)

    def test_modes_without_formats(self) -> None:
        """Modes without machine-readable output refuse its options, so that no program reads the
        wrong format."""
        for mode in ("--stat", "--latency", "--pipe"):
            result = run("disque_tx.cli.programs.client", "--json", mode)
            self.assertEqual((1, b""), (result.returncode, result.stdout))
            self.assertIn(b"no output as --json", result.stderr)

    def test_formats(self) -> None:
        """The format of the output follows the options; FAKETTY has the effect of a terminal."""
        reply = b"*2\r\n$1\r\na\r\n:1\r\n"
        cases: dict[tuple[str, ...], bytes] = {
            (): b"a\n1\n",
            ("-d", "|"): b"a|1\n",
            ("--no-raw",): b'1) "a"\n2) (integer) 1\n',
            ("--csv",): b'"a",1\n',
            ("--json",): b'["a", 1]\n',
        }
        for argv, expected in cases.items():
            self.assertEqual(expected, self.disque(self.serve(reply), *argv, "X").stdout)
        result = self.disque(self.serve(reply), "X", environ={"FAKETTY": "1"})
        self.assertEqual(cases[("--no-raw",)], result.stdout)

    def test_repeat(self) -> None:
        """``-r`` repeats the command on one connection."""
        server = self.serve(b":1\r\n", b":2\r\n", b":3\r\n")
        result = self.disque(server, "-r", "3", "-i", "0.001", "QLEN", "q")
        self.assertEqual(b"1\n2\n3\n", result.stdout)

    def test_repeat_endlessly(self) -> None:
        """A negative count repeats the command until the connection is closed."""
        result = self.disque(self.serve(b":1\r\n", b":2\r\n", CLOSE), "-r", "-1", "QLEN", "q")
        self.assertEqual((1, b"1\n2\n"), (result.returncode, result.stdout))

    def test_last_argument_from_input(self) -> None:
        """``-x`` sends the input unchanged, whatever bytes it contains."""
        server = self.serve(b"+D-1\r\n")
        self.disque(server, "-x", "ADDJOB", "q", stdin=b"\x00\xff\n")
        self.assertEqual([[b"ADDJOB", b"q", b"\x00\xff\n"]], server.requests)

    def test_commands_from_input(self) -> None:
        """Without a command, each line of input is a command; blank lines and wrong quotes are not
        sent."""
        server = self.serve(b":1\r\n", b":2\r\n")
        lines = b'QLEN "a b"\n\nPING "open\nqlen c\nquit\nQLEN never\n'
        result = self.disque(server, stdin=lines)
        self.assertEqual((0, b"1\n2\n"), (result.returncode, result.stdout))
        self.assertEqual([[b"QLEN", b"a b"], [b"qlen", b"c"]], server.requests)
        self.assertEqual(b"Invalid argument(s)\n", result.stderr)

    def test_input_is_never_sent_twice(self) -> None:
        """A command from the input is not sent again after the connection was lost: it may have
        been executed."""
        server = self.serve(b":1\r\n", CLOSE, b":2\r\n")
        result = self.disque(server, stdin=b"QLEN a\nQLEN b\nQLEN c\n")
        self.assertEqual((1, b"1\n"), (result.returncode, result.stdout))
        self.assertEqual(2, len(server.requests))

    def test_password(self) -> None:
        """The password from the environment is sent first; a refusal is reported, but not fatal."""
        server = self.serve(b"-ERR invalid password\r\n", b"-NOAUTH Authentication required.\r\n")
        result = self.disque(server, "PING", environ={"DISQUE_PASSWORD": "secret"})
        self.assertEqual([[b"AUTH", b"secret"], [b"PING"]], server.requests)
        self.assertEqual(b"NOAUTH Authentication required.\n\n", result.stdout)
        self.assertIn(b"-a or DISQUE_PASSWORD): ERR invalid password", result.stderr)

    def test_connection_refused(self) -> None:
        """Without a server, the error names the address, with status 1."""
        port = free_port()
        result = run("disque_tx.cli.programs.client", "-p", str(port), "PING")
        self.assertEqual(1, result.returncode)
        text = f"Could not connect to Disque at 127.0.0.1:{port}: Connection refused\n"
        self.assertEqual(text.encode(), result.stderr)

    def test_lost_connection(self) -> None:
        """A connection closed before the reply is an error, with a hint when there was no reply at
        all."""
        result = self.disque(self.serve(CLOSE), "PING")
        self.assertEqual(1, result.returncode)
        self.assertTrue(result.stderr.startswith(b"Error: Server closed the connection\n"))
        self.assertIn(b"try with --tls", result.stderr)

    def test_shutdown(self) -> None:
        """A connection closed after SHUTDOWN is success."""
        result = self.disque(self.serve(CLOSE), "shutdown")
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))

    def test_monitor(self) -> None:
        """MONITOR prints lines until the connection is closed."""
        lines = b'+OK\r\n+1.000002 [127.0.0.1:5] "PING"\r\n'
        result = self.disque(self.serve(lines + THEN_CLOSE), "MONITOR")
        self.assertEqual(b'OK\n1.000002 [127.0.0.1:5] "PING"\n', result.stdout)
        self.assertEqual(1, result.returncode)
        self.assertEqual(b"Error: Server closed the connection\n", result.stderr)

    def test_latency(self) -> None:
        """The statistics of the round trips are on one line."""
        result = self.disque(self.serve(b"+PONG\r\n", b"+PONG\r\n", CLOSE), "--latency")
        self.assertIn(b"\x1b[0G\x1b[2Kmin: ", result.stdout)
        self.assertIn(b"(2 samples)", result.stdout)
        self.assertEqual(1, result.returncode)

    def test_stat_refused(self) -> None:
        """When INFO is refused, the program prints the error and ends."""
        result = self.disque(self.serve(b"-NOAUTH Authentication required.\r\n"), "--stat")
        self.assertEqual(1, result.returncode)
        self.assertIn(b"NOAUTH", result.stderr)

    def test_intrinsic_latency(self) -> None:
        """The test of the machine itself needs no server."""
        result = run("disque_tx.cli.programs.client", "--intrinsic-latency", "0.01")
        self.assertEqual(0, result.returncode)
        self.assertIn(b"microseconds", result.stdout)

    def test_pipe(self) -> None:
        """Requests are sent unchanged, and the replies are counted."""
        server = self.serve(b":1\r\n", b"-ERR no\r\n", ECHO)
        result = self.disque(server, "--pipe", stdin=encode([b"QLEN", b"q"]) + encode([b"X"]))
        self.assertEqual((1, b"ERR no\n"), (result.returncode, result.stderr))
        self.assertTrue(result.stdout.endswith(b"errors: 1, replies: 2\n"))

    def test_help_version_usage(self) -> None:
        """Help that was asked for goes to standard output, with status 0, so that it can be paged;
        and so does the version."""
        shown = run("disque_tx.cli.programs.client", "--help")
        self.assertEqual((0, b""), (shown.returncode, shown.stderr))
        self.assertTrue(shown.stdout.startswith(b"Usage: disque"))
        version = run("disque_tx.cli.programs.client", "-v")
        self.assertEqual(
            (0, f"disque {__version__}\n".encode()), (version.returncode, version.stdout)
        )
        wrong = run("disque_tx.cli.programs.client", "--bigkeys")
        self.assertEqual(1, wrong.returncode)
        self.assertIn(b"Unrecognized option", wrong.stderr)

    def test_json_of_binary(self) -> None:
        """In JSON, a body of any bytes is complete."""
        result = self.disque(self.serve(b"$2\r\n\xff\x00\r\n"), "--json", "PING", "x")
        self.assertEqual({"base64": "/wA="}, json.loads(result.stdout))

    def test_fast_start(self) -> None:
        """A single command imports neither Twisted nor the prompt, so that it starts fast."""
        probe = "import sys; import disque_tx.cli.programs.client; print(*sys.modules)"
        loaded = run("timeit", "-n1", "-r1", probe).stdout.split()
        self.assertIn(b"disque_tx.cli.programs.client", loaded)
        large_modules = (b"twisted", b"prompt_toolkit", b"attr", b"rich", b"argparse", b"asyncio")
        for module in (*large_modules, b"click", b"redis", b"ssl", b"json"):
            self.assertNotIn(module, loaded)


class _Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self) -> bool:
        return True


class WordsTests(SynchronousTestCase):
    """Where the words of the command line come from."""

    def test_of_the_process(self) -> None:
        """The installed program reads all words behind its name."""
        out = io.StringIO()
        self.patch(sys, "argv", ["disque", "--version"])
        self.patch(sys, "stdout", out)
        self.assertEqual(0, main())
        self.assertEqual(f"disque {__version__}\n", out.getvalue())


class StatTests(SynchronousTestCase):
    """``disque --stat``."""

    def test_refused(self) -> None:
        """A script sees by the status that there were no figures."""
        server = ScriptedServer(*[b"-NOAUTH Authentication required.\r\n"] * 2)
        self.addCleanup(server.stop)
        self.patch(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        self.patch(sys, "stderr", io.StringIO())
        self.assertEqual(1, main(["-p", str(server.port), "--stat"]))


class LostTests(SynchronousTestCase):
    """A server that ends the connection."""

    def test_status(self) -> None:
        """A script sees by the status that there was no reply, and people see why."""
        server = ScriptedServer(CLOSE)
        self.addCleanup(server.stop)
        error = io.StringIO()
        self.patch(sys, "stderr", error)
        self.assertEqual(1, main(["-p", str(server.port), "PING"]))
        self.assertTrue(error.getvalue().startswith("Error: Server closed the connection\n"))
        self.assertIn("try with --tls", error.getvalue())


class StyleTests(SynchronousTestCase):
    """Colours, and the form of replies."""

    def test_colour(self) -> None:
        """Colours are for terminals, and for people who did not say that they want none."""
        self.patch(sys, "stdout", _Terminal())
        self.patch(os, "environ", {})
        style = _style(parse([], {}))
        self.assertEqual(("formatted", True), (style.form, style.colour))
        for name, value in (("NO_COLOR", ""), ("TERM", "dumb")):
            self.patch(os, "environ", {name: value})
            self.assertFalse(_style(parse([], {})).colour, name)
        self.patch(os, "environ", {})
        self.patch(sys, "stdout", io.StringIO())
        style = _style(parse([], {}))
        self.assertEqual(("raw", False), (style.form, style.colour))

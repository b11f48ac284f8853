"""disque-server's command line (client protocol, section 21.1)."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx import __version__
from disque_tx.cli.programs import server
from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.net import reactor as net
from disque_tx.services.node.root import NodeRoot
from disque_tx.services.processes.parent.parent import Parent
from tests.services.rootbench import RootCase
from twisted import logger


class _Beginner:
    """Begins no log: the tests have one."""

    def beginLoggingTo(self, observers: list[Any], **options: Any) -> None:
        """Part of Twisted's interface."""


class CommandLineTests(SynchronousTestCase):
    """Calls that end before the server starts."""

    def setUp(self) -> None:
        """Redirect both outputs to memory."""
        self.out, self.err = io.StringIO(), io.StringIO()
        self.patch(sys, "stdout", self.out)
        self.patch(sys, "stderr", self.err)

    def test_version(self) -> None:
        """One line shows the version of Disque that clients can expect, and that of this
        package."""
        for word in ("-v", "--version"):
            self.assertEqual(0, server.main([word]))
        line, again = self.out.getvalue().splitlines()
        self.assertEqual(line, again)
        self.assertRegex(line, r"\ADisque server v=1\.0-rc1 sha=\S+ malloc=\S+ bits=64 build=\w+ ")
        self.assertIn(__version__, line)

    def test_help(self) -> None:
        """The usage goes to standard error with status 1, as in the original."""
        for word in ("-h", "--help"):
            self.assertEqual(1, server.main([word]))
        self.assertEqual("", self.out.getvalue())
        self.assertTrue(self.err.getvalue().startswith("Usage: disque-server "))

    def test_only_as_first_word(self) -> None:
        """After other arguments, ``--version`` is an unknown directive."""
        self.assertEqual(1, server.main(["--port", "7711", "--version"]))
        self.assertIn(">>> 'version'\nBad directive", self.err.getvalue())

    def test_memory_test(self) -> None:
        """The test prints its result; without a size, an error shows what is needed."""
        self.assertEqual(0, server.main(["--test-memory", "1"]))
        self.assertIn("passed", self.out.getvalue())
        self.assertEqual(1, server.main(["--test-memory"]))
        self.assertEqual(1, server.main(["--test-memory", "much"]))
        self.assertEqual(1, server.main(["--test-memory", "²"]))
        self.assertIn("megabytes", self.out.getvalue())

    def test_bad_line(self) -> None:
        """Errors go to standard error, with the option."""
        self.assertEqual(1, server.main(["--hz", "10", "--loglevel", "loud"]))
        self.assertTrue(
            self.err.getvalue().startswith(
                "\n*** FATAL CONFIG FILE ERROR ***\n"
                "Reading the command line, at the option '--loglevel'\n"
                ">>> 'loglevel \"loud\"'\n"
                "Invalid log level. Must be one of debug, verbose, notice, warning\n"
            ),
            self.err.getvalue(),
        )

    def test_missing_file(self) -> None:
        """A missing configuration file is reported in the log."""
        self.assertEqual(1, server.main(["/no/such.conf"]))
        self.assertIn("can't open config file '/no/such.conf'", self.out.getvalue())


class DaemonizeTests(SynchronousTestCase):
    """A server that goes into the background: what the user's shell sees of it."""

    def started(self, *reasons: str) -> tuple[int, str, list[str]]:
        """Exit status and error output of the process that the user has started, whose child
        reports these reasons; and what the child notes about itself."""
        notes = Path(self.mktemp()).absolute()
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.dup2(writer, 2)
                sys.stderr = os.fdopen(writer, "w", buffering=1)
                report = server._daemonize(waits=True)
                streams = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
                leads = os.getsid(0) == os.getpid()
                notes.write_text("\n".join([*streams, "leads" if leads else "is led"]))
                for reason in reasons:
                    report(reason)
            finally:
                os._exit(3)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as said:
            text = said.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status, text, notes.read_text().splitlines()

    def test_started(self) -> None:
        """The command succeeds when the server has started, and a failure after that is not the
        command's; the server has no terminal, and is not ended with the session of the user."""
        null = [os.devnull] * 3
        self.assertEqual((0, "", [*null, "leads"]), self.started("", "too late"))

    def test_failed(self) -> None:
        """The command fails with the reason why the server did not start; also where it could not
        say why."""
        self.assertEqual((1, "no port\n"), self.started("no port")[:2])
        self.assertEqual((1, "The start has failed.\n"), self.started()[:2])


class PidFileTests(SynchronousTestCase):
    """The file with the process ID."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.log_path = Path(self.mktemp())
        self.log = DaemonLog("debug", str(self.log_path))

    def written(self, daemonize: bool, path: str) -> str:
        """The path that must be removed at the end."""
        return server._write_pid_file(Settings(daemonize=daemonize, pidfile=path), self.log)

    def test_daemon(self) -> None:
        """A daemon writes its process ID and a line end."""
        self.assertEqual(str(self.path), self.written(True, str(self.path)))
        self.assertEqual(f"{os.getpid()}\n", self.path.read_text())

    def test_foreground(self) -> None:
        """A process in the foreground writes no file."""
        self.assertEqual("", self.written(False, str(self.path)))
        self.assertFalse(self.path.exists())

    def test_impossible(self) -> None:
        """A pid file that cannot be written is reported, and not removed at the end."""
        self.assertEqual("", self.written(True, "/no/such/folder/pid"))
        self.assertIn("/no/such/folder/pid: No such file", self.log_path.read_text())


class RestartTests(SynchronousTestCase):
    """DEBUG RESTART."""

    def test_same_words(self) -> None:
        """The new process has the words of the old one, options of the interpreter included."""
        started: list[tuple[str, list[str]]] = []
        self.patch(os, "execv", lambda path, words: started.append((path, words)))
        self.patch(sys, "orig_argv", ["python", "-O", "-m", "disque_tx", "/etc/disque.conf"])
        server._restart(0)
        words = [sys.executable, "-O", "-m", "disque_tx", "/etc/disque.conf"]
        self.assertEqual([(sys.executable, words)], started)


class ProcessesTests(RootCase):
    """What the process becomes."""

    def root(self, processes: int) -> NodeRoot | Parent:
        """What is started with so many processes."""
        made: list[NodeRoot | Parent] = []
        self.addCleanup(os.chdir, os.getcwd())
        self.patch(server, "_work", lambda make, *rest: made.append(make(self.reactor).root))
        server._serve(self.make_settings(processes=processes), defaults=False)
        self.addCleanup(made[0].stopService)
        return made[0]

    def test_number(self) -> None:
        """A daemon of one process is the node itself; one of several is the parent of nodes."""
        self.assertIsInstance(self.root(1), NodeRoot)
        self.assertIsInstance(self.root(2), Parent)

    def served(self, defaults: bool = False, **changes: Any) -> list[Any]:
        """What the server begins to work with; nothing if it does not begin."""
        found: list[Any] = []
        self.addCleanup(os.chdir, os.getcwd())

        def work(*words: Any) -> int:
            found.extend(words)
            return 7

        self.patch(server, "_work", work)
        self.assertEqual(7, server._serve(self.make_settings(**changes), defaults))
        return found

    def test_defaults(self) -> None:
        """Whoever starts a server without a configuration reads how to give it one, and no one
        else does."""
        log = self.folder / "log"
        self.served()
        self.assertFalse(log.exists())
        self.served(defaults=True)
        self.assertIn("no config file specified, using the default config", log.read_text())

    def test_daemonized(self) -> None:
        """A server of several processes lets the user's command wait until they have started; one
        of a single process does not."""
        waits: list[bool] = []
        reasons: list[str] = []

        def daemonize(waits: bool, noted: list[bool] = waits) -> Any:
            noted.append(waits)
            return reasons.append

        self.patch(server, "_daemonize", daemonize)
        self.served(processes=1)
        self.assertEqual([], waits)
        self.served(processes=1, daemonize=True)
        failed = self.served(processes=2, daemonize=True)[3]
        self.assertEqual([False, True], waits)
        failed("no port")
        self.assertEqual(["no port"], reasons)

    def test_terminal(self) -> None:
        """A reason why the start failed is shown once: on the terminal if the log goes elsewhere,
        and not when there is none."""
        for path, expected in ((str(self.folder / "log"), "no port\n"), ("", "")):
            said = io.StringIO()
            self.patch(sys, "stderr", said)
            report = server._to_terminal(DaemonLog("notice", path))
            report("")
            report("no port")
            self.assertEqual(expected, said.getvalue())

    def test_no_folder(self) -> None:
        """A folder that cannot be entered is an error of the command, which names it."""
        out = io.StringIO()
        self.patch(sys, "stdout", out)
        status = server._serve(self.make_settings(dir="/no/such"), defaults=False)
        self.assertEqual(1, status)
        self.assertTrue(out.getvalue().startswith("Can't chdir to '/no/such': "), out.getvalue())

    def test_cannot_start(self) -> None:
        """A node that cannot start says why, in its log and to whoever started it, and the shell
        sees that it failed."""
        self.patch(net, "install", lambda: None)
        self.patch(logger, "globalLogBeginner", _Beginner())
        log = DaemonLog("notice", str(self.folder / "log"))
        for error in (ConfigError("no port"), OSError(28, "no port")):
            said: list[str] = []

            def fail(*_: Any, error: Exception = error) -> Any:
                raise error

            daemon: Any = SimpleNamespace(root=SimpleNamespace(privilegedStartService=fail))
            makers: list[Any] = [fail, lambda _reactor, daemon=daemon: daemon]
            for make in makers:
                self.assertEqual(1, server._work(make, self.settings, log, said.append))
            self.assertEqual([str(error)] * 2, said)
            self.assertIn("no port", self.logged())

    def test_passed_on(self) -> None:
        """The parent of several processes passes on to them what it is asked for by a signal:
        certificates, leaving, and the end."""
        make, settings, log, _ = self.served(processes=2)
        daemon = make(self.reactor)
        self.addCleanup(daemon.root.stopService)
        sent: list[int] = []
        for process in ("reload", "leave"):
            call = getattr(daemon, process)
            self.assertIs(daemon.root, call.func.__self__)
            sent += call.args
        self.assertEqual([signal.SIGHUP, signal.SIGUSR1], sent)
        self.assertEqual(daemon.root.kill, daemon.kill)
        self.assertFalse(daemon.loading())
        self.assertEqual(2, settings.processes)
        self.assertEqual(str(self.folder / "log"), log.path)

    def test_fewer(self) -> None:
        """The node of a process that is wanted no more is not forgotten: a parent drains it."""
        (self.folder / "process-1").mkdir()
        (self.folder / "process-1" / "nodes.conf").write_text("vars\n")
        self.assertIsInstance(self.root(1), Parent)

"""The daemon's log (client protocol, section 21.6)."""

from __future__ import annotations

import io
import os
import sys
import syslog
from pathlib import Path

from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.machine.log import DaemonLog, system_log


class LogCase(SynchronousTestCase):
    """A log that writes to a file."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.log = DaemonLog("debug", str(self.path))

    def lines(self) -> list[str]:
        """The lines that were written."""
        return self.path.read_text().splitlines()


class LineTests(LogCase):
    """One line per event."""

    def test_form(self) -> None:
        """Scripts split the lines: process ID and role, time with milliseconds, mark, text."""
        self.log.notice("hello")
        self.assertRegex(
            self.lines()[0],
            rf"\A{os.getpid()}:P \d\d [A-Z][a-z]{{2}} \d{{4}} \d\d:\d\d:\d\d\.\d{{3}} [+-]\d{{4}}"
            r" \* hello\Z",
        )

    def test_marks(self) -> None:
        """Each level has its mark."""
        for write in (self.log.debug, self.log.verbose, self.log.notice, self.log.warning):
            write("x")
        self.assertEqual([". x", "- x", "* x", "# x"], [line[-3:] for line in self.lines()])

    def test_levels(self) -> None:
        """Messages below the level are left out, from the moment it is set."""
        self.log.level = "notice"
        self.log.verbose("out")
        self.log.notice("in")
        self.log.level = "warning"
        self.log.notice("out")
        self.assertEqual(1, len(self.lines()))

    def test_long(self) -> None:
        """Texts are truncated to 1023 bytes, between characters."""
        self.log.notice("é" * 1000)
        text = self.lines()[0].rpartition(" ")[2]
        self.assertEqual("é" * 511, text)

    def test_moved_away(self) -> None:
        """After the file was moved away a new one is created."""
        self.log.notice("old")
        self.path.rename(f"{self.path}.1")
        self.log.notice("new")
        self.assertEqual(["new"], [line[-3:] for line in self.lines()])

    def test_standard_output(self) -> None:
        """Without a file lines go to standard output."""
        output = io.StringIO()
        self.patch(sys, "stdout", output)
        DaemonLog().notice("hello")
        self.assertTrue(output.getvalue().endswith(" * hello\n"))

    def test_impossible(self) -> None:
        """A log that cannot be written does not stop the node."""
        DaemonLog("debug", "/no/such/folder/log").warning("hello")
        self.assertFalse(os.path.exists("/no/such/folder"))


class SystemLogTests(LogCase):
    """The system log in addition to the file."""

    def test_both(self) -> None:
        """Lines in the file also go to the system log, with its priorities."""
        sent: list[tuple[int, str]] = []
        opened: list[tuple[object, ...]] = []
        self.patch(syslog, "openlog", lambda *words: opened.append(words))
        self.patch(syslog, "syslog", lambda priority, text: sent.append((priority, text)))
        log = DaemonLog("notice", str(self.path), system_log("disque", "local3"))
        log.notice("one")
        log.warning("two")
        log.debug("out")
        self.assertEqual([("disque", 9, syslog.LOG_LOCAL3)], opened)
        self.assertEqual([(syslog.LOG_NOTICE, "one"), (syslog.LOG_WARNING, "two")], sent)
        self.assertEqual(2, len(self.lines()))


class EventTests(LogCase):
    """Log events of Twisted and of libraries."""

    def test_levels(self) -> None:
        """Informational events of libraries are left out; their warnings are not."""
        self.log.level = "notice"
        logger = Logger(namespace="library", observer=self.log)
        logger.info("factory started")
        logger.warn("odd {what}", what="thing")
        logger.error("bad thing")
        self.assertEqual(2, len(self.lines()))
        self.assertIn(" * ", self.lines()[0])
        self.assertIn("odd thing", self.lines()[0])
        self.assertIn(" # ", self.lines()[1])

    def test_failure(self) -> None:
        """An unhandled error is logged with its traceback, line by line."""
        logger = Logger(namespace="library", observer=self.log)
        try:
            raise ZeroDivisionError("the reason")
        except ZeroDivisionError:
            logger.failure("while working", Failure())
        text = "\n".join(self.lines())
        self.assertIn("while working", text)
        self.assertIn("test_log.py", text)
        self.assertIn("the reason", text)
        self.assertTrue(all(f"{os.getpid()}:P " in line for line in self.lines()))

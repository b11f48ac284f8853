"""How a process has ended, as the daemon reports it."""

from __future__ import annotations

import signal

from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.processes.parent.children import ChildProcess


class EndTests(SynchronousTestCase):
    """Words for the log."""

    def test_words(self) -> None:
        """The log tells apart a process that ended by itself, with an error, and one that was
        killed."""
        said: list[str] = []
        child = ChildProcess(lambda message: None, said.append, lambda unsent: None)
        for reason in (
            ProcessDone(0),
            ProcessTerminated(exitCode=3),
            ProcessTerminated(signal=signal.SIGKILL),
        ):
            child.processEnded(Failure(reason))
        self.assertEqual(["", "status 3", "signal 9"], said)

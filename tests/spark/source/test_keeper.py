"""The process that outlives the one of the source."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.source.keeper import Keeper


class KeeperTests(SynchronousTestCase):
    """Real processes, as nothing else is killed."""

    def setUp(self) -> None:
        self.file = Path(self.mktemp()).resolve()

    def settle(self, last: object) -> None:
        """What the process does at the end."""
        self.file.write_text(repr(last))

    def test_killed(self) -> None:
        """When the process is killed, the last thing that it told is settled."""
        os.mkfifo(self.file)
        process = os.fork()
        if not process:
            keeper = Keeper(self.settle)
            keeper.tell("first")
            keeper.tell(["x" * 1_000_000, "last"])
            keeper._told.write(pickle.dumps("half of a message")[:9])
            keeper._told.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(process, 0)
        self.assertTrue(self.file.read_text().endswith("'last']"))

    def test_closed(self) -> None:
        """At an orderly end it is settled before that goes on; nothing is, if nothing was told."""
        keeper = Keeper(self.settle)
        keeper.close()
        self.assertFalse(self.file.exists())
        keeper = Keeper(self.settle)
        keeper.tell(1)
        keeper.tell(2)
        keeper.close()
        self.assertEqual("2", self.file.read_text())

"""Files that a node cannot take: nothing stays open or locked, so that it can be tried again."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.ownership import claim, claim_empty, claim_name
from disque_tx.services.machine.memoryfiles import MemoryFiles

PATH = "/data/disque.aof"
ASIDE = "/data/disque.aof.found"


class RefusedTests(SynchronousTestCase):
    """The disk refuses."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.files.put(PATH, b"records")

    def test_cannot_be_emptied(self) -> None:
        """A file that cannot be emptied keeps its records, and another node can have it."""
        self.files.truncate_error = errno.EIO
        self.assertRaises(OSError, claim_empty, self.files, PATH)
        self.assertEqual((0, b"records"), (self.files.open_files, self.files.content(PATH)))
        claim(self.files, PATH).close()

    def test_cannot_be_renamed(self) -> None:
        """A file of somebody else that cannot be renamed stays as it is under its name."""
        self.files.rename_error = errno.EACCES
        self.assertRaises(OSError, claim_name, self.files, PATH, ASIDE)
        self.assertEqual((0, [PATH]), (self.files.open_files, self.files.paths()))
        self.files.rename_error = 0
        claim_name(self.files, PATH, ASIDE).close()
        self.assertEqual([PATH, ASIDE], self.files.paths())

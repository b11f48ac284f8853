"""The files of a simulated process."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.world.disk import Disk
from disque_tx.sim.world.files import SimFiles
from disque_tx.sim.world.world import World
from tests.engine.filescontract import FilesContract


class SimFilesTests(FilesContract, SynchronousTestCase):
    """A simulated disk guarantees what the log relies on, as a real one does."""

    def setUp(self) -> None:
        self.files = SimFiles(Disk(World(1), "machine"))
        self.folder = "/folder"

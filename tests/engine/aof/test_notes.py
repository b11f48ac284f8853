"""Notes of protocols in the log of a node, through a restart and a rewrite."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.notes import Note
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, Bench, loaded


class RawNotesTests(SynchronousTestCase):
    """Notes are kept for listeners that are not configured at present."""

    def content(self, bench: Bench) -> bytes:
        """The log."""
        bench.aof.commit()
        files = bench.files
        assert isinstance(files, MemoryFiles)
        return files.content(PATH)

    def test_kept(self) -> None:
        """A note comes back after restarts and a rewrite, and ends with its job."""
        bench = loaded(b"")
        request = AddRequest(b"q", b"body")
        request.note = Note(b"line", b"\r\n\0*2")
        bench.node.add_job(Client(1, ValueReplies(), b"", bench.now_ms), request)
        again = loaded(self.content(bench))
        again.aof.rewrite()
        again.settle()
        third = loaded(self.content(again))
        ((job_id, note),) = third.node.state.notes.by_job.items()
        self.assertEqual((b"line", b"\r\n\0*2"), (note.owner, note.data()))
        third.node.acknowledge([job_id])
        self.assertEqual({}, loaded(self.content(third)).node.state.notes.by_job)

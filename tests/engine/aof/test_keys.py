"""Keys of jobs in the log of a node, through a restart and a rewrite."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, Bench, loaded


class KeysInLogTests(SynchronousTestCase):
    """A restart must not make a second job possible."""

    def setUp(self) -> None:
        self.bench = loaded(b"")

    def add(self, bench: Bench, key: bytes, for_s: int = 0) -> tuple[bytes, int]:
        """ADDJOB UNIQUE WITHNEW."""
        replies = ValueReplies()
        client = Client(1, replies, b"127.0.0.1:1", bench.now_ms)
        request = AddRequest(b"q", b"body")
        request.unique = Unique(key, for_s, True)
        bench.node.add_job(client, request)
        bench.node.serve()
        (value,) = replies.values
        assert isinstance(value, list)
        return value[0], value[1]  # type: ignore[return-value]

    def restarted(self) -> Bench:
        """Another node with the file as it is."""
        self.bench.aof.commit()
        return loaded(self.content())

    def content(self) -> bytes:
        """The log."""
        files = self.bench.files
        assert isinstance(files, MemoryFiles)
        return files.content(PATH)

    def test_restart(self) -> None:
        """After a restart the key is still taken, and free once the job is done."""
        job_id, _ = self.add(self.bench, b"k")
        again = self.restarted()
        self.assertEqual((job_id, 0), self.add(again, b"k"))
        again.node.acknowledge([job_id])
        again.node.serve()
        self.assertEqual(1, self.add(again, b"k")[1])

    def test_done(self) -> None:
        """A key that was free is free after a restart; one that is kept (FOR) is kept."""
        jobs = [self.add(self.bench, b"k")[0], self.add(self.bench, b"kept", 60)[0]]
        self.bench.node.acknowledge(jobs)
        self.bench.node.serve()
        again = self.restarted()
        self.assertEqual(1, self.add(again, b"k")[1])
        self.assertEqual((jobs[1], 0), self.add(again, b"kept"))

    def test_rewritten(self) -> None:
        """A rewrite keeps the keys."""
        known = {key: self.add(self.bench, key)[0] for key in (b"k%d" % n for n in range(250))}
        self.bench.aof.commit()
        self.bench.aof.rewrite()
        self.bench.settle()
        again = self.restarted()
        for key, job_id in known.items():
            self.assertEqual((job_id, 0), self.add(again, key))

    def test_nothing_without_keys(self) -> None:
        """A node whose clients use no keys writes a log that an original can read."""
        replies = ValueReplies()
        client = Client(1, replies, b"127.0.0.1:1", self.bench.now_ms)
        self.bench.node.add_job(client, AddRequest(b"q", b"body"))
        self.bench.aof.commit()
        self.assertNotIn(b"HOLDKEY", self.content())

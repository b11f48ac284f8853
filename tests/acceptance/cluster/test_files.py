"""The files that a cluster writes, read and rewritten with the code that also reads the
original's."""

from __future__ import annotations

from disque_tx.messages.nodes import flags_text
from disque_tx.messages.records import JobRecord
from disque_tx.wire.files.aof import LogDecoder, LogEncoder, parse_record
from disque_tx.wire.files.nodes import parse, render
from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.test_crashes import ALWAYS


class FilesTests(FleetTestCase):
    """Three nodes that write a log."""

    size = 3
    directives = ALWAYS

    def test_logs(self) -> None:
        """Every record can be read, and is the same when written again, byte for byte."""
        ids = [self.nodes[n % 3].add(self.queue, replicate=1 + n % 3) for n in range(30)]
        ids.append(self.nodes[0].add(self.queue, "x" * 5000, replicate=2, delay=100, retry=7))
        ids.append(self.nodes[0].add(self.queue, "", replicate=1, retry=0))
        self.nodes[1].get(self.queue, 5000, count=3)
        self.nodes[2].call("ACKJOB", *ids[:10])
        self.nodes[1].call("NACK", *ids[10:20])
        self.wait(
            lambda: not any(self.fleet.holders(i) for i in ids[:10]),
            "the acknowledged jobs are removed",
        )
        for node in self.nodes:
            data = (node.folder / "disque.aof").read_bytes()
            decoder, encoder = LogDecoder(), LogEncoder()
            decoder.feed(data)
            commands = set()
            while words := decoder.next():
                commands.add(words[0])
                record = parse_record(words)
                if isinstance(record, JobRecord):
                    encoder.load_job(record)
                else:
                    assert isinstance(record, bytes)
                    encoder.delete_job(record)
            self.assertEqual(0, decoder.rest())
            self.assertEqual(data, encoder.take())
            self.assertEqual({b"LOADJOB", b"DELJOB"}, commands)

    def test_holders_on_disk(self) -> None:
        """The log names all holders, so that after a restart each node knows whom to notify."""
        job_id = self.nodes[0].add(self.queue, replicate=3)
        for node in self.nodes:
            decoder = LogDecoder()
            decoder.feed((node.folder / "disque.aof").read_bytes())
            found = []
            while words := decoder.next():
                record = parse_record(words)
                if isinstance(record, JobRecord) and record.id == job_id.encode():
                    found.append({holder.decode() for holder in record.nodes})
            self.assertIn({other.id for other in self.nodes}, found)

    def test_nodes(self) -> None:
        """Every line of the nodes file can be read, and has the same content when written again."""
        ids = {node.id.encode() for node in self.nodes}
        for node in self.nodes:
            self.assertEqual("OK", node.call("CLUSTER", "SAVECONFIG"))
            text = (node.folder / "nodes.conf").read_bytes()
            entries, faults = parse(text, 0)
            self.assertEqual([], faults)
            self.assertEqual(ids, {entry.id for entry in entries})
            self.assertEqual(members(text), members(render(entries, 0)))
            for entry in entries:
                flags = "myself" if entry.id == node.id.encode() else "noflags"
                self.assertEqual(flags, flags_text(entry.flags).decode())


def members(text: bytes) -> list[list[bytes]]:
    """ID, address and flags of each line; times and link states change with every start."""
    return [line.split()[:3] for line in text.splitlines()]

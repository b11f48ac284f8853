"""ACKJOB and NACK when a node refuses them for a while."""

from __future__ import annotations

from disque_tx.client import Refused
from tests.worker.memory import NODE, WorkerTestCase


class AckTests(WorkerTestCase):
    """Jobs that are done."""

    def test_refused_for_a_while(self) -> None:
        """Refused acknowledgements are given up after many refusals in a row, not after many over
        the life of a worker."""
        refused = 0

        def refuse_often(command: str) -> Exception | None:
            nonlocal refused
            if command != "ACKJOB":
                return None
            refused += 1
            return Refused(command, NODE, "DENIED", "") if refused % 11 else None

        self.client.broken = refuse_often
        ids = [self.client.put("a") for _ in range(600)]
        worker = self.worker({"a": self.note}, concurrency=4)
        self.pass_s(200)
        self.assertEqual({"acked"}, {self.client.state(id_) for id_ in ids})
        self.assertGreater(refused, 20)
        self.stop(worker)

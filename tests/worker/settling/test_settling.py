"""ACKJOB and NACK when a node refuses them for a while."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from disque_tx.client import Refused
from tests.logged import warnings
from tests.worker.memory import NODE, HangingPool, WorkerTestCase, lost
from tests.worker.settling.test_nodepolicies import hopeless
from tests.worker.test_service import boom, pop_for


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

    def test_logged(self) -> None:
        """An acknowledgement that failed is logged at its first failure, with what failed, and is
        repeated soon."""
        said = warnings(self)
        for number in (1, 2):
            errors: list[Exception] = [lost("ACKJOB")]
            self.client.broken = partial(pop_for, "ACKJOB", errors)
            self.client.put("a")
            worker = self.worker({"a": self.note})
            self.pass_s(1)
            found = [line for line in said if line.startswith("ACKJOB failed, and is repeated: ")]
            self.assertEqual(number, len(found), said)
            first, second = self.client.times("ACKJOB")[-2:]
            self.assertApproximates(0.1, second - first, 0.06)
            self.stop(worker)


class AddTests(WorkerTestCase):
    """Jobs that must be there before another one is acknowledged."""

    def test_repeated(self) -> None:
        """A dead letter that a node does not take is sent again after a while that grows, and the
        log says so once; the job is acknowledged after that."""
        said = warnings(self)
        errors: list[Exception] = [lost("ADDJOB") for _ in range(8)]
        self.client.broken = partial(pop_for, "ADDJOB", errors)
        self.client.put("a", retry_s=1_000)
        worker = self.worker({"a": boom}, retries_max=0)
        self.pass_s(60, step_s=0.1)
        times = [round(at, 1) for at in self.client.times("ADDJOB")]
        waits = [round(later - earlier, 1) for earlier, later in pairwise(times)]
        for expected, wait_s in zip((0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0), waits, strict=True):
            self.assertApproximates(expected, wait_s, 0.15)
        self.assertGreater(self.client.times("ACKJOB")[0], times[-1] - 0.1)
        found = [line for line in said if "is repeated" in line]
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith("ADDJOB to 'dead:a' failed, and is repeated: "), found)
        self.stop(worker)

    def test_given_up(self) -> None:
        """After many failures the job is given back: it would be held forever, and its worker could
        not stop."""
        self.client.broken = lambda command: lost("ADDJOB") if command == "ADDJOB" else None
        self.client.put("a", retry_s=1_000)
        worker = self.worker({"a": hopeless})
        self.pass_s(75, step_s=0.1)
        commands = [command for command, _, _ in self.client.calls]
        self.assertEqual(19, commands[: commands.index("NACK")].count("ADDJOB"))
        self.assertNotIn("ACKJOB", commands)
        self.stop(worker)


class NackTests(WorkerTestCase):
    """Jobs that go back."""

    def test_refused(self) -> None:
        """Jobs that could not be given back are said to come after their RETRY, and how many; the
        worker holds none of them any more."""
        said = warnings(self)
        self.client.broken = lambda command: lost("NACK") if command == "NACK" else None
        worker = self.worker({"a": self.note}, HangingPool, concurrency=1)
        worker._runner.mean_s = 0.001
        for _ in range(3):
            self.client.put("a", retry_s=50)
        self.pass_s(0.1)
        stopped = worker.stopService()
        self.pass_s(0.1)
        (line,) = [line for line in said if "could not be given back" in line]
        self.assertTrue(
            line.startswith("2 jobs could not be given back: delivery after RETRY: "),
            line,
        )
        self.pools[0].release()
        self.pass_s(1)
        self.successResultOf(stopped)

"""Those that subscribe to the store of jobs are notified of what happens to each."""

from __future__ import annotations

from disque_tx.core.jobs.job import DELAYED, IN_FLIGHT, NOWHERE, Job
from disque_tx.core.jobs.observer import ENDS, MOVES, RECORDS, JobObserver
from disque_tx.core.lookup.table import Table
from disque_tx.messages.bustypes import GOTACK, REPLJOB
from tests.core.bench import ME, MemoryLog, NodeCase
from tests.core.peerbench import B, PeerCase, peer_job


class Recorder(JobObserver):
    """Keeps what it is notified of."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def job_acknowledged(self, job: Job) -> None:
        self.events.append(("acknowledged", job.id))

    def job_gone(self, job: Job) -> None:
        self.events.append(("gone", job.id))

    def job_moved(self, job: Job, was: int) -> None:
        self.events.append(("moved", (int(was), int(job.place))))

    def job_recorded(self, job: Job) -> None:
        self.events.append(("recorded", job.id))

    def all_forgotten(self, jobs: Table[Job]) -> None:
        self.events.append(("forgotten", jobs.count))


class SubscriptionTests(NodeCase):
    """One node, and an observer of its jobs."""

    def observer(self, kinds: int) -> Recorder:
        """Subscribed to these kinds."""
        recorder = Recorder()
        self.node.jobs.subscribe(recorder, kinds)
        return recorder

    def test_life(self) -> None:
        """What counts jobs by state misses none of their changes, from the first record on."""
        self.node.outbox.log = MemoryLog()
        observer = self.observer(ENDS | MOVES | RECORDS)
        job_id = self.add(retry_s=60, delay_s=1)
        self.pass_ms(1_000)
        self.get(b"q")
        self.node.acknowledge([job_id])
        self.assertEqual(
            [
                ("moved", (NOWHERE, DELAYED)),
                ("recorded", job_id),
                ("moved", (DELAYED, NOWHERE)),
                ("recorded", job_id),
                ("moved", (NOWHERE, IN_FLIGHT)),
                ("moved", (IN_FLIGHT, NOWHERE)),
                ("gone", job_id),
            ],
            observer.events,
        )

    def test_kinds(self) -> None:
        """An observer costs nothing where it has not subscribed."""
        ends, moves, none = (self.observer(kinds) for kinds in (ENDS, MOVES, 0))
        job_id = self.add(retry_s=60, delay_s=1)
        self.node.delete([job_id])
        self.assertEqual([("gone", job_id)], ends.events)
        moved = [("moved", (NOWHERE, DELAYED)), ("moved", (DELAYED, NOWHERE))]
        self.assertEqual((moved, []), (moves.events, none.events))

    def test_forgotten(self) -> None:
        """FLUSHALL reaches every observer while the jobs are still there."""
        observer = self.observer(0)
        for _ in range(3):
            self.add()
        self.node.flush_all()
        self.assertEqual([("forgotten", 3)], observer.events)


class CopiesTests(PeerCase):
    """A job that another node holds, too."""

    peers = (B,)

    def test_acknowledged(self) -> None:
        """Who waits for the end of a job hears of it before all holders have confirmed it."""
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)))
        (job,) = self.node.jobs.table.values()
        observer = Recorder()
        self.node.jobs.subscribe(observer, ENDS)
        self.node.acknowledge([job.id])
        self.assertEqual([("acknowledged", job.id)], observer.events)
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([("acknowledged", job.id), ("gone", job.id)], observer.events)

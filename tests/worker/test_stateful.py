"""Whatever fails, no job is lost, and none is acknowledged unless it is done or has a dead
letter."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from disque_tx.worker import Context, Hopeless
from tests.worker.memory import HangingPool, InlinePool, WorkerTestCase, lost

_COMMANDS = ("GETJOB", "ADDJOB", "ACKJOB", "NACK", "WORKING", "SHOW")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([b"good", b"bad", b"hopeless"])),
        st.tuples(st.just("add_once"), st.sampled_from([b"good", b"bad"])),
        st.tuples(st.just("break"), st.sets(st.sampled_from(_COMMANDS))),
        st.tuples(st.just("lose"), st.sets(st.sampled_from(_COMMANDS))),
        st.tuples(st.just("heal"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.25, 3, 30, 120])),
        st.tuples(st.just("release"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=25,
)


class AnythingTests(WorkerTestCase):
    """A worker with random faults."""

    @given(_STEPS, st.sampled_from([InlinePool, HangingPool]))
    # Jobs that are done while no node accepts acknowledgements, for more than a minute.
    @example(
        [
            ("add_once", b"good"),
            ("break", {"GETJOB", "ACKJOB", "ADDJOB"}),
            ("release", None),
            ("wait", 120),
        ],
        HangingPool,
    )
    # Jobs that fail while no node accepts dead letters or returned jobs.
    @example(
        [
            ("add_once", b"bad"),
            ("break", {"NACK", "ACKJOB", "GETJOB", "ADDJOB"}),
            ("release", None),
            ("wait", 120),
        ],
        HangingPool,
    )
    def test_nothing_is_lost(self, steps: list[tuple[str, Any]], pool: type[InlinePool]) -> None:
        """In the end every job is done or has a dead letter, and none was acknowledged before
        that."""
        self.setUp()
        self.pool = pool
        self.stopped_while_broken = False
        self.start()
        for name, argument in steps:
            getattr(self, f"step_{name}")(argument)
            self.check()
        self.step_heal(None)
        for _ in range(40):
            self.step_release(None)
            self.pass_s(30, step_s=0.5)
        self.check()
        jobs = [stored for stored in self.client.jobs.values() if stored.job.queue == "q"]
        for stored in jobs:
            if stored.retry_s or not self.stopped_while_broken:
                self.assertEqual("acked", stored.state, stored.job.id)
        self.stop(self.service)

    def start(self) -> None:
        """Start a worker."""
        self.service = self.worker({"q": self.handle}, self.pool, concurrency=3, retries_max=2)

    def handle(self, job: Context) -> None:
        """Process good jobs, and fail the others."""
        if job.body == b"hopeless":
            raise Hopeless("it is")
        if job.body == b"bad":
            raise ValueError("it is")
        self.done.append(job.id.encode())

    def check(self) -> None:
        """Assert that only finished jobs are acknowledged."""
        written = {letter.id for letter in self.client.letters("q")}
        for job_id, stored in self.client.jobs.items():
            if stored.job.queue == "q" and stored.state == "acked":
                self.assertTrue(job_id in written or job_id.encode() in self.done, job_id)

    def step_add(self, body: bytes) -> None:
        """Add a job that is delivered again if necessary."""
        self.client.put("q", body, retry_s=20)
        self.pass_s(0)

    def step_add_once(self, body: bytes) -> None:
        """Add a job with RETRY 0, unless it could be lost on its way to the worker."""
        if self.client.broken("GETJOB") is None:
            self.client.put("q", body, retry_s=0)
            self.pass_s(0)

    def step_break(self, commands: set[str]) -> None:
        """From now on, these commands fail."""
        self.client.lossy = False
        self.client.broken = lambda command: lost(command) if command in commands else None

    @property
    def is_broken(self) -> bool:
        """Whether any command fails."""
        return any(self.client.broken(command) for command in _COMMANDS)

    def step_lose(self, commands: set[str]) -> None:
        """From now on, these commands are executed, but their replies lost."""
        self.step_break(commands)
        self.client.lossy = True

    def step_heal(self, _: None) -> None:
        """From now on, all commands work."""
        self.client.broken = lambda command: None

    def step_wait(self, seconds: float) -> None:
        """Let time pass."""
        self.pass_s(seconds, step_s=0.25)

    def step_release(self, _: None) -> None:
        """Let hanging functions run."""
        self.pools[-1].release()
        self.pass_s(0)

    def step_restart(self, _: None) -> None:
        """Stop the worker and start another one. When it stops while no dead letter can be written,
        jobs with RETRY 0 may be left."""
        self.stopped_while_broken |= self.is_broken
        self.step_release(None)
        self.stop(self.service)
        self.start()

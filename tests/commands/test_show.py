"""SHOW: all details of a job (client protocol, section 18)."""

from __future__ import annotations

from disque_tx.commands.base.values import Value
from disque_tx.commands.jobs.jobs import show
from disque_tx.core.jobs.job import ACK
from tests.commands.desk import ME
from tests.commands.jobs.test_jobs import UNKNOWN, JobsCase

NAMES = (
    b"id queue state repl ttl ctime delay retry nacks additional-deliveries nodes-delivered"
    b" nodes-confirmed next-requeue-within next-awake-within body"
).split()


class ShowTests(JobsCase):
    """``show``."""

    def show(self, job_id: bytes) -> dict[bytes, Value]:
        """The names and values, which must be complete and in order."""
        reply = self.call(show, b"SHOW", job_id)
        assert isinstance(reply, list)
        self.assertEqual(NAMES, reply[::2])
        return dict(zip(NAMES, reply[1::2], strict=True))

    def pass_ms(self, ms: int) -> None:
        self.node.begin(self.node.now_ms + ms, self.node.wall_us + ms * 1000)
        self.node.run_due()

    def test_queued(self) -> None:
        """A new job shows the values it was added with."""
        job_id = self.add(b"q", b"\0b", b"0", b"RETRY", b"10", b"TTL", b"60")
        self.assertEqual(
            {
                b"id": job_id,
                b"queue": b"q",
                b"state": b"queued",
                b"repl": 1,
                b"ttl": 60,
                b"ctime": self.node.wall_us // 1000 * 1_000_000,
                b"delay": 0,
                b"retry": 10,
                b"nacks": 0,
                b"additional-deliveries": 0,
                b"nodes-delivered": [ME],
                b"nodes-confirmed": [],
                b"next-requeue-within": 10_000,
                b"next-awake-within": 9_500,
                b"body": b"\0b",
            },
            self.show(job_id),
        )

    def test_times(self) -> None:
        """Remaining times decrease, and are never negative."""
        job_id = self.add(b"q", b"b", b"0", b"RETRY", b"1000", b"TTL", b"60")
        self.pass_ms(500)
        self.assertEqual(60, self.show(job_id)[b"ttl"])
        self.pass_ms(59_000)
        shown = self.show(job_id)
        self.assertEqual((1, 500), (shown[b"ttl"], shown[b"next-awake-within"]))
        self.node.begin(self.node.now_ms + 5_000, self.node.wall_us)
        shown = self.show(job_id)
        self.assertEqual((0, 0), (shown[b"ttl"], shown[b"next-awake-within"]))

    def test_delayed(self) -> None:
        """A delayed job is active, and its next queueing is the end of the delay."""
        shown = self.show(self.add(b"q", b"b", b"0", b"DELAY", b"5"))
        self.assertEqual(
            (b"active", 5, 5_000, 5_000),
            tuple(shown[n] for n in (b"state", b"delay", *NAMES[12:14])),
        )

    def test_never_again(self) -> None:
        """With RETRY 0 there is no next queueing, only the end of the TTL."""
        shown = self.show(self.add(b"q", b"b", b"0", b"RETRY", b"0", b"TTL", b"60"))
        self.assertIsNone(shown[b"next-requeue-within"])
        self.assertEqual(60_000, shown[b"next-awake-within"])

    def test_unknown(self) -> None:
        """An unknown job is a nil."""
        self.assertIsNone(self.call(show, b"SHOW", UNKNOWN))

    def test_dummy(self) -> None:
        """The record of an acknowledgement without a job has neither queue nor body, and no
        numbers."""
        job_id = self.add(b"q", b"b", b"0", b"RETRY", b"0", b"DELAY", b"9")
        job = self.node.jobs.get(job_id)
        assert job is not None
        job.step(ACK)
        job.dummy = True
        job.confirmed = {ME}
        shown = self.show(job_id)
        self.assertEqual(
            (None, None, None), tuple(shown[n] for n in (b"queue", b"body", NAMES[12]))
        )
        self.assertEqual((b"acked", [ME]), (shown[b"state"], shown[b"nodes-confirmed"]))

"""WORKING with PROGRESS: what consumers report about jobs, and when it is forgotten."""

from __future__ import annotations

from disque_tx.commands.base.values import Value
from disque_tx.commands.jobs.jobs import ackjob, deljob, enqueue, show
from disque_tx.commands.jobs.progress import progress_question, working
from disque_tx.commands.jobs.retries import nack
from tests.commands.jobs.test_jobs import BAD_ID, SYNTAX, UNKNOWN, JobsCase

RANGE = b"ERR PROGRESS must be a number from 0 to 1, with up to 3 decimals"
NOJOB = b"NOJOB Job not known in the context of this node."


class ProgressTests(JobsCase):
    """WORKING id PROGRESS fraction [NOTE text]"""

    def taken(self, *options: bytes) -> bytes:
        """A job that a consumer works on."""
        job_id = self.add(b"q", b"body", b"0", *options)
        self.take()
        return job_id

    def take(self) -> None:
        """GETJOB."""
        self.node.get_jobs(self.connect(b"x:1"), [b"q"], 1, 0, True, False)

    def report(self, job_id: bytes, *words: bytes) -> Value:
        """WORKING id PROGRESS ..."""
        return self.call(working, b"WORKING", job_id, b"PROGRESS", *words)

    def shown(self, job_id: bytes) -> dict[bytes, Value]:
        """What SHOW adds for a job with a report."""
        reply = self.call(show, b"SHOW", job_id)
        assert isinstance(reply, list), reply
        self.assertEqual(b"body", reply[-2])
        names = [name for name in reply[::2] if isinstance(name, bytes)]
        found = dict(zip(names, reply[1::2], strict=True))
        return {name: value for name, value in found.items() if name.startswith(b"progress")}

    def pass_ms(self, ms: int) -> None:
        """Time passes."""
        self.node.begin(self.node.now_ms + ms, self.node.wall_us + ms * 1000)
        self.node.run_due()

    def test_shown(self) -> None:
        """Everybody who looks at the job sees how far it is, and how old that is."""
        job_id = self.taken(b"RETRY", b"60")
        self.assertEqual({}, self.shown(job_id))
        self.assertEqual(60, self.report(job_id, b"0.4", b"note", b"page 40"))
        self.pass_ms(1_500)
        self.assertEqual(
            {b"progress": b"0.4", b"progress-note": b"page 40", b"progress-age": 1_500},
            self.shown(job_id),
        )
        self.assertEqual(60, self.report(job_id, b"1"))
        expected = {b"progress": b"1", b"progress-note": b"", b"progress-age": 0}
        self.assertEqual(expected, self.shown(job_id))

    def test_heartbeat_keeps_it(self) -> None:
        """A plain WORKING says nothing about the progress."""
        job_id = self.taken()
        self.report(job_id, b"0.25")
        self.call(working, b"WORKING", job_id)
        self.assertEqual(b"0.25", self.shown(job_id)[b"progress"])

    def test_hostile(self) -> None:
        """What is not a fraction is refused, and neither kept nor a heartbeat."""
        job_id = self.taken()
        before = self.node.memory.used
        words = (b"", b"NaN", b"inf", b"1e999", b"-0.1", b"-0", b"1.001", b"2", b"0.1234", b"0x1")
        for word in (*words, b"1_0", b" 0.5", b"0,5", b"9" * 1_000_000, "½".encode()):
            self.assert_refused(RANGE, working, b"WORKING", job_id, b"PROGRESS", word)
        long = b"ERR NOTE is longer than 256 bytes"
        for size in (257, 1_000_000):
            request = [b"WORKING", job_id, b"PROGRESS", b"0.5", b"NOTE", b"x" * size]
            self.assert_refused(long, working, *request)
        self.assertEqual(({}, before), (self.shown(job_id), self.node.memory.used))

    def test_note_bytes(self) -> None:
        """A note is kept as it came, in one line."""
        job_id = self.taken()
        self.report(job_id, b"0.5", b"NOTE", b"\xff\r\n\0" + b"x" * 252)
        self.assertEqual(b"\xff   " + b"x" * 252, self.shown(job_id)[b"progress-note"])

    def test_syntax(self) -> None:
        """Other words are refused, whatever their number."""
        job_id = self.taken()
        wrong = ([b"PROGRESS"], [b"NOTE", b"x"], [b"PROGRESS", b"1", b"NOTE"], [b"x"])
        for words in (*wrong, [b"PROGRESS", b"1", b"TEXT", b"x"], [b"PROGRESS", b"1", *[b"x"] * 3]):
            self.assert_refused(SYNTAX, working, b"WORKING", job_id, *words)
        self.assert_refused(BAD_ID, working, b"WORKING", b"x", b"PROGRESS", b"1")

    def test_not_here(self) -> None:
        """Nothing is kept about a job that is not here."""
        self.assert_refused(NOJOB, working, b"WORKING", UNKNOWN, b"PROGRESS", b"0.5")
        self.assertEqual([], self.call(progress_question, b"PROGRESS", b"q", b"10"))

    def test_nobody_works_on_it(self) -> None:
        """A job that is delayed or held back has no progress: no consumer has it."""
        delayed = self.add(b"d", b"body", b"0", b"DELAY", b"10")
        held = self.taken(b"RETRY", b"60")
        self.call(nack, b"NACK", b"DELAY", b"30", held)
        for job_id in (delayed, held):
            self.report(job_id, b"0.5")
            self.assertEqual({}, self.shown(job_id))

    def test_retry_zero(self) -> None:
        """A job that is delivered once may have a progress, too."""
        job_id = self.taken(b"RETRY", b"0")
        self.assertEqual(0, self.report(job_id, b"0.5"))
        self.pass_ms(3_600_000)
        self.assertEqual(b"0.5", self.shown(job_id)[b"progress"])

    def test_ends_with_the_delivery(self) -> None:
        """A report is of one delivery: the next consumer begins at nothing."""
        used = self.node.memory.used
        for returned in (
            lambda job_id: self.call(nack, b"NACK", job_id),
            lambda job_id: self.call(nack, b"NACK", b"DELAY", b"1", job_id),
            lambda job_id: self.call(enqueue, b"ENQUEUE", job_id),
            lambda job_id: self.pass_ms(10_500),
        ):
            job_id = self.taken(b"RETRY", b"10")
            self.report(job_id, b"0.5")
            returned(job_id)
            self.assertEqual({}, self.shown(job_id))
            self.pass_ms(1_100)
            self.take()
            self.assertEqual({}, self.shown(job_id))
            self.call(deljob, b"DELJOB", job_id)
        self.assertEqual(used, self.node.memory.used - self.queue_bytes())

    def queue_bytes(self) -> int:
        """What the one queue costs that there was not at first."""
        return 600 + len(b"q")

    def test_forgotten(self) -> None:
        """The end of a job frees what was reported about it."""
        self.taken()
        for end in (ackjob, deljob):
            before = self.node.state.progress.used
            job_id = self.taken()
            self.report(job_id, b"0.5", b"NOTE", b"n" * 256)
            self.assertEqual(before + 556, self.node.state.progress.used)
            self.call(end, b"END", job_id)
            self.assertEqual(before, self.node.state.progress.used)
        self.report(self.taken(), b"0.5")
        self.node.jobs.forget_all()
        self.assertEqual(0, self.node.state.progress.used)

    def test_bounded(self) -> None:
        """The oldest reports make room for new ones."""
        self.node.state.progress.limit = 2
        ids = [self.taken() for _ in range(3)]
        for job_id in ids:
            self.report(job_id, b"0.5")
        self.assertEqual([False, True, True], [bool(self.shown(job_id)) for job_id in ids])

    def test_question(self) -> None:
        """Programs that watch a queue see its jobs, those that reported last first."""
        first, second = self.taken(), self.taken()
        self.report(first, b"0.5", b"NOTE", b"one")
        self.pass_ms(100)
        self.report(second, b"0.75")
        rows = [[second, b"0.75", b"", 0], [first, b"0.5", b"one", 100]]
        self.assertEqual(rows, self.call(progress_question, b"PROGRESS", b"q", b"10"))
        self.assertEqual(rows[:1], self.call(progress_question, b"PROGRESS", b"q", b"1"))
        self.assertEqual([], self.call(progress_question, b"PROGRESS", b"other", b"10"))
        for count in (b"0", b"501", b"x"):
            line = b"ERR PROGRESS shows 1 to 500 jobs"
            self.assert_refused(line, progress_question, b"PROGRESS", b"q", count)

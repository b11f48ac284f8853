"""What comes back from the log: numbers, priorities, buried and delayed jobs, counters."""

from __future__ import annotations

from disque_tx.core import recovery
from disque_tx.protocols.beanstalk.jobs import OWNER
from tests.core.bench import MemoryLog
from tests.protocols.beanstalk.bench import BeanstalkCase, BeanstalkClient


class RestartTests(BeanstalkCase):
    """A restart of the node, with its log."""

    def setUp(self) -> None:
        super().setUp()
        self.node.outbox.log = self.log_records = MemoryLog()
        self.before = self.client()

    def restart(self) -> BeanstalkClient:
        """Another node has what the log of this one holds; a client of it."""
        records = self.log_records
        BeanstalkCase.setUp(self)
        self.in_turn(lambda: self.load(records))
        return self.client()

    def load(self, records: MemoryLog) -> None:
        """As the loader does it."""
        for record in records.records.values():
            recovery.load(self.node, record, False)
        for job_id, (owner, data) in records.notes.items():
            job = self.node.jobs.get(job_id)
            assert job is not None
            self.node.state.notes.load(job, owner, data)

    def test_ready(self) -> None:
        """Jobs are ready at once, also those that clients had, in their order; numbers go on."""
        for body, priority in ((b"a", 9), (b"b", 2), (b"c", 9)):
            self.before.put(body, priority)
        self.before.send(b"reserve\r\n")
        client = self.restart()
        for number, body in ((2, b"b"), (1, b"a"), (3, b"c")):
            expected = b"RESERVED %d 1\r\n%s\r\n" % (number, body)
            self.assertEqual(expected, client.send(b"reserve\r\n"))
        self.assertEqual(b"INSERTED 4\r\n", client.put(b"d"))

    def test_buried(self) -> None:
        """A buried job stays buried."""
        self.before.put(b"a")
        self.before.send(b"reserve\r\nbury 1 7\r\n")
        client = self.restart()
        self.assertEqual(b"", client.send(b"reserve-with-timeout 70\r\n"))
        self.pass_s(71)
        self.assertEqual(b"TIMED_OUT\r\n", client.received())
        self.assertEqual(b"FOUND 1 1\r\na\r\n", client.send(b"peek-buried\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"peek-delayed\r\n"))
        self.assertEqual(b"0", self.stat(b"current-jobs-delayed"))
        self.assertEqual(b"7", self.stat(b"pri", b"stats-job 1"))
        self.assertEqual(b"1", self.stat(b"buries", b"stats-job 1"))
        self.assertEqual(b"KICKED 1\r\n", client.send(b"kick 1\r\n"))

    def test_delayed(self) -> None:
        """A job that was released with a delay comes when that is over, one with DELAY later."""
        self.before.put(b"a")
        self.before.send(b"reserve\r\nrelease 1 1 5\r\n")
        self.before.put(b"b", delay_s=9)
        client = self.restart()
        self.assertEqual(b"2", self.stat(b"current-jobs-delayed"))
        self.assertEqual(b"FOUND 1 1\r\na\r\n", client.send(b"peek-delayed\r\n"))
        self.pass_s(5.2)
        self.assertEqual(b"RESERVED 1 1\r\na\r\n", client.send(b"reserve\r\n"))
        self.pass_s(4)
        self.assertEqual(b"RESERVED 2 1\r\nb\r\n", client.send(b"reserve\r\n"))

    def test_short_delay(self) -> None:
        """Any delay of a release is kept, however short, and with the number of seconds that the
        client named; one without a delay is ready."""
        for body in (b"a", b"b"):
            self.before.put(body)
        self.before.send(b"reserve\r\nrelease 1 1 1\r\nreserve\r\nrelease 2 1 0\r\n")
        client = self.restart()
        self.assertEqual(b"FOUND 1 1\r\na\r\n", client.send(b"peek-delayed\r\n"))
        self.assertEqual(b"FOUND 2 1\r\nb\r\n", client.send(b"peek-ready\r\n"))
        found = [self.stat(name, b"stats-job 1") for name in (b"state", b"delay", b"time-left")]
        self.assertEqual([b"delayed", b"1", b"1"], found)
        self.assertEqual(b"0", self.stat(b"delay", b"stats-job 2"))
        self.pass_s(1.2)
        self.assertEqual(b"ready", self.stat(b"state", b"stats-job 1"))

    def test_taken_by_number(self) -> None:
        """A delayed or buried job that a client took by its number is not lost with a restart, and
        is no more buried; it counts as no additional delivery."""
        self.before.put(b"a", delay_s=900)
        self.before.put(b"b")
        self.before.send(b"reserve\r\nbury 2 7\r\n")
        for number in (1, 2):
            self.before.send(b"reserve-job %d\r\n" % number)
        client = self.restart()
        self.assertEqual(b"0", self.stat(b"current-jobs-buried"))
        self.assertEqual(b"0", self.stat(b"current-jobs-delayed"))
        taken = client.send(b"reserve\r\n") + client.send(b"reserve\r\n")
        self.assertEqual({b"a", b"b"}, set(taken.split(b"\r\n")) & {b"a", b"b"})
        jobs = self.node.jobs.table.values()
        self.assertEqual([0, 0], [int(job.deliveries) for job in jobs])

    def test_kicked(self) -> None:
        """A job that was kicked is ready after a restart, not delayed or buried again."""
        self.before.put(b"a")
        self.before.send(b"reserve\r\nrelease 1 0 900\r\n")
        self.before.put(b"b")
        self.before.send(b"reserve\r\nbury 2 7\r\n")
        for number in (1, 2):
            self.before.send(b"kick-job %d\r\n" % number)
        client = self.restart()
        self.assertEqual(b"2", self.stat(b"current-jobs-ready"))
        self.assertEqual(b"FOUND 1 1\r\na\r\n", client.send(b"peek 1\r\n"))

    def test_counters(self) -> None:
        """What happened to a job is not forgotten."""
        self.before.put(b"a", ttr_s=1)
        self.before.send(b"reserve\r\nrelease 1 1 9\r\nkick 1\r\nreserve\r\n")
        self.pass_s(1.2)
        self.restart()
        names = (b"reserves", b"timeouts", b"releases", b"kicks")
        found = [self.stat(name, b"stats-job 1") for name in names]
        self.assertEqual([b"2", b"1", b"1", b"1"], found)

    def test_resp_jobs(self) -> None:
        """A job of a RESP client, which may have it, comes back after its RETRY as ever."""
        self.turn(b"ADDJOB default x 0 RETRY 5")
        self.before.send(b"reserve\r\n")
        client = self.restart()
        self.assertEqual(b"", client.send(b"reserve\r\n"))
        self.pass_s(5.5)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.received())

    def test_seen_resp_jobs(self) -> None:
        """A job of a RESP client keeps the number under which a client has seen it."""
        self.turn(b"ADDJOB default x 0 RETRY 5")
        self.assertEqual(b"FOUND 1 1\r\nx\r\n", self.before.send(b"peek-ready\r\n"))
        self.before.put(b"y")
        client = self.restart()
        self.assertEqual(b"RESERVED 2 1\r\ny\r\n", client.send(b"reserve\r\n"))
        self.assertEqual(b"", client.send(b"reserve\r\n"))
        self.pass_s(5.5)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.received())

    def test_delayed_in_order(self) -> None:
        """Of delayed jobs the one that is due first is the first one, whatever came first."""
        for body, delay_s in ((b"a", 90), (b"b", 50), (b"c", 70)):
            self.before.put(body, delay_s=delay_s)
        client = self.restart()
        for number, body in ((2, b"b"), (3, b"c"), (1, b"a")):
            expected = b"FOUND %d 1\r\n%s\r\nDELETED\r\n" % (number, body)
            self.assertEqual(expected, client.send(b"peek-delayed\r\ndelete %d\r\n" % number))

    def test_later_note(self) -> None:
        """A note that changed while the job was in its queue counts, and the number stays one."""
        self.before.put(b"a")
        (job,) = self.node.jobs.table.values()
        note = self.node.state.notes.by_job[job.id]
        text = note.data()
        with self.runtime.turn():
            for data in (text.replace(b" 10 ", b" 3 "), text.replace(b" 10 2 ", b" 3 1 ")):
                self.node.state.notes.load(job, OWNER, data)
        self.assertEqual(1, len(self.tubes.by_number))
        self.assertEqual(b"buried", self.stat(b"state", b"stats-job 1"))
        self.assertEqual(b"3", self.stat(b"pri", b"stats-job 1"))

    def test_largest_numbers(self) -> None:
        """The largest numbers that a note may have are those that come back."""
        self.before.put(b"a")
        (job,) = self.node.jobs.table.values()
        largest = b"9" * 18
        counts = [b"9" * 17 + b"%d" % number for number in range(5)]
        fields = (b"1", largest, b"4294967295", b"2", b"0", b"0", *counts)
        with self.runtime.turn():
            self.node.state.notes.load(job, OWNER, b" ".join(fields))
        names = (b"pri", b"reserves", b"timeouts", b"releases", b"buries", b"kicks")
        found = [self.stat(name, b"stats-job " + largest) for name in names]
        self.assertEqual([fields[2], *counts], found)

    def test_second_restart(self) -> None:
        """A note that was read is written the same again, so that no restart loses anything."""
        self.before.put(b"a")
        (job,) = self.node.jobs.table.values()
        for state in (0, 1, 2, 3):
            data = b"1 7 10 %d 3 4 5 6 7 8 9" % state
            with self.runtime.turn():
                self.node.state.notes.load(job, OWNER, data)
            self.assertEqual(data, self.node.state.notes.by_job[job.id].data())

    def test_replaced_note(self) -> None:
        """A tube whose only job had two notes has one job, and is forgotten with it."""
        self.before.send(b"use a\r\n")
        self.before.put(b"x")
        self.before.send(b"use default\r\n")
        (job,) = self.node.jobs.table.values()
        text = self.node.state.notes.by_job[job.id].data()
        with self.runtime.turn():
            self.node.state.notes.load(job, OWNER, text)
        self.before.send(b"delete 1\r\n")
        self.assertEqual([b"default"], list(self.tubes.by_name))

    def test_end_of_delay(self) -> None:
        """A job whose delay ended while the node was down is ready at once, even if it ends this
        very moment; one with a millisecond left is ready then."""
        client = self.before
        for left_ms, at_once in ((-1, True), (0, True), (1, False)):
            client.put(b"x")
            (job,) = self.node.jobs.table.values()
            words = self.node.state.notes.by_job[job.id].data().split(b" ")
            words[5] = b"%d" % (self.direct.wall_ms() + left_ms)
            with self.runtime.turn():
                self.node.state.notes.load(job, OWNER, b" ".join(words))
            self.assertEqual(
                at_once, client.send(b"reserve-with-timeout 0\r\n").startswith(b"RESERVED")
            )
            self.pass_s(0.1)
            client.send(b"reserve-with-timeout 0\r\ndelete " + words[1] + b"\r\n")
            self.assertEqual(0, len(self.node.jobs))

    def test_damaged(self) -> None:
        """A note that cannot be read leaves an ordinary job."""
        self.before.put(b"a")
        (job,) = self.node.jobs.table.values()
        for data in (
            b"",
            b"2 1",
            b"1 " * 10 + b"x",
            b"1 0" + b" 0" * 9,
            b"1 1 99999999999" + b" 0" * 8,
            b"1 1 4294967296" + b" 0" * 8,
            b"2 1" + b" 0" * 9,
            b"1 1" + b" 0" * 8,
            b"1 1" + b" 0" * 10,
            b"1 1" + b" 0" * 8 + b" " + b"9" * 19,
        ):
            with self.runtime.turn():
                self.node.state.notes.load(job, OWNER, data)
            self.assertEqual({}, self.node.state.notes.by_job, data)
        self.assertEqual(b"RESERVED 2 1\r\na\r\n", self.client().send(b"reserve\r\n"))

"""When and by which node the occurrences of schedules are made."""

from __future__ import annotations

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.recurring.recurring import (
    LATE_S,
    MADE_UP_MAX,
    PER_TURN,
    SETTLE_MS,
)
from disque_tx.core.tables.calendar import NEVER, Calendar
from disque_tx.core.tables.definition import ALL, LAST, ONE, SKIP, Definition
from disque_tx.messages.bus import JobsMessage
from disque_tx.messages.bustypes import CAN_TABLES, GOTJOB, YOURJOBS
from disque_tx.messages.nodes import FAIL, PFAIL
from disque_tx.messages.tables import Register, TableChange
from tests.core.bench import UNIX_S, NodeCase
from tests.core.peerbench import B, C, PeerCase
from tests.core.recordedevents import RecordedEvents


class Minutes(Calendar):
    """Every expression is due in every full minute, in every zone, and ``never`` never."""

    def check(self, expression: bytes, zone: bytes, now_s: int) -> None:
        """Everything is right."""

    def after(self, expression: bytes, zone: bytes, time_s: int) -> int:
        return NEVER if expression == b"never" else time_s - time_s % 60 + 60

    def before(self, expression: bytes, zone: bytes, time_s: int) -> int:
        return NEVER if expression == b"never" else (time_s - 1) // 60 * 60


#: The first full minute behind the beginning of all tests.
MINUTE_S = UNIX_S - UNIX_S % 60 + 60


class RecurringCase(NodeCase):
    """A node that has begun."""

    def setUp(self) -> None:
        super().setUp()
        self.recurring = self.node.recurring
        self.recurring.calendar = Minutes()
        self.start()

    def start(self) -> None:
        """The node has loaded its files."""
        self.recurring.begin()

    def set(
        self, text: bytes = b"cron", missed: bytes = SKIP, name: bytes = b"s", **options: int
    ) -> None:
        """A client sets a schedule."""
        request = AddRequest(b"q", b"body")
        for option, value in options.items():
            setattr(request, option, value)
        wall_s = self.wall_us // 1_000_000
        wanted = Definition(text, b"", missed, request, wall_s)
        table = self.node.timetable
        table.apply(table.plan_set(name, wanted, self.node.id), wall_s)

    def pass_to(self, time_s: int) -> None:
        """Let time pass until then by the wall clock, without anything in between."""
        self.pass_ms((time_s * 1_000_000 - self.wall_us) // 1_000)

    def pass_seconds(self, seconds: int) -> None:
        """Let time pass, a second at a time."""
        for _ in range(seconds):
            self.pass_ms(1_000)

    def last_s(self, name: bytes = b"s") -> int:
        """The last occurrence that was made."""
        return int(self.node.timetable.last_s(name))


class AloneTests(RecurringCase):
    """A node without others."""

    def test_when_due(self) -> None:
        """A job is there in the second in which it is due, and the node sleeps until then."""
        self.set()
        self.pass_ms(1)
        self.assertEqual(MINUTE_S * 1_000 - self.wall_us // 1_000, self.sleep_ms())
        self.pass_to(MINUTE_S - 1)
        self.assertEqual(0, self.length())
        self.pass_to(MINUTE_S)
        self.assertEqual((1, MINUTE_S), (self.length(), self.last_s()))
        self.pass_to(MINUTE_S + 59)
        self.assertEqual(1, self.length())
        self.pass_to(MINUTE_S + 60)
        self.assertEqual(2, self.length())

    def sleep_ms(self) -> int:
        """How long the node has nothing to do."""
        return int(self.node.next_due_ms()) - self.now_ms

    def test_every(self) -> None:
        """Equal intervals are counted from when the schedule was set."""
        self.set(b"EVERY 7")
        self.pass_seconds(6)
        self.assertEqual(0, self.length())
        self.pass_seconds(1)
        self.assertEqual((1, UNIX_S + 7), (self.length(), self.last_s()))
        self.pass_seconds(70)
        self.assertEqual(11, self.length())

    def test_not_before_start(self) -> None:
        """While the log is being loaded nothing is made."""
        NodeCase.setUp(self)
        self.recurring = self.node.recurring
        self.recurring.calendar = Minutes()
        self.set(b"EVERY 1")
        self.pass_seconds(5)
        self.assertEqual((0, -1), (self.length(), self.node.next_due_ms()))
        self.start()
        self.pass_ms(1)
        self.assertEqual(5, self.length())

    def test_clock_set_back(self) -> None:
        """A wall clock that is set back repeats nothing."""
        self.set(b"EVERY 1")
        self.pass_seconds(10)
        self.assertEqual(10, self.length())
        self.begin(self.now_ms + 1, self.wall_us - 8_000_000)
        self.node.run_due()
        self.pass_seconds(8)
        self.assertEqual(10, self.length())
        self.pass_seconds(1)
        self.assertEqual(11, self.length())

    def leave_out(self) -> int:
        """A client wants the next occurrence left out that is not left out yet."""
        table = self.node.timetable
        after_s = max(self.recurring.position_s(b"s"), table.skipped_s(b"s"))
        time_s = table.definitions[b"s"].recurrence.after(self.recurring.calendar, after_s)
        table.apply(table.plan_skip(b"s", time_s, self.node.id), self.wall_us // 1_000_000)
        return int(time_s)

    def test_left_out(self) -> None:
        """What clients want left out is not made, also if they want it of several; those behind
        that are, and a run that did not take place is none of the past."""
        self.set()
        self.pass_to(MINUTE_S)
        self.assertEqual([MINUTE_S + 60, MINUTE_S + 120], [self.leave_out(), self.leave_out()])
        self.pass_to(MINUTE_S + 60)
        self.pass_to(MINUTE_S + 179)
        self.assertEqual((1, MINUTE_S), (self.length(), self.last_s()))
        self.pass_to(MINUTE_S + 180)
        self.assertEqual((2, MINUTE_S + 180), (self.length(), self.last_s()))

    def test_left_out_no_more(self) -> None:
        """A schedule that is changed begins anew, without what was left out of the other one."""
        self.set()
        self.pass_to(MINUTE_S - 1)
        self.leave_out()
        self.set(ttl_s=60)
        self.pass_to(MINUTE_S)
        self.assertEqual(1, self.length())

    def test_left_out_after_restart(self) -> None:
        """What is left out is so, too, if the node was away when it was due, and makes up for what
        it missed."""
        self.set(missed=ALL)
        self.pass_to(MINUTE_S)
        self.leave_out()
        self.begin(self.now_ms, (MINUTE_S + 300) * 1_000_000)
        self.node.run_due()
        self.pass_seconds(10)
        self.assertEqual(5, self.length())

    def test_skipped(self) -> None:
        """After a long time the node goes on, without what was missed."""
        self.set(b"EVERY 10")
        self.pass_seconds(10)
        self.begin(self.now_ms, self.wall_us + 3_600_000_000)
        self.node.run_due()
        self.assertEqual((1 + LATE_S // 10 + 1, 1), (self.length(), self.recurring.missed))
        self.pass_seconds(10)
        self.assertEqual(1 + LATE_S // 10 + 2, self.length())

    def test_one_for_all(self) -> None:
        """With MISSED one, all that was missed is made up for by its last occurrence."""
        self.set(missed=ONE)
        self.pass_to(MINUTE_S)
        self.pass_to(MINUTE_S + 3_600 + 30)
        self.assertEqual(3, self.length())
        self.pass_seconds(31)
        self.assertEqual((4, 0), (self.length(), self.recurring.missed))

    def test_one_by_one(self) -> None:
        """With MISSED all, nothing is left out."""
        self.set(missed=ALL)
        self.pass_to(MINUTE_S)
        self.pass_to(MINUTE_S + 3_600)
        self.assertEqual(61, self.length())

    def test_made_up_bounded(self) -> None:
        """A year of seconds is not made up for one by one, and no turn makes many."""
        self.set(b"EVERY 1", ALL)
        self.begin(self.now_ms, self.wall_us + 10**12)
        self.node.run_due()
        self.assertEqual(PER_TURN, self.length())
        for _ in range(50):
            self.node.run_due()
        self.assertEqual(MADE_UP_MAX + LATE_S + 1, self.length())
        self.assertEqual(1, self.recurring.missed)

    def test_deleted(self) -> None:
        """A deleted schedule makes nothing any more, and a new one of its name begins anew."""
        self.set(b"EVERY 1")
        self.pass_seconds(3)
        table, wall_s = self.node.timetable, self.wall_us // 1_000_000
        table.apply(table.plan_del(b"s", self.node.id, wall_s), wall_s)
        self.pass_seconds(100)
        self.assertEqual(3, self.length())
        self.set(b"EVERY 1")
        self.pass_seconds(1)
        self.assertEqual(4, self.length())

    def test_paused(self) -> None:
        """A schedule that is paused makes nothing, and goes on without what it would have made."""
        self.set(b"EVERY 1", ALL)
        self.pass_seconds(3)
        for paused, jobs in ((True, 3), (False, 13)):
            table, wall_s = self.node.timetable, self.wall_us // 1_000_000
            table.apply(table.plan_pause(b"s", paused, self.node.id, wall_s), wall_s)
            self.pass_seconds(10)
            self.assertEqual(jobs, self.length())

    def test_never(self) -> None:
        """An expression that is never due here costs nothing."""
        self.set(b"never")
        self.pass_ms(1)
        self.assertEqual(-1, self.node.next_due_ms())

    def test_tried_again(self) -> None:
        """What could not be added is added as soon as that is possible, and the reason is shown;
        each attempt is counted."""
        self.node.pause(b"q", 1)
        self.set(b"EVERY 10")
        self.pass_seconds(15)
        upcoming = self.recurring.find(b"s")
        assert upcoming is not None
        self.assertIn("PAUSED", upcoming.error)
        self.assertEqual((0, 6, 0), (self.length(), self.recurring.failed, self.recurring.made))
        self.node.pause(b"q", 0)
        self.pass_seconds(1)
        self.assertEqual((1, ""), (self.length(), upcoming.error))
        self.assertEqual((6, 1), (self.recurring.failed, self.recurring.made))
        self.assertEqual(UNIX_S + 10, self.last_s())

    def test_missed_tried_again(self) -> None:
        """What was missed is made up for as well when the first attempt fails: once for all of it,
        as soon as the queue takes jobs."""
        self.set(b"EVERY 1000", ONE)
        self.pass_seconds(1)
        self.node.pause(b"q", 1)
        self.begin(self.now_ms, self.wall_us + 2_500_000_000)
        self.pass_seconds(3)
        self.assertEqual((0, 0, 3), (self.length(), self.recurring.missed, self.recurring.failed))
        self.node.pause(b"q", 0)
        self.pass_seconds(2)
        self.assertEqual((1, UNIX_S + 2_000), (self.length(), self.last_s()))

    def test_made_up_tried_again(self) -> None:
        """Failed attempts are not counted among those that a schedule makes up for at a stretch."""
        self.set(b"EVERY 1000", ALL)
        self.pass_seconds(1)
        self.node.pause(b"q", 1)
        self.begin(self.now_ms, self.wall_us + 2_500_000_000)
        self.pass_seconds(MADE_UP_MAX + 1)
        self.node.pause(b"q", 0)
        self.pass_seconds(2)
        self.assertEqual(3, self.length())

    def test_out_of_memory(self) -> None:
        """Schedules do not fill a node that refuses the jobs of clients."""
        self.add()
        self.node.memory.limit = self.node.memory.used
        self.set(b"EVERY 1")
        self.pass_seconds(5)
        self.assertEqual((1, 0), (self.length(), self.recurring.made))

    def test_not_twice_after_restart(self) -> None:
        """A node that has lost its last second still has the job, and makes no second one."""
        self.set(b"EVERY 10")
        self.pass_seconds(10)
        self.assertEqual(1, self.length())
        table = self.node.timetable
        definition = [one for one in table.registers.all() if one.name != LAST]
        table.clear()
        self.pass_ms(1)
        table.load(definition, 1, UNIX_S)
        self.pass_seconds(1)
        self.assertEqual((1, 2), (self.length(), self.recurring.made))

    def test_own_id_without_retry(self) -> None:
        """A job that may be delivered once only has an ID that no other node makes."""
        self.set(b"EVERY 1", name=b"once", retry_s=0, replicate=1)
        self.set(b"EVERY 1", name=b"more", replicate=1)
        self.pass_seconds(2)
        ids = [job.id for job in self.node.jobs.table.values()]
        self.assertEqual(2, len([job_id for job_id in ids if b"-0000000000" in job_id]))

    def test_event(self) -> None:
        """The event log says which schedule a job comes from, and for which time."""
        events = self.node.outbox.events = RecordedEvents()
        self.set()
        self.pass_to(MINUTE_S)
        self.assertEqual(
            [
                ("added", "schedule", 0, -1),
                ("queued", "", 0, -1),
                ("scheduled", "", MINUTE_S, -1, b"s"),
            ],
            events.take(),
        )

    def test_many(self) -> None:
        """Thousands of schedules that are due in the same second are made in slices."""
        for number in range(3 * PER_TURN):
            self.set(b"EVERY 60", name=b"%d" % number)
        self.pass_ms(1)
        self.begin(self.now_ms + 60_000, self.wall_us + 60_000_000)
        for _ in range(10):
            self.node.run_due()
        before = self.length()
        self.assertEqual(3 * PER_TURN, before)


class ConnectedCase(RecurringCase, PeerCase):
    """A node with links to others that have tables, and that is ready."""

    def setUp(self) -> None:
        PeerCase.setUp(self)
        self.recurring = self.node.recurring
        self.recurring.calendar = Minutes()
        for peer in (B, C):
            link = self.node.membership.nodes[peer].link
            assert link is not None
            link.features = CAN_TABLES
        self.start()
        self.pass_ms(SETTLE_MS)
        self.mine = self.name_of(self.node.id)
        self.theirs = self.name_of(B)

    def name_of(self, node_id: bytes) -> bytes:
        """The name of a schedule that is this node's to make."""
        names = (b"%d" % number for number in range(1_000))
        return next(name for name in names if self.recurring.maker(name) == node_id)


class ClocksTests(ConnectedCase):
    """A node with others, one of which has a clock that is wrong, or was."""

    def setUp(self) -> None:
        super().setUp()
        for peer in (B, C):
            self.show(peer, 0)

    def show(self, peer: bytes, ahead_s: int) -> None:
        """The clock of a peer is so much ahead."""
        entry = self.node.membership.nodes[peer]
        entry.clock_ms = self.wall_us // 1000 - self.now_ms + ahead_s * 1000
        entry.clock_seen_ms = self.now_ms

    def set_wrong(self, ahead_s: int) -> None:
        """The clock of this node is set."""
        self.begin(self.now_ms + 1, self.wall_us + ahead_s * 1_000_000)
        self.node.run_due()

    def test_own_clock_is_wrong(self) -> None:
        """A node whose clock is set wrong makes nothing, neither at once nor later; when it is put
        right, the node goes on."""
        for ahead_s in (3_600, -3_600):
            self.set(b"EVERY 10", ALL, name=self.mine, replicate=1)
            made = int(self.recurring.made)
            self.set_wrong(ahead_s)
            self.assertNotEqual(self.node.id, self.recurring.maker(self.mine))
            self.pass_seconds(50)
            self.assertEqual(made, self.recurring.made)
            self.set_wrong(-ahead_s)
            self.pass_seconds(5)
            self.assertIn(self.recurring.made - made, (5, 6))

    def test_next_node_goes_on(self) -> None:
        """What a node with a wrong clock would make, the next one makes."""
        self.set(b"EVERY 10", name=self.theirs, replicate=1)
        self.pass_seconds(9)
        self.show(B, -3_600)
        self.show(C, 0)
        self.node.membership.nodes[C].flags |= FAIL
        self.node.membership.refresh()
        self.pass_seconds(30)
        self.assertEqual(0, self.recurring.made)  # two clocks: nobody knows
        self.node.membership.nodes[C].flags &= ~FAIL
        self.node.membership.refresh()
        self.show(C, 0)
        self.pass_seconds(2)
        name = self.recurring.maker(self.theirs)
        self.assertIn(name, (self.node.id, C))

    def test_last_in_the_future(self) -> None:
        """What a node made whose clock was an hour ahead does not stop a schedule for an hour."""
        self.set(b"EVERY 10", name=self.mine, replicate=1)
        wall_s = self.wall_us // 1_000_000
        table = self.node.timetable
        counter = table.find(self.mine).counter
        future_s = wall_s + 3_600
        change = Register(self.mine, LAST, b"%d %d" % (counter, future_s), future_s, B)
        self.receive(B, TableChange([change], table=2))
        self.pass_seconds(60)
        self.assertEqual(6, self.recurring.made)
        self.assertLess(self.last_s(self.mine), wall_s + 70)
        self.assertLessEqual(self.recurring.position_s(self.mine), self.wall_us // 1_000_000)

    def test_alone_with_a_future(self) -> None:
        """A node that nobody confirms waits, and says why: its own clock may have been set back."""
        self.set(b"EVERY 10", name=self.mine, replicate=1)
        self.pass_seconds(20)
        for peer in (B, C):
            self.node.membership.nodes[peer].clock_seen_ms = 0
        made = int(self.recurring.made)
        self.set_wrong(-60)
        self.pass_seconds(50)
        upcoming = self.recurring.find(self.mine)
        assert upcoming is not None
        self.assertEqual(made, self.recurring.made)
        self.assertIn("no other node confirms", upcoming.error)
        self.pass_seconds(30)
        self.assertEqual((True, ""), (self.recurring.made > made, upcoming.error))


class SeveralNodesTests(ConnectedCase):
    """A node with others."""

    def test_one_node(self) -> None:
        """Of several nodes one makes the job, and all know at once that it has."""
        self.set(name=self.mine, replicate=1)
        self.set(name=self.theirs, replicate=1)
        self.clear_sent()
        self.pass_to(MINUTE_S)
        self.assertEqual(1, self.length())
        for peer in (B, C):
            changes = [one for one in self.sent_to(peer) if isinstance(one, TableChange)]
            (register,) = changes[0].registers
            self.assertEqual((1, self.mine, LAST), (len(changes), register.pattern, register.name))

    def test_flushed_under_way(self) -> None:
        """FLUSHALL while the job of an occurrence waits for its copies does not end the schedule:
        the job is made anew."""
        self.set(name=self.mine, replicate=2)
        self.pass_to(MINUTE_S)
        self.assertEqual(1, len(self.node.waiters.copies))
        self.node.flush_all()
        self.assertEqual(0, len(self.node.jobs))
        self.pass_ms(1_000)
        self.assertEqual(1, len(self.node.waiters.copies))

    def test_next_one(self) -> None:
        """When that node fails, the next one goes on where it ended, and leaves nothing out."""
        self.set(b"EVERY 1", name=self.theirs, replicate=1)
        start_s = self.wall_us // 1_000_000
        self.pass_seconds(10)
        self.made(self.theirs, start_s + 7)
        self.assertEqual(0, self.length())
        for peer, flag in ((B, PFAIL), (C, FAIL)):
            self.node.membership.nodes[peer].flags |= flag
        self.node.membership.refresh()
        self.pass_seconds(2)
        self.assertEqual((5, start_s + 12), (self.length(), self.last_s(self.theirs)))

    def made(self, name: bytes, time_s: int) -> None:
        """B has made an occurrence."""
        counter = self.node.timetable.find(name).counter
        register = Register(name, LAST, b"%d %d" % (counter, time_s), time_s, B)
        self.receive(B, TableChange([register], table=2))

    def test_waits_for_tables(self) -> None:
        """A node that has just started makes nothing before it may know what was made."""
        self.start()
        self.set(b"EVERY 1", name=self.mine, replicate=1)
        self.pass_ms(SETTLE_MS - 1)
        self.assertEqual(0, self.length())
        self.pass_ms(1)
        self.assertEqual(3, self.length())

    def test_originals_make_none(self) -> None:
        """A node that has no tables is never the one that is waited for."""
        link = self.node.membership.nodes[B].link
        assert link is not None
        link.features = 0
        self.assertNotEqual(B, self.recurring.maker(self.theirs))

    def test_leaving(self) -> None:
        """A node that leaves lets the others make what it made."""
        self.node.membership.set_leaving(True)
        self.assertIn(self.recurring.maker(self.mine), (B, C))

    def test_after_copies(self) -> None:
        """An occurrence counts as made only when its job has its copies: so a crash before that
        loses none."""
        self.set(name=self.mine, replicate=2)
        self.pass_to(MINUTE_S)
        self.assertEqual(0, self.last_s(self.mine))
        (job,) = self.node.jobs.table.values()
        peer = B if B in job.nodes else C
        self.receive_signal(peer, GOTJOB, job.id)
        self.assertEqual((1, MINUTE_S), (self.length(), self.last_s(self.mine)))

    def test_given_back(self) -> None:
        """An occurrence that lacks a copy, since a node left for good, is delivered by its maker
        when the other holder, whose RETRY is over, gives it back: only the maker has clients."""
        job = self.lacking()
        self.receive_jobs(B, YOURJOBS, job)
        self.assertEqual((1, MINUTE_S), (self.length(), self.last_s(self.mine)))

    def test_given_back_after_deletion(self) -> None:
        """So is one whose schedule is gone."""
        job = self.lacking()
        self.delete()
        self.receive_jobs(B, YOURJOBS, job)
        self.assertEqual([job.id], self.get(b"q"))

    def lacking(self) -> Job:
        """The job of an occurrence of which one node has no copy."""
        self.set(name=self.mine, replicate=3)
        self.pass_to(MINUTE_S)
        (job,) = self.node.jobs.table.values()
        self.receive_signal(B, GOTJOB, job.id)
        self.assertEqual(0, self.length())
        return job

    def test_given_up(self) -> None:
        """When another node has made it meanwhile, the job that waits for copies goes, and nobody
        is asked to delete the other's."""
        self.set(name=self.mine, replicate=3)
        self.pass_to(MINUTE_S)
        self.clear_sent()
        self.made(self.mine, MINUTE_S)
        self.pass_ms(20)
        self.assertEqual((0, []), (len(self.node.jobs), self.sent_names(B)))
        self.assertFalse(self.node.waiters.copies)

    def delete_under_way(self) -> Job:
        """A schedule is deleted while the job of its occurrence waits for its copies."""
        self.set(name=self.mine, replicate=2)
        self.pass_to(MINUTE_S)
        job = next(iter(self.node.waiters.copies.values())).job
        self.delete()
        return job

    def delete(self) -> None:
        """The schedule is deleted."""
        table, wall_s = self.node.timetable, self.wall_us // 1_000_000
        table.apply(table.plan_del(self.mine, self.node.id, wall_s), wall_s)

    def confirm(self, job: Job) -> None:
        """The job has its copies."""
        self.receive_signal(B if B in job.nodes else C, GOTJOB, job.id)
        self.pass_ms(20)

    def test_deleted_under_way(self) -> None:
        """The job of a schedule that is deleted while it gets its copies is delivered, and nothing
        is noted of an occurrence that no schedule has any more."""
        self.confirm(self.delete_under_way())
        self.assertEqual(1, self.length())
        self.assertEqual([], [one for one in self.node.timetable.registers.all() if one.value])

    def test_replaced_under_way(self) -> None:
        """A schedule that takes the place of another one whose job gets its copies has no
        occurrence yet."""
        job = self.delete_under_way()
        self.set(b"EVERY 100", name=self.mine)
        self.confirm(job)
        self.assertEqual((1, 0), (self.length(), self.last_s(self.mine)))

    def test_many_changes(self) -> None:
        """A schedule that was deleted makes nothing, also when more have changed than are taken up
        in a turn."""
        self.set(name=self.mine, replicate=1)
        self.pass_ms(20)
        table, wall_s = self.node.timetable, self.wall_us // 1_000_000
        for number in range(10 * PER_TURN):
            self.set(b"never", name=b"other%d" % number)
        table.apply(table.plan_del(self.mine, self.node.id, wall_s), wall_s)
        self.pass_to(MINUTE_S)
        self.assertEqual(0, self.length())

    def test_same_job(self) -> None:
        """A node that has a copy of the job that another one made of an occurrence adds no second
        one."""
        self.set(name=self.mine, replicate=2)
        self.pass_to(MINUTE_S)
        copies = [one for peer in (B, C) for one in self.sent_to(peer)]
        (job_id,) = {job.id for one in copies if isinstance(one, JobsMessage) for job in one.jobs}
        self.assertEqual(self.node.id[:8], job_id[2:10])
        (job,) = self.node.jobs.table.values()
        self.assertEqual(job_id, job.id)
        table = self.node.timetable
        definition = [one for one in table.registers.all() if one.name != LAST]
        table.clear()
        self.pass_ms(20)
        table.load(definition, 1, UNIX_S)
        self.pass_seconds(1)
        self.assertEqual(1, len(self.node.jobs))

"""SCHEDULE at a single node; the exact replies are in ``tests/vectors/own/schedules.json``."""

from __future__ import annotations

import time

from disque_tx.commands.base.values import Error, Value, ValueReplies
from disque_tx.commands.server.cluster import cluster
from disque_tx.commands.server.info import info
from disque_tx.commands.tables.schedulelists import AT_ONCE
from disque_tx.commands.tables.schedules import schedule
from disque_tx.core.base.client import BLOCKED_TASK, NOT_BLOCKED
from disque_tx.core.tables.registers import COUNTER_MAX
from disque_tx.engine.calendar import CronCalendar
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import ALL_FEATURES, CAN_SETTLE
from disque_tx.messages.nodes import Link, NodeEntry
from tests.commands.desk import NOW_MS, OK, UNIX_S, DeskCase
from tests.core.peerbench import SentMessages


class ScheduleCase(DeskCase):
    """A node that reads cron expressions."""

    def setUp(self) -> None:
        super().setUp()
        self.node.recurring.calendar = CronCalendar()
        self.node.recurring.begin()

    def schedule(self, *words: bytes) -> Value:
        """The reply to SCHEDULE."""
        return self.call(schedule, b"SCHEDULE", *words)

    def set(self, name: bytes = b"s", when: tuple[bytes, ...] = (b"EVERY", b"10")) -> Value:
        """SCHEDULE SET."""
        return self.schedule(b"SET", name, *when, b"QUEUE", b"q", b"body")

    def shown(self, name: bytes = b"s") -> dict[bytes, Value]:
        """SCHEDULE GET."""
        found = self.schedule(b"GET", name)
        assert isinstance(found, dict)
        return {key: value for key, value in found.items() if isinstance(key, bytes)}


class ScheduleTests(ScheduleCase):
    """SCHEDULE."""

    def test_saved_before_answer(self) -> None:
        """A change is saved before the client is told that it is made; what changes nothing is not
        written."""
        self.assertEqual(OK, self.set())
        self.assertEqual(OK, self.set())
        self.assertEqual(["save schedules"], self.control.performed)
        self.assertEqual(1, self.schedule(b"PAUSE", b"s"))
        self.assertEqual(0, self.schedule(b"DEL", b"x"))
        self.assertEqual(2, len(self.control.performed))

    def test_number_of_words(self) -> None:
        """Each of these takes a name and nothing else, or no name: another number of words is
        refused, and changes nothing."""
        self.set()
        for word in (b"GET", b"PAUSE", b"RESUME", b"SKIP", b"RUN", b"DEL"):
            for names in ((), (b"s", b"x")):
                self.assertIsInstance(self.schedule(word, *names), Error, word)
        for word in (b"LIST", b"REPAIR"):
            self.assertIsInstance(self.schedule(word, b"s"), Error, word)
            self.assertNotIsInstance(self.schedule(word), Error)
        for word in (b"GET", b"PAUSE", b"RESUME", b"SKIP", b"RUN", b"DEL"):
            self.assertNotIsInstance(self.schedule(word, b"s"), Error)

    def test_paused_and_resumed(self) -> None:
        """PAUSE and RESUME say whether they changed anything, and SCHEDULE shows it."""
        self.set()
        self.assertEqual([1, 0], [self.schedule(b"PAUSE", b"s") for _ in range(2)])
        self.assertEqual((b"paused", []), (self.shown()[b"state"], self.shown()[b"next"]))
        self.assertEqual([1, 0], [self.schedule(b"RESUME", b"s") for _ in range(2)])
        self.assertEqual((b"on", 5), (self.shown()[b"state"], len(self.shown()[b"next"])))  # type: ignore[arg-type]

    def test_options(self) -> None:
        """Options of the job follow its body."""
        words = (b"s", b"EVERY", b"10", b"QUEUE", b"q", b"body", b"RETRY", b"7", b"TTL", b"600")
        self.assertEqual(OK, self.schedule(b"SET", *words))
        self.assertEqual([b"TTL", b"600", b"RETRY", b"7"], self.shown()[b"options"])
        self.assertIsInstance(self.schedule(b"SET", *words[:6], b"MAYBE"), Error)

    def test_zone(self) -> None:
        """The zone of a cron expression is kept and used, beside other words; without one it is
        UTC."""
        shortest = (b"SET", b"s", b"@daily", b"QUEUE", b"q", b"body")
        self.assertEqual(OK, self.schedule(*shortest))
        in_utc = self.shown()
        self.assertEqual(OK, self.set(when=(b"@daily", b"TZ", b"Asia/Tokyo", b"MISSED", b"one")))
        in_tokyo = self.shown()
        self.assertEqual((b"UTC", b"Asia/Tokyo"), (in_utc[b"zone"], in_tokyo[b"zone"]))
        self.assertEqual(b"one", in_tokyo[b"missed"])
        firsts = [shown[b"next"][0] for shown in (in_utc, in_tokyo)]  # type: ignore[index]
        hours = [time.gmtime(first).tm_hour for first in firsts]  # type: ignore[arg-type]
        self.assertEqual([0, 15], hours)

    def test_skip(self) -> None:
        """What is left out is said, saved before that, and no longer among the next times; a
        schedule that is paused has nothing to leave out."""
        self.set()
        times = self.shown()[b"next"]
        assert isinstance(times, list)
        self.assertEqual(times[0], self.schedule(b"SKIP", b"s"))
        self.assertEqual(times[1], self.schedule(b"SKIP", b"s"))
        self.assertEqual(3, len(self.control.performed))
        after = self.shown()[b"next"]
        assert isinstance(after, list)
        self.assertEqual(times[2:], after[:3])
        self.schedule(b"PAUSE", b"s")
        refused = self.schedule(b"SKIP", b"s")
        assert isinstance(refused, Error)
        self.assertIn(b"no occurrence that could be left out", refused.line)
        self.schedule(b"RESUME", b"s")
        self.assertEqual(0, self.node.timetable.skipped_s(b"s"))

    def test_skip_with_older_nodes(self) -> None:
        """Nobody is told that an occurrence is left out which a node of an earlier version would
        make; an original makes none."""
        self.set()
        entry = NodeEntry(b"b" * 40, b"10.0.0.2", 7711, 0, NOW_MS)
        entry.link = Link(SentMessages(), entry, entry.ip, b"10.0.0.1", NOW_MS, 1)
        self.node.membership.add(entry)
        self.node.membership.refresh()
        entry.link.features = ALL_FEATURES & ~CAN_SETTLE
        refused = self.schedule(b"SKIP", b"s")
        assert isinstance(refused, Error)
        self.assertIn(b"earlier version", refused.line)
        self.assertEqual(0, self.node.timetable.skipped_s(b"s"))
        for features in (0, ALL_FEATURES):
            entry.link.features = features
            self.assertIsInstance(self.schedule(b"SKIP", b"s"), int)

    def test_long_list(self) -> None:
        """A list of many schedules is made in slices, between which the node serves others; it has
        all of them, in order, without those that are deleted meanwhile."""
        for number in range(3 * AT_ONCE):
            self.set(b"%04d" % number)
        self.assertEqual([], self.answers(schedule, b"SCHEDULE", b"LIST"))
        self.assertEqual(BLOCKED_TASK, self.client.blocked)
        self.node.timetable.apply(self.node.timetable.plan_del(b"0149", self.node.id, UNIX_S), 1)
        turns = 0
        while self.client.blocked != NOT_BLOCKED:
            self.node.run_due()
            turns += 1
        self.assertEqual(2, turns)
        replies = self.client.replies
        assert isinstance(replies, ValueReplies)
        (listed,) = replies.values
        assert isinstance(listed, list)
        names = [row[b"name"] for row in listed if isinstance(row, dict)]
        self.assertEqual([b"%04d" % number for number in range(149)], names)

    def test_long_list_unwanted(self) -> None:
        """A client that is gone meanwhile gets nothing, and another request of it is answered by
        its own reply."""
        for number in range(3 * AT_ONCE):
            self.set(b"%04d" % number)
        self.assertEqual([], self.answers(schedule, b"SCHEDULE", b"LIST"))
        self.node.waiters.leave(self.client)
        self.node.run_due()
        self.node.run_due()
        replies = self.client.replies
        assert isinstance(replies, ValueReplies)
        self.assertEqual(([], False), (replies.values, self.node.state.slices.busy()))

    def test_repair(self) -> None:
        """The table of schedules is repaired as that of policies is."""
        self.set()
        self.node.timetable.registers.begin(0, COUNTER_MAX)
        self.assertIsInstance(self.set(b"other"), Error)
        self.assertEqual(1, self.schedule(b"REPAIR"))
        self.assertEqual(OK, self.set(b"other"))
        self.assertEqual([b"other", b"s"], self.node.timetable.names())
        self.assertEqual(["save schedules"] * 3, self.control.performed)

    def test_not_saved(self) -> None:
        """A change that cannot be saved is refused with the reason, and not in force."""
        self.set()
        self.control.refusal = CommandError("ERR", "The schedules can't be saved: full")
        for words in ([b"PAUSE", b"s"], [b"DEL", b"s"]):
            line = b"ERR The schedules can't be saved: full"
            self.assert_refused(line, schedule, b"SCHEDULE", *words)
        self.assertIsInstance(self.set(b"other"), Error)
        self.assertEqual(b"on", self.shown()[b"state"])
        self.assertEqual([b"s"], self.node.timetable.names())

    def test_standing_aside(self) -> None:
        """Of two processes with one node ID only one changes schedules: their changes could not be
        told apart."""
        self.membership.identity.suspended = True
        answer = self.set()
        assert isinstance(answer, Error)
        self.assertIn(b"LEAVING Another process", answer.line)

    def test_times(self) -> None:
        """The times shown are those at which jobs will be made."""
        self.set()
        times = [UNIX_S + number for number in (10, 20, 30, 40, 50)]
        self.assertEqual((0, times), (self.shown()[b"last"], self.shown()[b"next"]))
        self.node.begin(NOW_MS + 12_000, (UNIX_S + 12) * 1_000_000)
        self.node.run_due()
        self.assertEqual(UNIX_S + 10, self.shown()[b"last"])
        self.assertEqual(times[1:], self.shown()[b"next"][:4])  # type: ignore[index]
        self.assertEqual(self.node.id, self.shown()[b"node"])

    def test_error_shown(self) -> None:
        """An operator sees why no jobs come."""
        self.set()
        self.node.pause(b"q", 1)
        self.node.begin(NOW_MS + 12_000, (UNIX_S + 12) * 1_000_000)
        self.node.run_due()
        self.assertEqual(b"PAUSED Queue paused in input, try later", self.shown()[b"error"])

    def test_out_of_memory(self) -> None:
        """A node that refuses ADDJOB adds no job by hand either; schedules can still be changed."""
        self.set()
        self.assertNotIsInstance(self.schedule(b"RUN", b"s"), Error)
        self.node.memory.limit = self.node.memory.used
        line = b"OOM command not allowed when used memory > 'maxmemory'."
        self.assert_refused(line, schedule, b"SCHEDULE", b"RUN", b"s")
        self.assertEqual(1, self.schedule(b"PAUSE", b"s"))

    def test_reset(self) -> None:
        """A node that is reset takes none of its schedules to the cluster that it joins next."""
        self.set()
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"RESET"))
        self.assertEqual([], self.schedule(b"LIST"))
        self.assertEqual(["save schedules"] * 2, self.control.performed)

    def test_info(self) -> None:
        """Monitoring sees how many jobs were made, and whether all nodes have the same table."""
        self.set()
        self.node.begin(NOW_MS + 12_000, (UNIX_S + 12) * 1_000_000)
        self.node.run_due()
        text = self.call(info, b"INFO", b"schedules")
        assert isinstance(text, bytes)
        fields = dict(line.split(b":") for line in text.split(b"\r\n")[1:-1])
        found = [fields[name] for name in (b"schedules", b"schedules_made", b"schedules_failed")]
        self.assertEqual([b"1", b"1", b"0"], found)
        digest = b"%016x" % self.node.timetable.registers.digest
        self.assertEqual(digest, fields[b"schedules_digest"])

    def test_long_words(self) -> None:
        """A megabyte of anything is refused with a short error."""
        long = b"*" * 1_000_000
        for answer in (
            self.set(long),
            self.set(when=(long,)),
            self.set(when=(b"@daily", b"TZ", long)),
            self.set(when=(b"@daily", b"MISSED", long)),
            self.set(when=(b"EVERY", long)),
        ):
            assert isinstance(answer, Error)
            self.assertLess(len(answer.line), 200)

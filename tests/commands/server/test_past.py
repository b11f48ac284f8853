"""What happened before: actions, notes, and the history of queues."""

from __future__ import annotations

from disque_tx.commands.base.audit import acted
from disque_tx.commands.base.context import Command
from disque_tx.commands.base.control import Control
from disque_tx.commands.base.values import Value
from disque_tx.commands.server.past import (
    actions,
    actions_question,
    events_question,
    history_question,
    troubles_question,
)
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.redelivery.retries import BY_POLICY
from tests.commands.desk import ME, OK, UNIX_S, DeskCase


class ActionsTests(DeskCase):
    """The list of the last actions."""

    def run_command(self, *argv: bytes) -> Value:
        """The reply to a request, by the table of commands."""
        command: Command = self.server.registry.by_name[argv[0]]
        return self.call(command.run, *argv)

    def rows(self, count: int = -1) -> list[list[bytes]]:
        """What ACTIONS shows, without the times."""
        found = self.call(actions, b"actions", b"%d" % count)
        assert isinstance(found, list)
        rows: list[list[bytes]] = []
        for row in found:
            assert isinstance(row, list)
            rows.append([bytes(text) for text in row[1:] if isinstance(text, bytes)])
        return rows

    def test_who_and_what(self) -> None:
        """An operator who finds a queue paused sees who did that, from where, and what was refused
        before."""
        self.client.name = b"ann"
        self.run_command(b"pause", b"q", b"out")
        self.run_command(b"qpolicy", b"set", b"*", b"retry", b"never")
        refused, paused = self.rows()
        self.assertEqual([b"pause", b"127.0.0.1:5001 (ann)", b"PAUSE q out", b""], paused)
        self.assertEqual(b"QPOLICY set * retry never", refused[2])
        self.assertTrue(refused[3].startswith(b"ERR "), refused[3])

    def test_questions_are_none(self) -> None:
        """What changes nothing is no action: it would hide those that matter."""
        self.run_command(b"pause", b"q", b"state")
        self.run_command(b"config", b"get", b"hz")
        self.assertEqual([], self.rows())

    def test_no_passwords(self) -> None:
        """Whoever may read the list learns no password from it."""
        self.run_command(b"config", b"set", b"requirepass", b"secret")
        self.assertNotIn(b"secret", b" ".join(self.rows()[0]))

    def test_note(self) -> None:
        """A note stands among the actions with its time; a long one is refused, so that it is not
        cut unnoticed."""
        self.assertEqual(OK, self.run_command(b"note", b"deployed", b"4711"))
        found = self.call(actions, b"actions")
        assert isinstance(found, list)
        (row,) = found
        assert isinstance(row, list)
        self.assertEqual([UNIX_S * 1000 + 183, b"note"], row[:2])
        self.assertEqual(b"NOTE deployed 4711", row[3])
        self.assert_refused(
            b"ERR A note has at most 200 bytes", self.server.registry.by_name[b"note"].handler,
            b"note", b"x" * 100, b"y" * 100,
        )  # fmt: skip

    def test_how_many(self) -> None:
        """What ends jobs says how many, once that is known; parts of one long action are one."""
        for _ in range(3):
            self.node.add_job(self.client, AddRequest(b"q", b"x"))
        self.run_flush()
        acted(self.server, self.client, [b"REQUEUE", b"mail"], 500)
        acted(self.server, self.client, [b"REQUEUE", b"mail"], 20)
        acted(self.server, self.client, [b"REQUEUE", b"other"], 1)
        found = self.call(actions, b"actions")
        assert isinstance(found, list)
        rows = [(row[3], row[5]) for row in found if isinstance(row, list)]
        shown = [(b"REQUEUE other", 1), (b"REQUEUE mail", 520), (b"QFLUSH q", 3)]
        self.assertEqual(shown, rows)

    def test_told(self) -> None:
        """A program that has put dead letters back by many commands says so once, with their
        number; it cannot claim actions that the node sees for itself."""
        self.client.name = b"ann"
        words = (b"actions", b"ADD", b"12", b"requeue", b"dead letters", b"ALL")
        self.assertEqual(OK, self.run_command(*words))
        (row,) = self.rows()
        shown = [b"requeue", b"127.0.0.1:5001 (ann)", b'REQUEUE "dead letters" ALL', b""]
        self.assertEqual(shown, row)
        for odd in ((b"12", b"config", b"x"), (b"0", b"drop", b"x"), (b"-1", b"drop", b"x")):
            self.assert_refused(b"ERR syntax error", actions, b"actions", b"add", *odd)
        self.assertEqual(1, len(self.rows()))

    def test_told_worker(self) -> None:
        """Who has told a worker something by a job has done nothing to jobs that could be
        counted."""
        words = (b"actions", b"ADD", b"0", b"worker", b"web1:7", b"stop")
        self.assertEqual(OK, self.run_command(*words))
        found = self.call(actions, b"ACTIONS")
        assert isinstance(found, list)
        (row,) = found
        assert isinstance(row, list)
        self.assertEqual((b"WORKER web1:7 stop", -1), (row[3], row[5]))
        odd = (b"1", b"worker", b"web1:7", b"stop")
        self.assert_refused(b"ERR syntax error", actions, b"actions", b"add", *odd)

    def run_flush(self) -> None:
        """QFLUSH, to its end."""
        self.server.registry.by_name[b"qflush"].run(self.server, self.client, [b"qflush", b"q"])
        while self.client.blocked:
            self.node.run_due()

    def test_pages(self) -> None:
        """Other nodes read the list a page at a time."""
        for number in range(5):
            self.run_command(b"note", b"%d" % number)
        page = self.call(actions_question, b"ACTIONS", b"1", b"2")
        assert isinstance(page, list)
        found = [row[3] for row in page if isinstance(row, list)]
        self.assertEqual([b"NOTE 3", b"NOTE 2"], found)
        page = self.call(actions_question, b"ACTIONS", b"0", b"500")
        assert isinstance(page, list)
        self.assertEqual(5, len(page))
        self.assert_refused(b"ERR syntax error", actions_question, b"ACTIONS", b"0", b"501")
        self.assert_refused(b"ERR syntax error", actions_question, b"ACTIONS", b"-1", b"1")


class LoggedControl(Control):
    """A process with an event log."""

    def job_events(self, job_id: bytes, number: int) -> tuple[int, bool, list[bytes]] | None:
        return (0, True, [b'{"kind":"acked"}']) if number else (7, False, [])


class EventsTests(DeskCase):
    """What happened to a job, for other nodes."""

    ID = b"D-%s-%024d-05a1" % (ME[:8], 1)

    def test_parts(self) -> None:
        """A part says how to go on, and the last one whether there are others."""
        self.server.control = LoggedControl()
        part = self.call(events_question, b"EVENTS", self.ID, b"0")
        self.assertEqual([1, 7, 0, []], part)
        part = self.call(events_question, b"EVENTS", self.ID, b"7")
        self.assertEqual([1, 0, 1, [b'{"kind":"acked"}']], part)

    def test_off(self) -> None:
        """Without the log there is nothing, and that is said."""
        self.assertEqual([0, 0, 0, []], self.call(events_question, b"EVENTS", self.ID, b"0"))

    def test_nonsense(self) -> None:
        """What is no job and no number is refused."""
        self.assert_refused(b"BADID Invalid Job ID format.", events_question, b"EVENTS", b"D", b"0")
        self.assert_refused(b"ERR syntax error", events_question, b"EVENTS", self.ID, b"-1")


class HistoryTests(DeskCase):
    """The question of other nodes."""

    def test_rows(self) -> None:
        """Each step has its numbers; a queue of which nothing is known has none."""
        history = self.node.state.history
        history.node.put(100, [3, 0, 0, 0], [3, 0, 5_000, 700])
        row = b"100 3 0 0 0 3 0 5000 0 0 700"
        self.assertEqual([row], self.call(history_question, b"HISTORY", b"10", b"90", b"100"))
        self.assertEqual([], self.call(history_question, b"HISTORY", b"10", b"90", b"99"))
        self.assertEqual([], self.call(history_question, b"HISTORY", b"10", b"0", b"9", b"q"))

    def test_refused(self) -> None:
        """A question costs its node little: it is about 500 steps at most, of a ring that there
        is."""
        for words in (
            (b"10", b"0", b"500"), (b"11", b"0", b"1"), (b"10", b"-1", b"1"), (b"10", b"2", b"1"),
            (b"10", b"x", b"1"),
        ):  # fmt: skip
            self.assert_refused(b"ERR syntax error", history_question, b"HISTORY", *words)
        self.assertEqual([], self.call(history_question, b"HISTORY", b"10", b"0", b"499"))


class TroublesTests(DeskCase):
    """The question of other nodes which queues have trouble."""

    def fail_delivery(self, queue: bytes, reason: bytes) -> bytes:
        """A delivery of a new job fails; its ID."""
        self.node.add_job(self.client, AddRequest(queue, b"x"))
        client = self.connect(b"127.0.0.1:5002")
        self.node.get_jobs(client, [queue], 1, 0, True, True)
        (job,) = [job for job in self.node.jobs.table.values() if job.queue == queue]
        self.node.enqueue([job.id], True, BY_POLICY, reason)
        return job.id

    def test_rows(self) -> None:
        """A row has the name of the queue, how often jobs failed and how often without a word,
        since when in unix milliseconds, the reason, the job and its attempts, and the client."""
        first = self.fail_delivery(b"a", b"no such table")
        second = self.fail_delivery(b"b", b"")
        self.node.state.troubles.given_back(b"a", b"ann")
        since_ms = UNIX_S * 1000 + 183
        rows = {
            b"a": [b"a", 1, 0, since_ms, b"no such table", first, 1, b"ann"],
            b"b": [b"b", 1, 0, since_ms, b"", second, 1, b""],
        }
        found = self.call(troubles_question, b"TROUBLES", b"5")
        assert isinstance(found, list)
        self.assertEqual(rows, {row[0]: row for row in found if isinstance(row, list)})
        found = self.call(troubles_question, b"TROUBLES", b"1")
        assert isinstance(found, list)
        self.assertEqual(1, len(found))

    def test_refused(self) -> None:
        """A question costs its node little."""
        self.assertEqual([], self.call(troubles_question, b"TROUBLES", b"500"))
        for count in (b"0", b"-1", b"501"):
            self.assert_refused(b"ERR syntax error", troubles_question, b"TROUBLES", count)

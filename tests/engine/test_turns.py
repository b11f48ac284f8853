"""The order in which the effects of a turn leave, and what a fault in one of them costs."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.commands.base.context import Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.client import Client
from disque_tx.engine.turns import Clients, CommittedLog, OutgoingLinks, Turns
from disque_tx.errors import LocalError
from disque_tx.messages.demands import DemandEntry, DemandMessage
from disque_tx.messages.events import EventSink
from tests.commands.desk import NOW_MS, UNIX_S, DeskCase
from tests.core.peerbench import B, PeerCase


class Steps:
    """What is done, in order. ``faults``: what a step raises. ``meanwhile``: what happens within
    one. ``why``: why the log is incomplete. ``waits``: input waits for another turn. ``work``:
    connections changed."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.faults: dict[str, Exception] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.why = ""
        self.waits = self.work = False

    def take(self, step: str) -> None:
        """Take a step."""
        self.taken.append(step)
        self.meanwhile.get(step, bool)()
        if step in self.faults:
            raise self.faults[step]

    def save_nodes(self) -> None:
        """The node table is written."""
        self.take("save nodes")

    def turn_ended(self) -> None:
        """The events are written."""
        self.take("events")


class Log(CommittedLog):
    """The log of the jobs."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.is_open = True

    def commit(self) -> str:
        self._steps.take("commit")
        return self._steps.why


class Replies(Clients):
    """The clients."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def resume(self, clients: list[Client]) -> None:
        self._steps.take(f"resume {[client.id for client in clients]}")

    def flush(self, clients: list[Client]) -> bool:
        for client in clients:
            client.touched = False
        self._steps.take(f"reply {[client.id for client in clients]}")
        return self._steps.waits


class Messages(OutgoingLinks):
    """The links."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def flush(self) -> None:
        self._steps.take("send")

    def perform(self) -> bool:
        self._steps.take("connect")
        return self._steps.work


class TurnsTests(DeskCase):
    """One node whose effects are seen in order."""

    def setUp(self) -> None:
        super().setUp()
        self.steps = Steps()
        self.log = Log(self.steps)
        self.reported: list[str] = []
        self.died: list[Exception] = []
        self.now_ms, self.wall_us = NOW_MS, UNIX_S * 1_000_000
        self.turns = Turns(
            self.server,
            Dispatcher(self.server, standard_registry(), lambda: 0),
            Replies(self.steps),
            steady_ms=lambda: self.now_ms,
            wall_us=lambda: self.wall_us,
            fatal=self.died.append,
            report=lambda what, error: self.reported.append(f"{what}: {error}"),
        )
        steps = self.steps
        self.turns.connect(self.log, steps.save_nodes, Messages(steps), steps)
        self.node.outbox.events = EventSink()
        self.node.membership.changed = True
        self.steps.meanwhile["save nodes"] = self.node.membership.saved

    def ended(self) -> tuple[bool, list[str]]:
        """Whether another turn should follow this one, and its steps."""
        self.turns.begin()
        self.node.outbox.touch(self.client)
        more = self.turns.end()
        taken, self.steps.taken = self.steps.taken, []
        return more, taken

    def test_order(self) -> None:
        """The log and the node table are written before messages, these leave before replies, and
        connections change at the end; what did not change is not written."""
        effects = ["send", f"reply [{self.client.id}]", "connect", "events"]
        self.assertEqual((False, ["commit", "save nodes", *effects]), self.ended())
        self.assertEqual((False, ["commit", *effects]), self.ended())
        self.log.is_open = False
        self.node.outbox.log = None
        self.assertEqual((False, effects), self.ended())

    def test_resumed(self) -> None:
        """Input of clients that a turn unblocks belongs to it, also that of clients which such
        input unblocks."""
        first, second = self.connect(b"1"), self.connect(b"2")
        self.steps.meanwhile[f"resume [{first.id}]"] = lambda: self.node.outbox.resumed.append(
            second
        )
        self.node.outbox.resumed.append(first)
        _, taken = self.ended()
        self.assertEqual([f"resume [{first.id}]", f"resume [{second.id}]", "commit"], taken[:3])
        self.assertEqual([], self.node.outbox.resumed)

    def test_another(self) -> None:
        """Another turn follows when input waits, when connections changed, or when that left
        something for a client, and else none."""
        self.assertFalse(self.ended()[0])
        self.steps.waits = True
        self.assertTrue(self.ended()[0])
        self.steps.waits, self.steps.work = False, True
        self.assertTrue(self.ended()[0])
        self.steps.work = False
        self.assertFalse(self.ended()[0])
        self.steps.meanwhile["connect"] = lambda: self.node.outbox.touch(self.client)
        self.assertTrue(self.ended()[0])

    def test_clocks(self) -> None:
        """Each turn reads the clocks once, at its beginning."""
        self.now_ms += 70
        self.wall_us += 70_000
        self.turns.begin()
        self.now_ms += 1
        seen = (self.node.now_ms, self.node.wall_us)
        self.assertEqual((NOW_MS + 70, UNIX_S * 1_000_000 + 70_000), seen)
        self.assertTrue(self.turns.active)
        self.turns.end()
        self.assertFalse(self.turns.active)

    def test_incomplete(self) -> None:
        """A log that lacks records makes the node refuse requests from the next one on."""
        self.assertFalse(self.server.degraded)
        self.steps.why = "full"
        self.ended()
        self.assertTrue(self.server.degraded)

    def test_sending_fails(self) -> None:
        """A fault while effects are sent is reported with what it met, and the others leave."""
        for step in ("send", "connect", "events"):
            self.steps.faults[step] = RuntimeError(step)
        _, taken = self.ended()
        reply = f"reply [{self.client.id}]"
        self.assertEqual(["commit", "save nodes", "send", reply, "connect", "events"], taken)
        self.assertEqual(
            [
                "Messages to other nodes could not be sent: send",
                "Connections to other nodes could not be made or closed: connect",
                "Events could not be logged: events",
            ],
            self.reported,
        )
        self.assertEqual(([], False, False), (self.died, self.turns.failed, self.turns.active))

    def test_writing_fails(self) -> None:
        """After a fault while the log or the node table is written nothing leaves any more, and the
        process ends once; a fault that the log has reported is not reported again."""
        for step, error, died in (
            ("commit", RuntimeError("fault"), 1),
            ("save nodes", RuntimeError("fault"), 1),
            ("commit", LocalError("the disk"), 0),
        ):
            self.setUp()
            self.steps.faults[step] = error
            self.turns.begin()
            self.assertIs(error, self.assertRaises(type(error), self.turns.end))
            self.assertEqual(step, self.steps.taken[-1])
            self.assertEqual([error] * died, self.died)
            self.steps.taken.clear()
            self.assertEqual((False, []), self.ended())
            self.assertEqual((True, False), (self.turns.failed, self.turns.active))

    def test_alone(self) -> None:
        """A node without a log, links and events answers its clients all the same."""
        self.turns.log = self.turns.links = self.turns.eventlog = None
        expected = ["save nodes", f"reply [{self.client.id}]"]
        self.assertEqual((False, expected), self.ended())

    def test_due(self) -> None:
        """The earliest deadline counts, whichever part has it; parts without one do not, and
        without any there is none."""
        node_ms = int(self.node.next_due_ms())
        for deadlines, expected in (
            ([], node_ms),
            ([-1], node_ms),
            ([-1, 700, 300, 500, -1], 300),
            ([0], 0),
        ):
            self.turns.deadlines = [Due(due_ms) for due_ms in deadlines]
            self.assertEqual(expected, self.turns.next_due_ms(), deadlines)


class Due:
    """A part with one deadline."""

    def __init__(self, due_ms: int) -> None:
        self._due_ms = due_ms

    def next_due_ms(self) -> int:
        """When it is."""
        return self._due_ms

    def run_due(self) -> None:
        """Nothing is done then."""


class PeersTests(PeerCase):
    """A turn of a node that has others beside it."""

    def test_given(self) -> None:
        """A job that another node wants is given to it when the turn ends in which it was added,
        not in the middle, where a client of this node may still take it."""
        steps = Steps()
        server = Server(self.node, MemoryControl({}), standard_registry())
        turns = Turns(
            server,
            Dispatcher(server, standard_registry(), lambda: 0),
            Replies(steps),
            steady_ms=lambda: self.now_ms,
            wall_us=lambda: self.wall_us,
            fatal=self.fail,
            report=lambda what, error: self.fail(what),
        )
        turns.begin()
        self.receive(B, DemandMessage([DemandEntry([b"+mail:*"], 9, 9, 0)]))
        turns.end()
        self.clear_sent()
        turns.begin()
        self.add(b"mail:a", replicate=1)
        self.add(b"mail:b", replicate=1)
        self.assertEqual(1, len(self.get(b"mail:b")))
        self.assertEqual([], self.sent_names(B))
        turns.end()
        given = self.sent_jobs(B)
        self.assertEqual([b"mail:a"], [job.queue for job in given.jobs])

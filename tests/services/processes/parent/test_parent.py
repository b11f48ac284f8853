"""The parent of several processes: what it passes on between them."""

from __future__ import annotations

import socket

from disque_tx.services.processes.gathering import ENDED
from disque_tx.services.processes.parent.joining import PATIENCE_S
from tests.services.processes.parent.parentbench import ParentCase


class ParentTests(ParentCase):
    """Three processes, which have started and read their logs when a test says so."""

    def test_all(self) -> None:
        """As many processes run as the configuration says, and the daemon has started when all of
        them listen."""
        self.assertEqual([1, 2, 3], [child.number for child in self.children])
        self.open(1, 2)
        self.assertEqual([], self.started)
        self.open(3)
        self.assertEqual([""], self.started)

    def test_joined(self) -> None:
        """A process tells its clients that it is ready once all serve and it reaches all others,
        and is told so once."""
        self.open(1, 2)
        self.report(1, 2, 3)
        self.assertEqual([], self.children[0].took("joined"))
        self.open(3)
        self.report(3)
        self.report(1, 2)
        self.assertEqual([], self.children[0].took("joined"))
        for number, others in ((1, (2, 3)), (2, (1, 3)), (1, (2, 3))):
            self.report(number, *others)
        counts = [len(child.took("joined")) for child in self.children]
        self.assertEqual([1, 1, 0], counts)
        self.assertFalse(any("All 3 processes serve" in line for line in self.log.lines))
        self.reactor.advance(PATIENCE_S)
        self.report(3)
        self.assertTrue(any("All 3 processes serve" in line for line in self.log.lines))

    def test_questions(self) -> None:
        """One process asks all others, and gets their answers; nobody else does."""
        self.open(1, 2, 3)
        self.children[1].say(["ask", 7, {}])
        asked = [child.took("asked") for child in self.children]
        self.assertEqual([[[2, 7]], [], [[2, 7]]], asked)
        self.children[2].say(["answer", 2, 7, "these"])
        answered = [child.took("answered") for child in self.children]
        self.assertEqual([[], [[ENDED, 7, None], [3, 7, "these"]], []], answered)

    def test_not_taken(self) -> None:
        """A connection that a process did not take before it ended is served by another one."""
        self.open(1, 2, 3)
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        self.children[0].give_back([(["client", 4], its)])
        self.assertEqual(0, self.children[0].sockets)
        taken = [message for child in self.children[1:] for message in child.took("client")]
        self.assertEqual([[4]], taken)

    def test_set(self) -> None:
        """CONFIG SET at one process holds for all, also for those that are started later; only the
        folder of the logs stays for these."""
        self.open(1, 2, 3)
        folder = self.settings.dir
        for name, value in (("MAXCLIENTS", "77"), ("DIR", "/elsewhere")):
            self.children[0].say(["set", name, value])
        expected = [["MAXCLIENTS", "77"], ["DIR", "/elsewhere"]]
        self.assertEqual([expected] * 3, [child.took("set") for child in self.children])
        self.assertEqual((77, folder), (self.settings.maxclients, self.settings.dir))

    def test_refused(self) -> None:
        """A value that cannot be is set nowhere."""
        self.open(1, 2, 3)
        self.children[0].say(["set", "maxclients", "many"])
        self.assertEqual([[]] * 3, [child.took("set") for child in self.children])
        self.assertIn("CONFIG SET maxclients", self.log.lines[-1])

    def test_restarted(self) -> None:
        """A process that ends is started again; what is said to it meanwhile is no error."""
        self.open(1, 2, 3)
        self.children[1].end("signal 9")
        self.children[0].say(["ask", 7, "figures"])
        self.children[0].say(["answer", 2, 7, "these"])
        self.assertEqual([], self.children[1].took("asked"))
        self.reactor.advance(60)
        self.assertEqual([1, 2, 3, 2], [child.number for child in self.children])
        self.assertTrue(any("Process 2 has ended (signal 9)" in line for line in self.log.lines))

    def test_connections_after_a_restart(self) -> None:
        """A process that was started again takes connections when it has joined the others, and not
        before: its clients would miss the jobs of these."""
        self.open(1, 2, 3)
        for number, others in ((1, (2, 3)), (2, (1, 3)), (3, (1, 2))):
            self.report(number, *others)
        self.children[1].end("signal 9")
        self.reactor.advance(60)
        again = self.children[3]
        again.say(["opened", "id2"])
        again.say(["ready"])
        self.pass_on(6)
        self.assertEqual([], again.took("client"))
        figures = {"connected_clients": 0}
        report = {"ip": "", "reached": ["id1", "id3"], "figures": figures, "received": 0, "work": 0}
        again.say(["report", report])
        self.assertEqual([[]], again.took("joined"))
        self.pass_on(2)
        self.assertEqual(2, len(again.took("client")))

    def pass_on(self, count: int) -> None:
        """So many connections are accepted, and given to whoever has the fewest."""
        for _ in range(count):
            mine, its = socket.socketpair()
            self.addCleanup(mine.close)
            self.parent._balance.give(4, its)

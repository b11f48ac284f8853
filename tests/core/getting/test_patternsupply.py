"""Jobs of queues that match go to nodes that have announced a use for them."""

from __future__ import annotations

from disque_tx.core.getting.patternsupply import NEW_AT_ONCE, PATTERNS_MAX
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT
from disque_tx.messages.bus import JobsMessage
from disque_tx.messages.demands import RESET, DemandEntry, DemandMessage
from tests.core.bench import UNIX_S
from tests.core.peerbench import B, C, PeerCase


class PatternSupplyTests(PeerCase):
    """B and C announce what they can use; the node has the jobs."""

    def demand(
        self, *words: bytes, peer: bytes = B, credit: int = 1, age_ms: int = 0, mflags: int = 0
    ) -> None:
        """What a node can use of queues that match, from now on."""
        message = DemandMessage([DemandEntry(list(words), credit, credit, age_ms)])
        message.mflags = mflags
        self.receive(peer, message)
        self.node.serve()
        self.node.finish()

    def added(self, *queues: bytes) -> None:
        """A job in each of these queues, in a turn."""
        for queue in queues:
            self.add(queue, replicate=1)
        self.node.serve()
        self.node.finish()

    def given(self, peer: bytes = B) -> list[bytes]:
        """The queues of the jobs that a node got since the last look."""
        sent = [one for one in self.sent_to(peer) if isinstance(one, JobsMessage)]
        return [job.queue for message in sent for job in message.jobs]

    def pass_turns(self, count: int) -> None:
        """So many milliseconds pass, each with a turn."""
        for _ in range(count):
            self.begin(self.now_ms + 1, self.wall_us + 1_000)
            self.node.run_due()
            self.node.serve()
            self.node.finish()

    def test_matching(self) -> None:
        """A node gets as many jobs as it can use, of queues that match and are not excepted."""
        self.demand(b"+mail:*", b"-*:x", credit=2)
        self.added(b"sms", b"mail:x", b"mail:a", b"mail:b", b"mail:c")
        self.assertEqual([b"mail:a", b"mail:b"], self.given())
        self.demand(b"+mail:*", b"-*:x", credit=9)
        self.assertEqual([b"mail:c"], self.given())

    def test_there_before(self) -> None:
        """Jobs that lay here before it was announced are given as well."""
        self.added(b"mail:a", b"sms")
        self.demand(b"+mail:*")
        self.assertEqual([b"mail:a"], self.given())

    def test_ended(self) -> None:
        """A demand of none ends it, and one of patterns that are not known is nothing."""
        self.demand(b"+mail:*", credit=5)
        self.demand(b"+mail:*", credit=0)
        self.demand(b"+none:*", credit=0)
        self.demand()
        self.added(b"mail:a")
        self.assertEqual(([], 1), (self.given(), self.length(b"mail:a")))

    def test_others_stay(self) -> None:
        """What one node can use no more, another one still can."""
        self.demand(b"+mail:*", credit=5)
        self.demand(b"+mail:*", credit=5, peer=C)
        self.demand(b"+mail:*", credit=0)
        self.added(b"mail:a")
        self.assertEqual(([], [b"mail:a"]), (self.given(), self.given(C)))

    def test_all_forgotten(self) -> None:
        """A node that begins anew has announced nothing but what it says then."""
        self.demand(b"+mail:*", credit=5)
        self.demand(b"+sms*", credit=5)
        self.demand(b"+other", credit=5, mflags=RESET)
        self.added(b"mail:a", b"sms", b"other")
        self.assertEqual([b"other"], self.given())

    def test_without(self) -> None:
        """Queues that a node must not be given from are offered to others."""
        self.demand(b"+*", b"!mail:a", credit=5)
        self.added(b"mail:a", b"mail:b")
        self.assertEqual([b"mail:b"], self.given())
        self.demand(b"+*", credit=5, peer=C)
        self.assertEqual([b"mail:a"], self.given(C))

    def test_paused(self) -> None:
        """A queue that is paused gives nothing until it goes on."""
        self.node.pause(b"mail:a", PAUSE_OUT, b"")
        self.demand(b"+mail:*", credit=5)
        self.added(b"mail:a", b"mail:b")
        self.assertEqual([b"mail:b"], self.given())
        self.node.pause(b"mail:a", PAUSE_NONE, b"")
        self.pass_turns(1)
        self.assertEqual([b"mail:a"], self.given())

    def test_limited_here(self) -> None:
        """A queue of which clients of this node may get no more is for others all the same: the
        limit of each node is its own."""
        table = self.node.policy_table
        table.apply(table.plan_set(b"mail:*", [(b"concurrency", b"1")], self.node.id), UNIX_S)
        self.added(b"mail:a", b"mail:a", b"mail:b")
        self.get(b"mail:a")
        self.demand(b"+mail:*", b"!mail:b", credit=5)
        self.assertEqual([b"mail:a"], self.given())

    def test_longest_waiting(self) -> None:
        """The node whose client has waited for longest comes first, whoever announced first."""
        self.demand(b"+mail:*", age_ms=1_000)
        self.demand(b"+mail:*", age_ms=5_000, peer=C)
        self.added(b"mail:a")
        self.assertEqual(([], [b"mail:a"]), (self.given(), self.given(C)))

    def test_few_at_a_time(self) -> None:
        """Patterns that are new here are looked for a few at a time of each node; the others wait
        for their turn, in order, and known ones do not."""
        self.added(*[b"q%d" % number for number in range(3 * NEW_AT_ONCE)])
        for number in range(2 * NEW_AT_ONCE + 1):
            self.demand(b"+q%d" % number)
        self.demand(b"+q0*", peer=C)
        first = [b"q%d" % number for number in range(NEW_AT_ONCE)]
        self.assertEqual(first, sorted(self.given()))
        self.pass_turns(1)
        second = [b"q%d" % number for number in range(NEW_AT_ONCE, 2 * NEW_AT_ONCE)]
        self.assertEqual(second, sorted(self.given()))
        self.pass_turns(1)
        self.assertEqual([b"q%d" % (2 * NEW_AT_ONCE)], self.given())
        self.pass_turns(3)
        self.assertEqual([], self.given())

    def test_forgotten_while_they_wait(self) -> None:
        """Patterns that wait are forgotten with the others."""
        for number in range(2 * NEW_AT_ONCE):
            self.demand(b"+q%d" % number)
        self.demand(b"+other", mflags=RESET)
        self.pass_turns(3)
        self.added(*[b"q%d" % number for number in range(2 * NEW_AT_ONCE)])
        self.assertEqual([], self.given())

    def test_bounded(self) -> None:
        """A node may demand jobs with 500 patterns at a time, and with others once some of these
        have ended."""
        for number in range(PATTERNS_MAX + 1):
            self.demand(b"+q%03d*" % number)
            self.pass_turns(1)
        last = b"q%03d" % PATTERNS_MAX
        self.added(last, b"q499")
        self.assertEqual([b"q499"], self.given())
        self.demand(b"+q000*", credit=0)
        self.demand(b"+%s*" % last)
        self.pass_turns(1)
        self.assertEqual([last], self.given())

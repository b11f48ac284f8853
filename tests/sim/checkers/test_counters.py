"""The counters of jobs."""

from __future__ import annotations

from disque_tx.sim.checkers.counters import CountersMatch
from disque_tx.sim.stage.history import ShownCounters
from tests.sim.checkers.bench import HERE, THERE, CheckerCase


class CountersTests(CheckerCase):
    """The counters that clients see."""

    def test_too_many(self) -> None:
        """Without a NACK there is none to count; duplicated messages count twice."""
        self.deliver(1, nacks=1)
        self.assertEqual(1, self.found(CountersMatch()))
        self.fault("message_loss")
        self.assertEqual(0, self.found(CountersMatch()))

    def test_too_few(self) -> None:
        """A second delivery has a reason, a confirmed NACK counts, and no count is lost."""
        self.deliver(1)
        self.deliver(2)
        self.assertEqual(1, self.found(CountersMatch()))
        self.request(b"NACK", 1.5)
        self.assertEqual(2, self.found(CountersMatch()))
        self.history.shown_counters.append(ShownCounters(b"D", HERE, 1_900_000, 1, 0))
        self.assertEqual(3, self.found(CountersMatch()))
        self.fault("kill")
        self.assertEqual(0, self.found(CountersMatch()))

    def test_forgotten(self) -> None:
        """A count may be less only at a node that a client had forget the job in between."""
        shown = self.history.shown_counters
        shown.append(ShownCounters(b"D", HERE, 1_000_000, 0, 2))
        shown.append(ShownCounters(b"D", HERE, 3_000_000, 0, 1))
        self.assertEqual(1, self.found(CountersMatch()))
        self.request(b"DELJOB", 0.5)
        self.request(b"DELJOB", 3.5)
        self.request(b"DELJOB", 2, node=THERE)
        self.assertEqual(1, self.found(CountersMatch()))
        self.request(b"DELJOB", 2)
        self.assertEqual(0, self.found(CountersMatch()))

    def test_moved(self) -> None:
        """A RETRY that was over at two holders counts once, and the second copy may come to the
        node that delivered the first one; what was not counted at all is no excuse."""
        for at_s in (1, 2, 3):
            self.deliver_again(at_s, 1)
        self.assertEqual(1, self.found(CountersMatch()))
        self.run_.transfers.sent[b"D"] = [(2_500_000, THERE)]
        self.assertEqual(0, self.found(CountersMatch()))
        self.history.delivered.clear()
        self.deliver(1)
        self.deliver(3)
        self.assertEqual(1, self.found(CountersMatch()))

    def test_same_moment(self) -> None:
        """A RETRY that is over at two holders in the same moment counts once; a NACK in between
        counts all the same."""
        self.deliver(1)
        self.deliver(1.2)
        self.assertEqual(0, self.found(CountersMatch()))
        self.deliver(2.5)
        self.assertEqual(1, self.found(CountersMatch()))
        self.request(b"NACK", 1.1)
        self.assertEqual(4, self.found(CountersMatch()))

"""What a node makes of what others let it know of keys."""

from __future__ import annotations

from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.messages.keys import BUSY, ENDED, FREE, FULL, GRANTED, HELD, RESERVED, TAKEN
from disque_tx.messages.records import KeyEntry
from tests.core.unique.keybench import A, B, C, KeyCase


class KeeperCase(KeyCase):
    """A gets entries of B and C, about jobs of these."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.cluster.up[A]
        self.keeper = self.node.keys._keeper
        self.ids = [self.cluster.ids.next_id(node_id, 3_600, 60) for node_id in (B, C)]

    def entry(self, state: int, job: int = 0, life_ms: int = 10_000, keep_ms: int = 0) -> KeyEntry:
        """The key for one of the two jobs."""
        return KeyEntry(b"k", self.ids[job], state, life_ms, keep_ms, 1_000 + job)

    def merge(self, state: int, job: int = 0, **times: int) -> None:
        """C lets A know of the key."""
        self.keeper.merge(C, self.entry(state, job, **times))

    def found(self) -> Reservation:
        """What A knows of the key."""
        found = self.node.keys.reservations.get(b"k")
        assert found is not None
        return found

    def known(self) -> tuple[int, int] | None:
        """The job that has the key, by its number, and the state."""
        found = self.node.keys.reservations.get(b"k")
        return None if found is None else (self.ids.index(found.job_id), int(found.state))

    def left_ms(self) -> tuple[int, int]:
        """What is left of the life of the job, and of the time for which the key is kept."""
        found, now_ms = self.found(), self.cluster.now_ms
        return int(found.expire_ms) - now_ms, int(found.keep_ms) - now_ms


class ReserveTests(KeeperCase):
    """What A answers a node that asks for a key."""

    def test_answers(self) -> None:
        """A key goes to who asks first, also when it asks again; another one is to ask later while
        the job is being made, and gets its ID once it exists, or is done and the key kept."""
        reserve = self.keeper.reserve
        for _ in range(2):
            self.assertEqual((GRANTED, self.ids[0]), reserve(self.entry(RESERVED)))
        self.assertEqual((BUSY, self.ids[0]), reserve(self.entry(RESERVED, 1)))
        for state in (HELD, ENDED):
            self.merge(state, keep_ms=5_000)
            self.assertEqual((TAKEN, self.ids[0]), reserve(self.entry(RESERVED, 1)))
        self.assertEqual((GRANTED, self.ids[0]), reserve(self.entry(RESERVED)))

    def test_full(self) -> None:
        """A node without memory takes no key in, neither for who asks nor from another node."""
        memory = self.node.memory
        memory.limit, memory.used = 1_000_000, 999_000
        self.assertEqual((FULL, b""), self.keeper.reserve(self.entry(RESERVED)))
        self.merge(HELD)
        self.assertIsNone(self.known())


class MergeTests(KeeperCase):
    """What A learns of keys."""

    def test_made(self) -> None:
        """A key that was reserved is held once its job is made, for the longer time of the two, as
        is that for which it is kept."""
        for times, expected in (
            ((10_000, 5_000, 20_000, 7_000), (20_000, 7_000)),
            ((20_000, 7_000, 10_000, 5_000), (20_000, 7_000)),
            ((20_000, 7_000, 10_000, 0), (20_000, 7_000)),
        ):
            self.setUp()
            life_ms, keep_ms, made_life_ms, made_keep_ms = times
            self.merge(RESERVED, life_ms=life_ms, keep_ms=keep_ms)
            self.merge(HELD, life_ms=made_life_ms, keep_ms=made_keep_ms)
            self.assertEqual((0, HELD), self.known())
            self.assertEqual(expected, self.left_ms(), times)

    def test_everyone_gets_to_know(self) -> None:
        """Once its job is made, every other keeper of a key gets to know, whether it has granted
        the key or not, and so does whoever granted it; each once."""
        others = [node_id for node_id in self.keepers() if node_id != A]
        self.merge(HELD)
        for granted in ([], [A], [B], [B, C]):
            self.cluster.waiting.clear()
            self.keeper.job_made(self.found(), granted)
            self.keeper.copies.send()
            receivers = [way.to for way, _ in self.cluster.waiting]
            self.assertEqual(sorted({*others, *granted} - {A}), sorted(receivers), granted)

    def test_looked_at(self) -> None:
        """A key that another node passed on is looked at a second later, for its job may be done by
        now; one that was reserved here after half a minute, and one that is kept for a while not at
        all."""
        for states, check_ms in (((HELD,), 1_000), ((RESERVED, HELD), 30_000), ((ENDED,), 0)):
            self.setUp()
            for state in states:
                self.merge(state, life_ms=10**6, keep_ms=10**6)
            expected = self.cluster.now_ms + check_ms if check_ms else 0
            self.assertEqual(expected, int(self.found().check_ms), states)

    def test_states_go_on(self) -> None:
        """A message that is late does not set a key back to an earlier state, nor its times."""
        self.merge(HELD)
        self.merge(RESERVED, life_ms=50_000)
        self.assertEqual((0, HELD), self.known())
        self.merge(ENDED, keep_ms=5_000)
        self.merge(HELD, life_ms=50_000, keep_ms=60_000)
        self.assertEqual((0, ENDED), self.known())
        self.assertEqual((10_000, 5_000), self.left_ms())

    def test_free(self) -> None:
        """A key is free when its own job is done, and not when that of another one is."""
        self.merge(HELD)
        self.merge(FREE, 1)
        self.assertEqual((0, HELD), self.known())
        self.merge(FREE)
        self.assertIsNone(self.known())
        self.merge(FREE)
        self.assertIsNone(self.known())

    def test_without_a_key(self) -> None:
        """An entry without a key is about nothing."""
        self.keeper.merge(C, KeyEntry(b"", self.ids[0], HELD, 1_000, 0, 1))
        self.assertEqual(0, len(self.node.keys))

    def test_made_against_reserved(self) -> None:
        """A job that was made has more of a right to a key than one that was not, whichever A knew
        first; of two that were not, the first one has it."""
        for states, expected in (
            ((RESERVED, HELD), (1, HELD)),
            ((HELD, RESERVED), (0, HELD)),
            ((RESERVED, RESERVED), (0, RESERVED)),
        ):
            self.setUp()
            for job, state in enumerate(states):
                self.merge(state, job)
            self.assertEqual(expected, self.known(), states)
            self.assertEqual(0, len(self.node.keys._conflicts))

    def test_two_that_were_made(self) -> None:
        """Of two jobs that were made, the nodes are asked which one exists."""
        self.merge(HELD)
        self.merge(HELD, 1)
        self.assertEqual(((0, HELD), 1), (self.known(), len(self.node.keys._conflicts)))

    def test_two_that_are_done(self) -> None:
        """Of two jobs that are done, the one whose key was reserved first keeps it, whichever A
        knew first."""
        for first, second in ((0, 1), (1, 0)):
            self.setUp()
            self.merge(ENDED, first, keep_ms=5_000)
            self.merge(ENDED, second, keep_ms=5_000)
            self.assertEqual((0, ENDED), self.known())
            self.assertEqual(0, len(self.node.keys._conflicts))


class DoneTests(KeeperCase):
    """A node knows for certain that a job is done."""

    def done(self, state: int = FREE, job: int = 0, key: bytes = b"", keep_ms: int = 0) -> None:
        """It lets A know."""
        self.keeper.merge_done(KeyEntry(key, self.ids[job], state, 0, keep_ms, 1_000 + job))

    def test_free(self) -> None:
        """The key is free, though the message does not name it, and what others say of the job
        later is known to be wrong."""
        self.merge(HELD)
        self.done()
        self.assertIsNone(self.known())
        self.merge(HELD)
        self.assertIsNone(self.known())

    def test_kept(self) -> None:
        """With FOR the key is kept, for the longer of the times that the nodes know."""
        for here_ms, there_ms in ((5_000, 7_000), (7_000, 5_000), (7_000, 0), (0, 7_000)):
            self.setUp()
            self.merge(HELD, keep_ms=here_ms)
            self.done(ENDED, keep_ms=there_ms)
            self.assertEqual((0, ENDED), self.known())
            self.assertEqual(7_000, self.left_ms()[1], here_ms)

    def test_not_known(self) -> None:
        """A key that A did not know is kept from then on, if the message names it and FOR is not
        over; one that another job has is not taken for it."""
        self.done()
        self.assertIsNone(self.known())
        self.done(ENDED, 1, b"k", 5_000)
        self.assertEqual(((1, ENDED), 5_000), (self.known(), self.left_ms()[1]))
        self.setUp()
        self.merge(HELD)
        self.done(ENDED, 1, b"k", 5_000)
        self.assertEqual((0, HELD), self.known())

    def test_late_copy(self) -> None:
        """What another node says of a job that is done counts for what is left of FOR only, and it
        gets to know that."""
        self.done()
        self.cluster.waiting.clear()
        self.merge(HELD, keep_ms=3_000)
        self.assertEqual(((0, ENDED), 3_000), (self.known(), self.left_ms()[1]))
        self.assertEqual([(A, C)], [(way.by, way.to) for way, _ in self.cluster.waiting])

"""More keys than one message holds."""

from __future__ import annotations

from disque_tx.messages.keys import ENDED, ENTRIES_MAX
from disque_tx.messages.records import KeyEntry
from tests.core.unique.keybench import A, B, C, KeyCase

_NAMES = [b"k%d" % number for number in range(3 * ENTRIES_MAX + 5)]


class ManyTests(KeyCase):
    """Three nodes, of which one is away for a while."""

    def add_all(self, at: bytes, **options: int) -> list[bytes]:
        """The IDs of new jobs, one with each key."""
        return [self.add(at, key, **options)[0] for key in _NAMES]

    def acknowledge(self, at: bytes, job_ids: list[bytes]) -> None:
        """Acknowledge jobs at a node."""
        self.cluster.up[at].acknowledge(job_ids)
        self.cluster.up[at].serve()
        self.cluster.settle()

    def test_new_keeper(self) -> None:
        """A node that joins gets every key that it looks after, however many there are: none could
        be taken twice through it."""
        self.cluster.kill(C)
        self.cluster.run(100)
        jobs = dict(zip(_NAMES, self.add_all(A, replicate=1), strict=True))
        node = self.cluster.start(C)
        self.cluster.run(1_000)
        mine = {key: job_id for key, job_id in jobs.items() if C in self.keepers(key)}
        self.assertGreater(len(mine), ENTRIES_MAX)
        known = {key: found.job_id for key, found in node.keys.reservations.by_key.items()}
        self.assertEqual(mine, known)

    def test_done_meanwhile(self) -> None:
        """A node that comes back gets to know every job that is done, and denies no key."""
        first = self.add_all(A, replicate=3, retry_s=300)
        self.cluster.part(C)
        self.cluster.run(100)
        self.acknowledge(A, first)
        self.cluster.run(100)
        self.cluster.heal()
        self.cluster.run(500)
        done = self.cluster.up[C].keys.done_jobs
        self.assertEqual([], [job_id for job_id in first if not done.has(job_id)])

    def test_maker_is_away(self) -> None:
        """All jobs that end in the same moment free their keys while their maker is away."""
        made = self.add_all(C, replicate=2, retry_s=300)
        first = [job_id for job_id in made if self.cluster.up[A].jobs.get(job_id)]
        self.assertGreater(len(first), ENTRIES_MAX)
        self.cluster.part(C)
        self.cluster.run(100)
        self.acknowledge(A, first)
        done = self.cluster.up[B].keys.done_jobs
        self.assertEqual([], [job_id for job_id in first if not done.has(job_id)])

    def test_looked_at(self) -> None:
        """Keys of jobs that no node has are all free after a while, not only the first ones."""
        node = self.cluster.up[A]
        mine = [key for key in _NAMES if A in self.keepers(key)]
        for number, key in enumerate(mine):
            job_id = b"D-cccccccc-%024d-003d" % number
            node.keys._keeper.merge(C, KeyEntry(key, job_id, 2, 10**6, 0, 1))
        self.assertEqual(len(mine), len(node.keys.reservations))
        self.cluster.run(10_000)
        self.assertEqual([], list(node.keys.reservations.by_key))

    def test_two_jobs_for_each_key(self) -> None:
        """After a partition one job for each key is left, for all keys."""
        self.cluster.part(A)
        self.cluster.run(100)
        first = self.add_all(A, replicate=1, retry_s=300)
        self.cluster.run(100)
        second = self.add_all(B, replicate=1, retry_s=300)
        self.cluster.heal()
        self.cluster.run(20_000)
        kept = [job_id for job_id in first if self.cluster.up[A].jobs.get(job_id)]
        self.assertEqual(first, kept)
        self.assertEqual([], [one for one in second if self.cluster.up[B].jobs.get(one)])


class SameMomentTests(KeyCase):
    """Two jobs with one key, added in the same millisecond."""

    def test_one_is_left(self) -> None:
        """All nodes agree on which of the two keeps the key, and one job is left."""
        for number in range(6):
            key = b"k%d" % number
            self.cluster.part(A)
            self.cluster.run(100)
            sides = (A, B) if number % 2 else (B, A)
            jobs = {at: self.add(at, key, replicate=1, retry_s=300)[0] for at in sides}
            born = {int(self.cluster.up[at].keys.reservations.by_key[key].born_ms) for at in sides}
            self.assertEqual(1, len(born))
            self.cluster.heal()
            self.cluster.run(10_000)
            left = [job_id for at, job_id in jobs.items() if self.cluster.up[at].jobs.get(job_id)]
            self.assertEqual([min(jobs.values())], left)
            for at in (A, B, C):
                self.assertEqual((left[0], 0), self.add(at, key))


class EndedTests(KeyCase):
    """Keys that are kept for a while behind the end of their jobs."""

    def test_state_is_passed_on(self) -> None:
        """A node that joins gets them as what they are, and denies them like the others."""
        self.cluster.kill(C)
        self.cluster.run(100)
        jobs = [self.add(A, key, for_s=600, replicate=1)[0] for key in _NAMES[:5]]
        self.cluster.up[A].acknowledge(jobs)
        self.cluster.run(100)
        node = self.cluster.start(C)
        self.cluster.run(1_000)
        states = {int(found.state) for found in node.keys.reservations.by_key.values()}
        self.assertEqual({ENDED}, states)

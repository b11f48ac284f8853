"""QMOVE: jobs change their queue, and are never lost on the way."""

from __future__ import annotations

from disque_tx.commands.base.values import Error
from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.redelivery.moves import SLICE, MoveRequest
from disque_tx.core.redelivery.replacements import GIVE_UP_MS
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import GOTJOB
from disque_tx.messages.records import ACKED
from disque_tx.worker.settling.deadletters import Letter
from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase


def request(source: bytes = b"q", target: bytes = b"r", **options: object) -> MoveRequest:
    """QMOVE with these options."""
    made = MoveRequest(source, target)
    for name, value in options.items():
        setattr(made, name, value)
    return made


class MoveTests(NodeCase):
    """One node, on which nothing has to wait."""

    def move(self, wanted: MoveRequest) -> object:
        """The reply to QMOVE, after as many turns as it takes."""
        client = self.connect()
        self.node.move(client, wanted)
        for _ in range(100):
            if client.blocked == NOT_BLOCKED:
                break
            self.pass_ms(20)
        (value,) = self.replies(client)
        return value

    def test_terms(self) -> None:
        """A moved job keeps body, RETRY and the rest of its TTL; it is not delayed again."""
        job_id = self.add(body=b"x", ttl_s=100, retry_s=7, delay_s=5)
        self.pass_ms(5_000)
        self.assertEqual(1, self.move(request()))
        self.assertIsNone(self.node.jobs.get(job_id))
        (moved_id,) = self.get(b"r")
        moved = self.job(moved_id)
        self.assertEqual((b"x", 7, 0), (moved.body, moved.retry_s, moved.delay_s))
        self.assertEqual(95_000, moved.expire_ms - self.now_ms)
        self.assertEqual(1, self.node.totals.moved)

    def test_long_life(self) -> None:
        """A job that lives for long lives exactly as long after its move."""
        self.add(body=b"x", ttl_s=86_400)
        self.move(request())
        (job,) = self.node.jobs.table.values()
        self.assertEqual(86_400_000, job.expire_ms - self.now_ms)

    def test_slices(self) -> None:
        """A queue of any length is moved, a bounded part of it per turn, in its order."""
        bodies = [b"%05d" % number for number in range(5 * SLICE // 2)]
        for body in bodies:
            self.add(body=body)
        client = self.connect()
        self.node.move(client, request())
        self.assertEqual((SLICE, []), (self.length(b"r"), self.replies(client)))
        self.pass_ms(20)
        self.pass_ms(20)
        self.assertEqual([len(bodies)], self.replies(client))
        self.assertEqual(bodies, [job.body for job in self.node.queues.obtain(b"r", 0).jobs])

    def test_new_jobs(self) -> None:
        """Jobs that come while jobs are moved stay: the request ends."""
        for _ in range(SLICE + 1):
            self.add()
        client = self.connect()
        self.node.move(client, request())
        late = self.add()
        self.pass_ms(20)
        self.assertEqual(([SLICE + 1], [late]), (self.replies(client), self.get(b"q", count=5)))

    def test_client_gone(self) -> None:
        """Without its client a long request stops."""
        for _ in range(3 * SLICE):
            self.add()
        client = self.connect()
        self.node.move(client, request())
        self.node.client_gone(client)
        self.pass_ms(20)
        self.pass_ms(20)
        self.assertEqual((2 * SLICE, SLICE), (self.length(), self.length(b"r")))

    def test_flushed(self) -> None:
        """FLUSHALL ends a request with the number that it had reached."""
        for _ in range(2 * SLICE):
            self.add()
        client = self.connect()
        self.node.move(client, request())
        self.node.flush_all()
        self.assertEqual(([SLICE], NOT_BLOCKED), (self.replies(client), client.blocked))

    def test_by_id(self) -> None:
        """Named jobs are moved from the queue or out of a backoff; those in flight stay."""
        in_flight, waiting, queued = (self.add(retry_s=60) for _ in range(3))
        self.get(b"q", count=2)
        self.node.enqueue([waiting], True, 60_000)
        ids = [in_flight, waiting, queued, b"D-" + b"0" * 38]
        self.assertEqual(2, self.move(request(ids=ids)))
        self.assertEqual((0, 2), (self.node.totals.in_backoff, self.length(b"r")))
        self.assertTrue(self.job(in_flight).in_flight)

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 keeps that, and only the new one can be delivered."""
        self.add(retry_s=0, replicate=1)
        self.assertEqual(1, self.move(request()))
        self.assertEqual(([], 1), (self.get(b"q"), len(self.get(b"r", count=5))))

    def test_paused(self) -> None:
        """What the target refuses stays where it was, and the client learns why."""
        job_id = self.add()
        self.node.pause(b"r", PAUSE_IN)
        with self.assertRaises(CommandError) as caught:
            self.move(request())
        self.assertEqual("PAUSED", caught.exception.code)
        self.assertEqual([job_id], self.get(b"q"))

    def letter(self) -> bytes:
        """A dead letter in the queue ``dead``."""
        terms = (60, 600, 1)
        letter = Letter("q", "D-a", b"body", "r", "", "w", 1, 2, 3.0, (), *terms)
        return self.add(b"dead", letter.encoded())

    def test_letters(self) -> None:
        """Dead letters become the jobs that they are about, in the queue they came from, with
        their whole TTL; what is no letter stays."""
        self.letter()
        other = self.add(b"dead", b"no letter")
        self.letter()
        self.assertEqual(2, self.move(request(b"dead", b"", dead=True)))
        self.assertEqual([other], self.get(b"dead", count=5))
        (moved_id, _) = self.get(b"q", count=5)
        moved = self.job(moved_id)
        self.assertEqual((b"body", 60, 600_000), (moved.body, moved.retry_s, moved.life_ms))

    def test_letters_to_a_queue(self) -> None:
        """Letters can be unwrapped into another queue."""
        self.letter()
        self.assertEqual(1, self.move(request(b"dead", b"r", dead=True)))
        self.assertEqual(1, self.length(b"r"))


class CopiesTests(PeerCase):
    """Moved jobs have copies."""

    def begin_move(self) -> Client:
        """QMOVE of a client that blocks."""
        client = self.connect()
        self.node.move(client, request())
        self.assertEqual([], self.replies(client))
        return client

    def test_copies_first(self) -> None:
        """A job leaves its queue for good when the new one has its copies."""
        job = self.replicated(B)
        client = self.begin_move()
        self.assertEqual((0, True), (self.length(), job.backoff))
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.assertEqual((ACKED, 1), (job.state, self.length(b"r")))
        self.pass_ms(20)
        self.assertEqual([1], self.replies(client))

    def test_no_copies(self) -> None:
        """If there are no copies the job goes back to its queue, and the client learns it."""
        job = self.replicated(B, retry_s=60)
        client = self.begin_move()
        self.pass_slowly(GIVE_UP_MS + 40)
        (value,) = self.replies(client)
        assert isinstance(value, Error)
        self.assertTrue(value.line.startswith(b"NOREPL "), value)
        self.assertEqual([job.id], self.get(b"q"))
        self.assertEqual((0, 0), (job.nacks, job.deliveries))

    def test_client_gone(self) -> None:
        """What is under way when the client goes away arrives all the same."""
        job = self.replicated(B)
        client = self.begin_move()
        self.node.client_gone(client)
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.pass_ms(20)
        self.assertEqual((ACKED, 1, []), (job.state, self.length(b"r"), self.replies(client)))

"""Lists of the first queues, asked for again and again while jobs come and go."""

from __future__ import annotations

from random import Random

from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.counting.listing import ListRequest
from disque_tx.core.counting.questions import HERE
from disque_tx.core.counting.rankings import BY_OLDEST, BY_QUEUED
from tests.core.bench import NodeCase

_MANY = 4_000


class RankingCase(NodeCase):
    """A node that is asked for lists."""

    def ask(self, sort: int, count: int = 5, pattern: bytes = b"") -> Client:
        """Ask for the first page of a list."""
        client = self.connect()
        request = ListRequest(pattern, sort, count, None)
        self.node.queue_queries.list_queues(client, request, HERE)
        return client

    def names(self, client: Client) -> list[bytes]:
        """The queues of the page, once it is there."""
        while client.blocked != NOT_BLOCKED:
            self.pass_ms(1)
        (reply,) = self.replies(client)
        assert isinstance(reply, dict)
        rows = reply[b"queues"]
        assert isinstance(rows, list)
        return [row[b"name"] for row in rows]  # type: ignore[misc,call-overload,index]

    def expected(self, sort: int, count: int = 5) -> list[bytes]:
        """The page, by a look at every queue."""
        keys = []
        for queue in self.node.queues.table.values():
            first = queue.jobs.first()
            if first is not None:
                order = first.moved_ms if sort == BY_OLDEST else -queue.jobs.size
                keys.append((order, queue.name))
        return [name for _, name in sorted(keys)[:count]]

    def assert_lists(self) -> None:
        """Both lists are what a look at every queue says."""
        for sort in (BY_OLDEST, BY_QUEUED):
            self.assertEqual(self.expected(sort), self.names(self.ask(sort)))

    def fill(self, queues: int) -> None:
        """A job in each queue, the oldest in the first."""
        for number in range(queues):
            self.add(b"q%d" % number)
            if number % 100 == 0:
                self.pass_ms(1)


class RankingTests(RankingCase):
    """Later lists follow from the first one and from what changed."""

    def test_any_changes(self) -> None:
        """Whatever happens to jobs, the lists are those of this moment: who looks at the queues
        that wait for longest must not miss one."""
        random = Random(7)
        ids: list[bytes] = []
        self.fill(60)
        for number in range(400):
            name = b"q%d" % random.randrange(90)
            what = random.randrange(10)
            if what < 4:
                ids.append(self.add(name, retry_s=random.choice((0, 1, 30))))
            elif what < 8:
                self.get(name, count=random.randrange(1, 4))
            elif what == 8 and ids:
                self.node.delete([ids.pop(random.randrange(len(ids)))])
            else:
                self.pass_ms(random.randrange(1, 900))
            if number % 3 == 0:
                self.assert_lists()

    def test_answer_at_once(self) -> None:
        """Among thousands of queues, the second list needs no walk over all of them: ten consoles
        would cost more than the jobs."""
        self.fill(_MANY)
        first = self.ask(BY_OLDEST)
        self.assertNotEqual(NOT_BLOCKED, first.blocked)
        self.names(first)
        self.get(b"q0")
        self.add(b"q9")
        for sort in (BY_OLDEST, BY_QUEUED):
            later = self.ask(sort)
            self.assertEqual(NOT_BLOCKED, later.blocked)
            self.assertEqual(self.expected(sort), self.names(later))

    def test_first_ones_leave(self) -> None:
        """Queues behind those that the first list saw come up once those have no jobs any more."""
        self.fill(600)
        self.assert_lists()
        for number in range(500):
            self.get(b"q%d" % number)
            if number % 50 == 0:
                self.assert_lists()
        self.assert_lists()

    def test_many_changes(self) -> None:
        """With more changes than are noted, the list is still that of this moment."""
        self.fill(_MANY)
        self.assert_lists()
        for number in range(_MANY - 2_000, _MANY):
            self.get(b"q%d" % number)
        client = self.ask(BY_OLDEST)
        # A look at so many is work for several turns.
        self.assertNotEqual(NOT_BLOCKED, client.blocked)
        self.assertEqual(self.expected(BY_OLDEST), self.names(client))
        self.assert_lists()

    def test_busy_queue(self) -> None:
        """A queue that changes all the time is one queue: lists need no walk because of it."""
        self.fill(_MANY)
        self.assert_lists()
        for _ in range(2_000):
            self.add(b"q1")
            self.get(b"q1")
        client = self.ask(BY_QUEUED)
        self.assertEqual(NOT_BLOCKED, client.blocked)
        self.assertEqual(self.expected(BY_QUEUED), self.names(client))

    def test_changes_during_the_walk(self) -> None:
        """What changes while the first list is made, where it was already looked at or not, and in
        queues that did not exist: the next list has it."""
        self.fill(_MANY)
        client = self.ask(BY_QUEUED)
        for number in range(0, 600, 3):
            self.pass_ms(0)
            self.add(b"q%d" % number)
            self.add(b"new%d" % number)
            self.add(b"new%d" % number)
            self.get(b"q%d" % (number + 1))
        self.names(client)
        self.assert_lists()

    def test_client_gone(self) -> None:
        """A list whose client leaves in the middle leaves nothing behind that later ones trust."""
        self.fill(_MANY)
        client = self.ask(BY_OLDEST)
        self.pass_ms(1)
        self.node.client_gone(client)
        self.pass_ms(10)
        self.assert_lists()
        self.assertEqual(NOT_BLOCKED, self.ask(BY_OLDEST).blocked)

    def test_two_at_once(self) -> None:
        """Two lists that are made at the same time are both whole, and so are later ones."""
        self.fill(_MANY)
        clients = [self.ask(sort) for sort in (BY_OLDEST, BY_QUEUED)]
        pages = [self.names(client) for client in clients]
        self.assertEqual([self.expected(sort) for sort in (BY_OLDEST, BY_QUEUED)], pages)
        self.assert_lists()

    def test_two_one_after_the_other(self) -> None:
        """A list that begins while another is made does not spoil what that one finds."""
        self.fill(2 * _MANY)
        first = self.ask(BY_OLDEST)
        for _ in range(3):
            self.pass_ms(1)
        self.assertNotEqual(NOT_BLOCKED, first.blocked)
        second = self.ask(BY_OLDEST)
        self.names(first)
        self.assertNotEqual(NOT_BLOCKED, second.blocked)
        self.assert_lists()
        self.assertEqual(self.expected(BY_OLDEST), self.names(second))
        self.assert_lists()

    def test_last_page(self) -> None:
        """A page that all queues with jobs fill says that others follow."""
        self.fill(5)
        self.node.queues.obtain(b"empty", self.now_ms)
        for _ in range(2):
            client = self.ask(BY_OLDEST)
            while client.blocked != NOT_BLOCKED:
                self.pass_ms(1)
            (reply,) = self.replies(client)
            assert isinstance(reply, dict)
            self.assertNotEqual(b"0", reply[b"cursor"])

    def test_all_forgotten(self) -> None:
        """A node that forgot all jobs shows none of its former queues."""
        self.fill(100)
        self.assert_lists()
        self.node.flush_all()
        self.add(b"only")
        self.assertEqual([b"only"], self.names(self.ask(BY_OLDEST)))

    def test_queues_without_jobs(self) -> None:
        """A page that has room shows the others as well, behind those with jobs."""
        self.fill(3)
        self.add(b"delayed", delay_s=60)
        for sort in (BY_OLDEST, BY_QUEUED):
            self.assertEqual([b"q0", b"q1", b"q2", b"delayed"], self.names(self.ask(sort)))
        self.get(b"q1")
        self.assertEqual([b"q0", b"q2", b"delayed", b"q1"], self.names(self.ask(BY_OLDEST)))

    def test_pages_of_a_pattern(self) -> None:
        """A list of some of the queues has no others in it."""
        self.fill(300)
        self.assert_lists()
        self.assertEqual([b"q7"], self.names(self.ask(BY_OLDEST, pattern=b"q7")))

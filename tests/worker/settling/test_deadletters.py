"""Dead letters as an operator finds them at a node, and what becomes of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Refused
from disque_tx.client.blocking import Disque
from disque_tx.core.jobs.job import LOADED
from disque_tx.worker.settling.deadletters import DeadJob, DeadLetters, Letter
from disque_tx.worker.settling.requeueing import LetterTaken
from tests.cli.livenode import LiveNode
from tests.client.scripted import JOB_ID, ScriptedTestCase, array, bulk

_JOB_ID = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


def letter(job_id: str = _JOB_ID, queue: str = "mail", body: bytes = b"to alice") -> bytes:
    """A dead letter of a worker."""
    return Letter(queue, job_id, body, "no", "", "w", 5, 0, 1.0, (), 60, 600, 1).encoded()


class DeadLettersTests(SynchronousTestCase):
    """``DeadLetters``, at one node."""

    def setUp(self) -> None:
        node = LiveNode()
        self.addCleanup(node.stop)
        self.node = node
        self.address = node.address
        self.client = Disque(node.address)
        self.addCleanup(self.client.close)

    def opened(self, address: str) -> AbstractContextManager[Disque]:
        """A client of one node."""
        return closing(Disque(address))

    def entries(self, queue: str | None = "dead:mail") -> dict[str, DeadJob]:
        """The dead jobs, by ID."""
        found = DeadLetters(self.client, self.opened).entries(queue, "dead:")
        self.assertEqual(len(found), len({entry.id for entry in found}))
        return {entry.id: entry for entry in found}

    def test_unreadable(self) -> None:
        """A job that is no letter is listed by its own ID, with what is wrong with it, and hides no
        others: it can be dropped as they can."""
        wrong = self.client.enqueue("dead:mail", b"no letter")
        self.client.enqueue("dead:mail", letter())
        found = self.entries()
        self.assertEqual({wrong, _JOB_ID}, set(found))
        self.assertIsNone(found[wrong].letter)
        self.assertIn("not a dead letter", found[wrong].trouble)
        self.assertEqual({wrong: self.address}, found[wrong].letters)
        read = found[_JOB_ID]
        assert read.letter is not None
        self.assertEqual(
            (b"to alice", "", "dead:mail"), (read.letter.body, read.trouble, read.dead_queue)
        )
        DeadLetters(self.client, self.opened).drop(found[wrong])
        self.assertEqual([_JOB_ID], list(self.entries()))

    def test_twice(self) -> None:
        """Two letters about a job are one dead job, which is put back once, and leaves none."""
        ids = {self.client.enqueue("dead:mail", letter()) for _ in range(2)}
        (entry,) = self.entries().values()
        self.assertEqual(ids, set(entry.letters))
        assert entry.letter is not None
        DeadLetters(self.client, self.opened).requeue(entry, entry.letter)
        self.assertEqual({}, self.entries())
        self.assertEqual([b"to alice"], [job.body for job in self.client.queue_peek("mail", 10)])

    def test_taken(self) -> None:
        """Of two people who have seen the same letter one puts the job back, and the other one is
        told: the job is not there twice. So it is when the letter was dropped, and when a program
        reads it."""
        letters = DeadLetters(self.client, self.opened)
        for copies in (None, 1):
            for taken in ("requeue", "drop", "read"):
                self.client.enqueue("dead:mail", letter())
                (entry,) = self.entries().values()
                assert entry.letter is not None
                if taken == "requeue":
                    letters.requeue(entry, entry.letter, copies)
                elif taken == "drop":
                    letters.drop(entry)
                else:
                    self.assertEqual(1, len(self.client.take("dead:mail")))
                with self.assertRaises(LetterTaken):
                    letters.requeue(entry, entry.letter, copies)
                put_back = [job.body for job in self.client.queue_peek("mail", 10)]
                self.assertEqual([b"to alice"] if taken == "requeue" else [], put_back)
                self.client.execute("QFLUSH", "mail")

    def test_refused(self) -> None:
        """A letter whose job no node takes is in its queue as before, for the next attempt."""
        self.client.enqueue("dead:mail", letter())
        (entry,) = self.entries().values()
        assert entry.letter is not None
        self.client.execute("PAUSE", "mail", "in")
        for copies in (None, 1):
            with self.assertRaises(Refused):
                DeadLetters(self.client, self.opened).requeue(entry, entry.letter, copies)
            self.assertEqual(1, self.client.queue_length("dead:mail"))
        self.client.execute("PAUSE", "mail", "none")
        DeadLetters(self.client, self.opened).requeue(entry, entry.letter)
        self.assertEqual(1, self.client.queue_length("mail"))

    def test_copies(self) -> None:
        """Who asks for another number of copies gets the job with its own RETRY and TTL."""
        self.client.enqueue("dead:mail", letter())
        (entry,) = self.entries().values()
        assert entry.letter is not None
        DeadLetters(self.client, self.opened).requeue(entry, entry.letter, 1)
        (job,) = self.client.queue_peek("mail", 10)
        shown = self.client.show(job.id)
        assert shown is not None
        self.assertEqual((b"to alice", 60, 1), (shown.body, shown.retry_s, shown.replicate))
        self.assertTrue(500 < shown.ttl_s <= 600)
        self.assertEqual({}, self.entries())

    def test_all_queues(self) -> None:
        """Without a queue the letters of all are found, and nothing else is one."""
        self.client.enqueue("mail", letter("D-other"))
        for queue in ("mail", "export"):
            self.client.enqueue(f"dead:{queue}", letter(f"D-{queue}", queue))
        found = self.entries(None)
        self.assertEqual(
            {"D-mail": "dead:mail", "D-export": "dead:export"},
            {job_id: entry.dead_queue for job_id, entry in found.items()},
        )

    def test_named_by_policies(self) -> None:
        """Without a queue those are found, too, that lie where policies say, be it in one queue for
        all or in one for each; a queue that only looks like the name of a policy is not read."""
        self.client.policy_set("mail", {"dead-queue": "lost"})
        self.client.policy_set("sms*", {"dead-queue": "{queue}.failed"})
        self.client.enqueue("lost", letter("D-mail"))
        self.client.enqueue("sms1.failed", letter("D-sms", "sms1"))
        self.client.enqueue(".failed", letter("D-nobody"))
        self.client.enqueue("lost.too", letter("D-other"))
        found = self.entries(None)
        self.assertEqual(
            {"D-mail": "lost", "D-sms": "sms1.failed"},
            {job_id: entry.dead_queue for job_id, entry in found.items()},
        )

    def test_loaded(self) -> None:
        """Letters that came from the log, and are not queued again yet, are found like others, by
        the name of their queue and without it."""
        ids = [self.client.enqueue("dead:mail", letter(f"D-{number}")) for number in range(2)]
        self.client.enqueue("dead:mail", letter("D-queued"))
        self.client.enqueue("dead:[m]*", letter("D-escaped"))
        ids += [self.client.enqueue("dead:sms", letter("D-sms", "sms"))]
        self.assertEqual(3, self.client.execute("DEQUEUE", *ids))
        jobs = self.node.node.node.jobs
        for job_id in ids:
            job = jobs.get(job_id.encode())
            assert job is not None
            jobs.set_whereabouts(job, LOADED)
        self.assertEqual({"D-0", "D-1", "D-queued"}, set(self.entries()))
        self.assertEqual({"D-0", "D-1", "D-queued", "D-sms", "D-escaped"}, set(self.entries(None)))
        found = self.entries()
        for job_id, copies in (("D-0", None), ("D-1", 1)):
            dead = found[job_id].letter
            assert dead is not None
            DeadLetters(self.client, self.opened).requeue(found[job_id], dead, copies)
        self.assertEqual({"D-queued"}, set(self.entries()))
        self.assertEqual(2, self.client.queue_length("mail"))

    def test_common_queue(self) -> None:
        """In a queue that policies name for the letters of several queues, those of one are found
        by what they say; neither those of others, nor what is no letter."""
        for queue in ("mail", "sms"):
            self.client.policy_set(queue, {"dead-queue": "lost"})
            self.client.enqueue("lost", letter(f"D-{queue}", queue))
        wrong = self.client.enqueue("lost", b"no letter")
        self.client.enqueue("dead:mail", letter("D-before"))
        self.assertEqual({"D-mail", "D-before"}, set(self.entries("dead:mail")))
        self.assertEqual({"D-mail", "D-sms", wrong}, set(self.entries("lost")))

    def test_told(self) -> None:
        """What was done to letters is one action at their node, with how many there were: who looks
        for a job later finds who moved it."""
        for number in range(3):
            self.client.enqueue("dead:mail", letter(f"D-{number}"))
        letters = DeadLetters(self.client, self.opened)
        for entry in letters.entries("dead:mail", "dead:"):
            letters.drop(entry)
        letters.tell("DROP", "dead:mail", "all")
        letters.tell("DROP", "dead:mail", "all")
        actions = self.client.execute("ACTIONS")
        self.assertEqual(
            [(b"DROP dead:mail all", 3)], [(action[3], action[5]) for action in actions]
        )


class NodesTests(ScriptedTestCase):
    """``DeadLetters``, at several nodes, each of which has one letter."""

    def test_each(self) -> None:
        """The letters of all nodes are found, each with its node; of one that cannot be asked it is
        said that its own are missing."""
        nodes = self.cluster(3)
        ids = [JOB_ID.replace("I7A", f"X{number}A") for number in range(3)]
        for number, node in enumerate(nodes):
            row = array(bulk("dead:mail"), bulk(ids[number]), bulk(letter(f"D-{number}")))
            node.answer("QPEEK", array(row))
            node.answer("PING", b"+PONG\r\n")
        with closing(Disque(nodes[0].address)) as client:
            letters = DeadLetters(client, lambda address: closing(Disque(address, patience_s=0)))
            found = {entry.id: entry.letters for entry in letters.entries("dead:mail", "dead:")}
            at = [node.address for node in nodes]
            expected = {f"D-{number}": {ids[number]: at[number]} for number in range(3)}
            self.assertEqual((expected, []), (found, letters.unseen))
            nodes[2].close()
            found = {entry.id: entry.letters for entry in letters.entries("dead:mail", "dead:")}
            del expected["D-2"]
            self.assertEqual((expected, at[2:]), (found, letters.unseen))

    def test_put_back_elsewhere(self) -> None:
        """Of a job with letters at two nodes, the second node puts the job back when the first one
        cannot; when neither can, it is added again. Either way it is there once, and no letter
        stays."""
        first, second = nodes = self.cluster(2)
        at = [node.address for node in nodes]
        ids = [JOB_ID.replace("I7A", f"X{number}A") for number in range(2)]
        for number, node in enumerate(nodes):
            row = array(bulk("dead:mail"), bulk(ids[number]), bulk(letter()))
            node.answer("QPEEK", array(row))
            node.answer("PING", b"+PONG\r\n")
            node.answer("ACKJOB", b":1\r\n")
            node.answer("ADDJOB", bulk(JOB_ID))
            node.answer("DEQUEUE", b":1\r\n")
        again = ["DEQUEUE", "ADDJOB", "ACKJOB"]
        for moved, commands in ((b":1\r\n", ["ACKJOB"]), (b"-ERR no\r\n", again)):
            second.answer("QMOVE", moved)
            with closing(Disque(first.address)) as client:
                letters = DeadLetters(client, lambda one: closing(Disque(one, patience_s=0)))
                (entry,) = letters.entries("dead:mail", "dead:")
                self.assertEqual(dict(zip(ids, at, strict=True)), entry.letters)
                first.requests.clear()
                assert entry.letter is not None
                letters.requeue(entry, entry.letter)
            self.assertEqual(["QMOVE", *commands], first.commands())
            acked = {word.decode() for word in first.requests[-1][1:]}
            self.assertEqual(set(ids[:1]) if moved == b":1\r\n" else set(ids), acked)

    def test_kept_by_each(self) -> None:
        """Each node keeps how many of its own letters were put back, and none of those whose end is
        not known: who reads it relies on the job having moved. A node that has gone is left out."""
        nodes = first, second, third = self.cluster(3)
        for number, node in enumerate(nodes):
            rows = [
                array(bulk("dead:mail"), bulk(JOB_ID.replace("I7A", f"{number}{at}A")), bulk(text))
                for at, text in enumerate((letter(f"D-{number}0"), letter(f"D-{number}1")))
            ]
            node.answer("QPEEK", array(*rows))
            node.answer("PING", b"+PONG\r\n")
            node.answer("QMOVE", b":1\r\n")
            node.answer("ACTIONS", b"+OK\r\n")
        with closing(Disque(first.address)) as client:
            letters = DeadLetters(client, lambda address: closing(Disque(address, patience_s=0)))
            entries = letters.entries("dead:mail", "dead:")
            self.assertEqual(6, len(entries))
            for entry in entries[1:]:
                assert entry.letter is not None
                letters.requeue(entry, entry.letter)
            first.answer("ACKJOB", b"-ERR no\r\n")
            self.assertRaises(Refused, letters.drop, entries[0])
            third.close()
            letters.tell("REQUEUE", "dead:mail", "all")
        for node, count in ((first, b"1"), (second, b"2")):
            kept = [words for words in node.requests if words[0] == b"ACTIONS"]
            self.assertEqual([[b"ACTIONS", b"ADD", count, b"REQUEUE", b"dead:mail", b"all"]], kept)

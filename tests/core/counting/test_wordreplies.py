"""Replies that travel as words between nodes, and words that are none."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.counting.wordreplies import WordReplies, is_reply, write_reply
from disque_tx.messages.records import ReplySink
from tests.core.bench import make_job


def _all_kinds(replies: ReplySink) -> None:
    """A reply with every kind of value in it."""
    replies.array(9)
    replies.status(b"OK")
    replies.error(b"ERR no")
    replies.integer(-12)
    replies.integer(10**18)
    replies.bulk(b"$x\r\n")
    replies.null()
    replies.null_array()
    replies.array(0)
    replies.mapping(2)
    replies.bulk(b"a")
    replies.array(1)
    replies.bulk(b"")
    replies.bulk(b"b")
    replies.integer(0)


class WordTests(SynchronousTestCase):
    """From replies to words, and back."""

    def test_round_trip(self) -> None:
        """Any reply comes back as it was, whatever its strings hold."""
        words, direct, back = WordReplies(), ValueReplies(), ValueReplies()
        _all_kinds(words)
        _all_kinds(direct)
        self.assertTrue(is_reply(words.words))
        write_reply(words.words, back)
        self.assertEqual(direct.values, back.values)
        self.assertEqual(
            [b"*9", b"+OK", b"-ERR no", b":-12", b":1000000000000000000", b"$$x\r\n", b"_", b"~"],
            words.words[:8],
        )
        self.assertEqual([b"*0", b"%2", b"$a", b"*1", b"$", b"$b", b":0"], words.words[8:])

    def test_jobs(self) -> None:
        """Jobs travel as they are answered, with their counters or without."""
        job = make_job(1)
        job.nacks, job.deliveries = 2, 3
        for with_counters in (False, True):
            words, direct, back = WordReplies(), ValueReplies(), ValueReplies()
            words.jobs([job, job], with_counters)
            direct.jobs([job, job], with_counters)
            self.assertTrue(is_reply(words.words))
            write_reply(words.words, back)
            self.assertEqual(direct.values, back.values)

    def test_taken_back(self) -> None:
        """What was written after a mark can be taken back, as a reply that is too large is."""
        words = WordReplies()
        words.integer(1)
        mark = words.mark()
        words.array(2)
        words.null()
        words.rewind(mark)
        self.assertEqual([b":1"], words.words)
        self.assertIs(words, words.speaking(3))

    def test_no_reply(self) -> None:
        """Words of another node that are not exactly one reply are refused before a client gets
        any of them."""
        for words in (
            [],
            [b"+a", b"+b"],
            [b"*2", b"+a"],
            [b"*1", b"+a", b"+b"],
            [b"%1", b"+a"],
            [b"%1", b"+a", b"+b", b"+c"],
            [b"*-1"],
            [b"*x"],
            [b"*"],
            [b"*3", b"+a", b"+b"],
            [b"*9", b"+a"],
            [b":"],
            [b":-"],
            [b":1x"],
            [b":--1"],
            [b":" + b"1" * 20],
            [b"_x"],
            [b"~x"],
            [b"+a\r"],
            [b"-a\n"],
            [b""],
            [b"!x"],
            [b"*1"] * 5 + [b"+a"],
        ):
            self.assertFalse(is_reply(words), words)

    def test_replies(self) -> None:
        """What is exactly one reply is taken, up to the deepest that is believed."""
        for words in (
            [b"+a"],
            [b"$\r\n"],
            [b":" + b"1" * 19],
            [b":-" + b"1" * 19],
            [b"*0"],
            [b"%0"],
            [b"*2", b"*0", b"+a"],
            [b"*2", b"*1", b"+a", b"%1", b"+a", b"+b"],
            [b"*1"] * 4 + [b"+a"],
        ):
            self.assertTrue(is_reply(words), words)

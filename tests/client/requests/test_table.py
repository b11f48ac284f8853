"""Every request: its words, how long its node may wait, and whether it may be sent twice."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import AddOptions
from disque_tx.client.requests import encoding
from disque_tx.client.requests.adding import add_job, add_job_with, add_once, enqueue
from disque_tx.client.requests.encoding import Request

#: Request, its words, and whether it may be sent twice.
_PLAIN: list[tuple[Request[Any], str, bool]] = [
    (encoding.ack_jobs("a", "b"), "ACKJOB a b", True),
    (encoding.fast_ack("a"), "FASTACK a", True),
    (encoding.nack("a"), "NACK a", False),
    (encoding.nack("a", delay_s=0), "NACK DELAY 0.000 a", False),
    (encoding.nack("a", delay_s=1.25, reason="é"), "NACK DELAY 1.250 REASON é a", False),
    (encoding.working("a"), "WORKING a", True),
    (encoding.working("a", progress=1, note="n"), "WORKING a PROGRESS 1.000 NOTE n", True),
    (encoding.working("a", progress=0), "WORKING a PROGRESS 0.000", True),
    (encoding.enqueue_jobs("a", "b"), "ENQUEUE a b", False),
    (encoding.dequeue_jobs("a"), "DEQUEUE a", False),
    (encoding.delete_jobs("a"), "DELJOB a", False),
    (encoding.show("a"), "SHOW a", True),
    (encoding.queue_length("q"), "QLEN q", True),
    (encoding.queue_peek("q"), "QPEEK q 10", True),
    (encoding.queue_peek("q", -3), "QPEEK q -3", True),
    (encoding.queue_stat("q"), "QSTAT q", True),
    (encoding.pause("q", "in", "bcast"), "PAUSE q in bcast", False),
    (encoding.hello(), "HELLO", True),
    (encoding.auth("secret"), "AUTH secret", False),
    (encoding.set_name("n"), "CLIENT SETNAME n", True),
    (encoding.info(), "INFO", True),
    (encoding.info("all"), "INFO all", True),
    (encoding.ping(), "PING", True),
    (encoding.execute("X", 1, b"y"), "X 1 y", False),
    (encoding.cluster_info(), "CLUSTER INFO", True),
    (encoding.cluster_nodes(), "CLUSTER NODES", True),
    (encoding.cluster_my_id(), "CLUSTER MYID", True),
    (encoding.cluster_meet("10.0.0.1", 7711), "CLUSTER MEET 10.0.0.1 7711", False),
    (encoding.cluster_meet("10.0.0.1", 1, 2), "CLUSTER MEET 10.0.0.1 1 2", False),
    (encoding.cluster_forget("i"), "CLUSTER FORGET i", False),
    (encoding.cluster_leaving(), "CLUSTER LEAVING", False),
    (encoding.cluster_leaving(False, True), "CLUSTER LEAVING no", False),
    (encoding.cluster_leaving(True), "CLUSTER LEAVING yes", False),
    (encoding.cluster_leaving(True, True), "CLUSTER LEAVING yes EVACUATE", False),
    (encoding.cluster_reset(), "CLUSTER RESET SOFT", False),
    (encoding.cluster_reset(True), "CLUSTER RESET HARD", False),
    (encoding.cluster_save_config(), "CLUSTER SAVECONFIG", False),
]


def line(request: Request[Any]) -> str:
    """The words, as text."""
    return " ".join(
        word.decode() if isinstance(word, bytes) else str(word) for word in request.words
    )


class TableTests(SynchronousTestCase):
    """All requests that any client can make."""

    def test_plain(self) -> None:
        """None of these waits, and after a lost answer those are sent again that do no harm."""
        for request, words, repeatable in _PLAIN:
            found = (line(request), request.wait_s, request.repeatable)
            self.assertEqual((words, 0.0, repeatable), found)
            self.assertEqual(words.split()[0], request.name)

    def test_adding(self) -> None:
        """ADDJOB waits as long as it says, and without a time for ever; it is repeated if there is
        a key, or the program wants that."""
        whole = AddOptions(
            timeout_ms=1_500, replicate=2, delay_s=3, retry_s=0, ttl_s=5, maxlen=6,
            asynchronous=True,
        )  # fmt: skip
        words = "ADDJOB q b 1500 REPLICATE 2 DELAY 3 RETRY 0 TTL 5 MAXLEN 6 ASYNC"
        cases: list[tuple[Request[Any], str, float | None, bool]] = [
            (add_job_with("q", "b", whole), words, 1.5, False),
            (add_job("q", "b"), "ADDJOB q b 5000", 5.0, False),
            (add_job("q", "b", timeout_ms=0), "ADDJOB q b 0", None, False),
            (add_job("q", "b", retry_adds=True), "ADDJOB q b 5000", 5.0, True),
            (enqueue("q", "b", 1, 2, 3), "ADDJOB q b 5000 DELAY 1 RETRY 2 TTL 3", 5.0, False),
            (enqueue("q", "b"), "ADDJOB q b 5000", 5.0, False),
            (add_once("q", "b", "k"), "ADDJOB q b 5000 UNIQUE k WITHNEW", 5.0, True),
            (
                add_once("q", "b", "k", AddOptions(timeout_ms=0, unique_for_s=7)),
                "ADDJOB q b 0 UNIQUE k FOR 7 WITHNEW",
                None,
                True,
            ),
        ]
        for request, expected, wait_s, repeatable in cases:
            found = (line(request), request.wait_s, request.repeatable)
            self.assertEqual((expected, wait_s, repeatable), found)

    def test_limits(self) -> None:
        """Reasons are cut to 1,024 bytes; notes have 256, and a progress is from 0 to 1: more is an
        error before anything is sent."""
        request = encoding.nack("a", reason="é" * 600)
        self.assertEqual(("é" * 512).encode(), request.words[2])
        self.assertEqual(256, len(encoding.progress_words(0.5, "é" * 128)[3]))  # type: ignore[arg-type]
        error = self.assertRaises(ValueError, encoding.progress_words, 0.5, "é" * 128 + "x")
        self.assertEqual("A note has 256 bytes at most.", str(error))
        self.assertEqual(["PROGRESS", "0.500"], encoding.progress_words(0.5, ""))
        for wrong in (-0.001, 1.001):
            error = self.assertRaises(ValueError, encoding.progress_words, wrong, None)
            self.assertEqual(f"A progress is a number from 0 to 1, not {wrong!r}.", str(error))

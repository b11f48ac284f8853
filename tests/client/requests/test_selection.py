"""Which queues a client gets jobs from."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests.selection import Selection

HEAD = ("GETJOB", "WITHCOUNTERS", "COUNT", 2)


class SelectionTests(SynchronousTestCase):
    """Names and patterns in a request."""

    def test_words(self) -> None:
        """Every combination is sent in the order that a node takes."""
        for chosen, words in (
            (Selection.of(["q", b"r"]), (b"FROM", b"q", b"r")),
            (Selection.of([], "mail:*"), (b"MATCH", b"mail:*")),
            (
                Selection.of(["q"], ["a*", "b*"], ["*x", "*y"]),
                (b"EXCEPT", b"*x", b"EXCEPT", b"*y", b"FROM", b"q", b"MATCH", b"a*", b"b*"),
            ),
        ):
            request = chosen.request(2)
            found = tuple(w.encode() if isinstance(w, str) else w for w in request.words[5:])
            self.assertEqual(words, found)
            self.assertEqual((*HEAD, "NOHANG"), request.words[:5])
            self.assertTrue(request.repeatable)

    def test_wait(self) -> None:
        """A request that waits says for how long."""
        request = Selection.of([], "*").request(1, 70)
        self.assertEqual((0.07, ("TIMEOUT", 70)), (request.wait_s, request.words[4:6]))

    def test_nothing(self) -> None:
        """A request for nothing is an error of the program, and no node is asked."""
        self.assertRaises(ValueError, Selection.of, [])
        self.assertRaises(ValueError, Selection.of, ["q"], (), "x*")

    def test_queue_called_match(self) -> None:
        """A queue of this name is refused where a node would take it for something else."""
        self.assertRaises(ValueError, Selection.of, ["a", "MATCH", "b"])
        self.assertRaises(ValueError, Selection.of, ["a", "MATCH"], "x*")
        for names, match in ((["MATCH", "a"], ()), (["a", "MATCH"], ()), (["MATCH"], "x*")):
            self.assertIn(b"MATCH", Selection.of(names, match).request(1).words)

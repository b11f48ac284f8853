"""What is found to be wrong with queues."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.diagnosis.answers import hour_of, more_than_before
from disque_tx.diagnosis.facts import QueueFacts, Survey
from disque_tx.diagnosis.finding import Finding
from disque_tx.diagnosis.findings import findings, is_problem

_WAITING = QueueFacts("mail", 7, oldest_s=600.0)


class QueueFindingTests(SynchronousTestCase):
    """Queues with jobs that wait."""

    def found(self, queue: QueueFacts, *letters: str) -> list[Finding]:
        """The findings about a queue."""
        return findings(Survey({}, {}, (queue,), frozenset(letters), 10_000.0))

    def test_nobody_fetches(self) -> None:
        """Jobs without a worker are a problem: which queue, how many, since when, and where."""
        (finding,) = self.found(_WAITING)
        self.assertEqual("nobody fetches the 7 jobs of mail", finding.what)
        self.assertTrue(is_problem(finding))
        self.assertEqual((9_400.0, "#/queues/mail"), (finding.since_s, finding.link))

    def test_served(self) -> None:
        """A queue that is served, however slowly, or that nobody could serve yet, is none."""
        for served in (
            {"blocked": 1}, {"in_flight": 1}, {"out_per_s": 0.1}, {"oldest_s": 5.0}, {"queued": 0},
        ):  # fmt: skip
            self.assertEqual([], self.found(attrs.evolve(_WAITING, **served)))

    def test_paused(self) -> None:
        """A queue that is paused is a note only: somebody did that, and may have forgotten it."""
        (finding,) = self.found(attrs.evolve(_WAITING, pause="all"))
        self.assertIn("mail is paused altogether, with 7 jobs", finding.what)
        self.assertFalse(is_problem(finding))

    def test_dead_letters(self) -> None:
        """Nobody is to fetch dead letters, wherever a policy puts them: they are told as what they
        are, with the page of their queue."""
        (finding,) = self.found(attrs.evolve(_WAITING, name="dead:mail"))
        self.assertEqual("7 dead letters in dead:mail: jobs that failed for good", finding.what)
        self.assertIn("disque dead list mail; ", finding.advice)
        (odd,) = self.found(attrs.evolve(_WAITING, name="dead:a;rm -r b"))
        self.assertIn("disque dead list 'a;rm -r b'; ", odd.advice)
        self.assertEqual("#/queues/mail", finding.link)
        for name, policy in (("graveyard", "graveyard"), ("x/mail/y", "x/{queue}/y")):
            (finding,) = self.found(attrs.evolve(_WAITING, name=name), policy)
            self.assertIn("7 dead letters in", finding.what)
        (finding,) = self.found(_WAITING, "{queue}")
        self.assertTrue(is_problem(finding))

    def test_dead_letters_grew(self) -> None:
        """Letters that came in the last hour are told apart from those that have been there for
        weeks; many of them are a problem."""
        for grown, problem in ((3, False), (10, True)):
            letters = QueueFacts("dead:mail", 70, oldest_s=600.0, grown=grown)
            (finding,) = self.found(letters)
            self.assertIn(f"70 dead letters in dead:mail, {grown} more than an", finding.what)
            self.assertEqual(problem, is_problem(finding))

    def test_more_than_before(self) -> None:
        """What was queued an hour ago is what each node had then; a queue without a point in that
        step was empty, and rows of strangers are no fault."""
        first, last = hour_of(10_000.0)
        self.assertEqual((7, 11), (first, last))
        answers: list[list[bytes | str]] = [
            [b"7 1 0 0 0 20 0", b"8 1 0 0 0 90 0"],
            [b"8 0 0 0 0 9 0"],
            [b"7"],
            [],
            ["7 0 0 0 0 5"],
        ]
        self.assertEqual(45, more_than_before(70, first, answers))
        self.assertEqual(70, more_than_before(70, first, []))
        self.assertEqual(0, more_than_before(5, first, answers))

    def test_failing(self) -> None:
        """Jobs in backoff have failed."""
        (finding,) = self.found(QueueFacts("mail", 0, backoff=1))
        self.assertEqual("1 job of mail failed and waits for another attempt", finding.what)

    def test_alert_wait(self) -> None:
        """A queue that is served too slowly is a problem when its policy says what too slowly is;
        it began when the first job had waited for so long."""
        slow = attrs.evolve(_WAITING, in_flight=3, out_per_s=0.5)
        self.assertEqual([], self.found(slow))
        self.assertEqual([], self.found(attrs.evolve(slow, alert_wait_s=600)))
        (finding,) = self.found(attrs.evolve(slow, alert_wait_s=60))
        self.assertIn("the first of the 7 jobs of mail waits for more than the 60 s", finding.what)
        self.assertIn("jobs in flight: 3, 0.5 left per second", finding.what)
        self.assertEqual(9_460.0, finding.since_s)

    def test_odd_names(self) -> None:
        """The link is one that the console takes, whatever the name."""
        for name, link in (("a/b?", "a%2Fb%3F"), ("..", "=.."), ("\udcff", "%FF")):
            (finding,) = self.found(attrs.evolve(_WAITING, name=name))
            self.assertEqual(f"#/queues/{link}", finding.link)

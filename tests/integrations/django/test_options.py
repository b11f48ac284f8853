"""Options of the backend for Django's tasks."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import BadAddress
from disque_tx.integrations.django.options import backend_options


class PriorityTests(SynchronousTestCase):
    """Priorities of Django, from -100 to 100."""

    def test_order(self) -> None:
        """A more urgent task is never looked for after a less urgent one, and tasks without a
        priority are in the queue of that name."""
        options = backend_options({})
        queues = options.queues("default")
        places = [queues.index(options.queue("default", number)) for number in range(-100, 101)]
        self.assertEqual(sorted(places, reverse=True), places)
        self.assertEqual(10, len(set(places)))
        self.assertEqual("django:default", options.queue("default", 0))

    def test_steps(self) -> None:
        """Twenty priorities share a queue, above and below the default, and those that Django does
        not know share the last one."""
        options = backend_options({"prefix": "p:"})
        for priority, step in (
            *((1, 5), (20, 5), (21, 6), (80, 8), (81, 9), (100, 9), (101, 9), (1_000, 9)),
            *((-1, 3), (-20, 3), (-21, 2), (-60, 1), (-61, 0), (-100, 0), (-1_000, 0)),
        ):
            self.assertEqual(f"p:q\x06{step}", options.queue("q", priority), priority)
        steps = [9, 8, 7, 6, 5, None, 3, 2, 1, 0]
        names = ["p:q" if step is None else f"p:q\x06{step}" for step in steps]
        self.assertEqual(names, options.queues("q"))


class OptionTests(SynchronousTestCase):
    """What is wrong is named when the program starts."""

    def test_all(self) -> None:
        """Every option arrives."""
        given: dict[str, Any] = {"nodes": ["a:1", "b:2"], "password": "p", "tls": True}
        given |= {"retry_s": 5, "ttl_s": 6, "replicate": 2, "result_ttl_s": 7, "retries": 8}
        options = backend_options({**given, "prefix": "x:", "enqueue_on_commit": True})
        self.assertEqual(
            (("a:1", "b:2"), "p", True), (options.nodes, options.password, options.tls)
        )
        terms = options.terms
        self.assertEqual((5, 6, 2), (terms.retry_s, terms.ttl_s, terms.replicate))
        self.assertEqual((7, 8, "x:"), (options.result_ttl_s, options.retries, options.prefix))
        self.assertTrue(options.on_commit)

    def test_bad(self) -> None:
        """An option that is misspelt or out of its range is named."""
        wrong: dict[str, Any] = {"retry": 1, "retry_s": 0, "replicate": 0, "tls": "yes"}
        wrong |= {"result_ttl_s": True, "retries": -1, "ttl_s": "1"}
        for name, value in wrong.items():
            error = self.assertRaises(ValueError, backend_options, {name: value})
            self.assertIn(name, str(error))
        self.assertRaises(BadAddress, backend_options, {"nodes": "host:0"})

    def test_limits(self) -> None:
        """The ends of the ranges can be used, what lies beyond is refused, and one node may be
        given as text."""
        for name, least, most in (("retries", 0, 10_000), ("result_ttl_s", 1, 4_294_967_295)):
            for value in (least, most):
                self.assertEqual(value, getattr(backend_options({name: value}), name))
            for value in (least - 1, most + 1):
                error = self.assertRaises(ValueError, backend_options, {name: value})
                said = f"{name} is a whole number from {least} to {most}, not {value}."
                self.assertEqual(said, str(error))
        self.assertEqual(("a:1",), backend_options({"nodes": "a:1"}).nodes)

    def test_unknown(self) -> None:
        """Who misspells an option reads which ones there are."""
        error = self.assertRaises(ValueError, backend_options, {"retry": 1})
        self.assertEqual(
            "There is no option 'retry'; there are enqueue_on_commit, nodes, password, prefix,"
            " replicate, result_ttl_s, retries, retry_s, tls, ttl_s.",
            str(error),
        )

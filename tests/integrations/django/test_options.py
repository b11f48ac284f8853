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

"""What the frameworks' parts do that are told nothing: what the pages promise of them."""

from __future__ import annotations

from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from celery import Celery
from dramatiq.results import ResultBackend
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.options import AddOptions
from disque_tx.integrations import dramatiq as of_dramatiq
from disque_tx.integrations import taskiq as of_taskiq
from disque_tx.integrations.adding import JobTerms
from disque_tx.integrations.celery.options import broker_options
from disque_tx.integrations.celery.results import DisqueBackend
from disque_tx.integrations.django.options import backend_options

_TEN_DAYS_S = 10 * 24 * 3600
_NODE = "127.0.0.1:7711"


class DefaultTests(SynchronousTestCase):
    """Each framework, without any option."""

    def assert_plain(self, terms: Any, node: object) -> None:
        """Assert how jobs are added: to this machine, for ten days, and delivered again a minute
        after their worker died, with as many copies as nodes make by themselves."""
        self.assertEqual((60, _TEN_DAYS_S, None), (terms.retry_s, terms.ttl_s, terms.replicate))
        self.assertIn(_NODE, repr(node))

    def test_dramatiq(self) -> None:
        """Messages of dramatiq have no priorities, and dead ones are kept for a week."""
        broker = of_dramatiq.DisqueBroker(middleware=[])
        self.addCleanup(broker.close)
        self.assert_plain(broker.terms, broker.client)
        broker.declare_queue("q")
        self.assertEqual(["dramatiq:q"], broker.names("q"))
        self.assertNotIn("broker_priority", broker.actor_options)
        added: list[tuple[object, ...]] = []
        self.patch(broker.client, "add_job_with", lambda *words: added.append(words))
        broker.bury("q", b"body")
        options = AddOptions(retry_s=60, ttl_s=7 * 24 * 3600)
        self.assertEqual([("dramatiq:q.XQ", b"body", options)], added)
        results: ResultBackend = of_dramatiq.DisqueBackend()
        self.assertEqual("dramatiq-results", results.namespace)

    def test_taskiq(self) -> None:
        """Messages of taskiq go to one queue, of which a worker holds a hundred at most; results
        are kept for a day."""
        broker = of_taskiq.DisqueBroker()
        self.assert_plain(broker._terms, broker.client)
        self.assertEqual(("taskiq", ("taskiq",)), (broker.queue_name, broker.queues))
        self.assertEqual(100, broker._prefetch)
        for labels in ({}, {"delay": 0}, {"priority": None}):
            expected = AddOptions(retry_s=60, ttl_s=_TEN_DAYS_S)
            self.assertEqual(("taskiq", expected), broker.placed(labels))
        results: Any = of_taskiq.DisqueResultBackend()
        self.assertEqual(AddOptions(retry_s=10, ttl_s=86_400), results._options)
        self.assertEqual("taskiq:result:", results._prefix)

    def test_django(self) -> None:
        """Tasks of Django are tried once and sent at once; results are kept for a day."""
        options = backend_options({})
        self.assert_plain(options.terms, options.nodes)
        self.assertEqual((86_400, 0), (options.result_ttl_s, options.retries))
        self.assertEqual((None, False), (options.password, options.tls))
        self.assertEqual(("django:", False), (options.prefix, options.on_commit))

    def test_celery(self) -> None:
        """Messages of Celery have ten priorities; a worker without a limit fetches a hundred at a
        time, and waits five seconds for a connection."""
        options = broker_options("disque://", {})
        self.assert_plain(options, options.client())
        self.assertEqual((100, ""), (options.prefetch, options.prefix))
        self.assertEqual((5.0, tuple(range(10))), (options.timeout_s, options.priorities))
        self.assertIsNone(options.tls)

    def test_celery_results(self) -> None:
        """Results of Celery are kept for a day, as by its other backends, and those without an end
        for ten years, which is as long as a node can."""
        for expires, ttl_s in ((None, 86_400), (0, 10 * 365 * 86_400), (10**12, 10 * 365 * 86_400)):
            app = Celery(set_as_current=False)
            backend = DisqueBackend(app, expires=expires)
            kept: list[tuple[object, ...]] = []
            self.patch(backend._results, "put", lambda *words, to=kept: to.append(words))
            backend.set(b"key", "value")
            self.assertEqual([("key", b"value", ttl_s)], kept)

    def test_terms(self) -> None:
        """So do programs with a broker of their own."""
        self.assertEqual(JobTerms(60, _TEN_DAYS_S, None), JobTerms())

"""Celery's results on Disque, with a real node and a real worker."""

from __future__ import annotations

from typing import Any

from celery import Celery, states
from celery.exceptions import ImproperlyConfigured

import disque_tx.integrations.celery
from disque_tx.client.blocking import Disque
from tests.acceptance.integrations.frameworks import FrameworkTestCase

_APP = """
import disque_tx.integrations.celery
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.result_chord_retry_interval = 0.2

@app.task
def add(x, y):
    return x + y

@app.task
def total(values):
    return sum(values)

@app.task
def fail():
    raise KeyError("reason")
"""
_CALLS = """
import app
from celery import chain, chord, group
T = 100
one = app.add.delay(1, 2)
print(one.get(timeout=T), one.get(timeout=T), app.app.AsyncResult(one.id).state)
print(group(app.add.s(n, n) for n in range(4)).delay().get(timeout=T))
print(chain(app.add.s(1, 2), app.add.s(3)).delay().get(timeout=T))
print(chord([app.add.s(n, n) for n in range(4)], app.total.s()).delay().get(timeout=T))
failed = app.fail.delay()
try:
    failed.get(timeout=T)
except KeyError as error:
    print(error, failed.state)
one.forget()
print(one.backend.get_state(one.id))
"""


class WorkerTests(FrameworkTestCase):
    """One node, which is broker and backend."""

    def test_results(self) -> None:
        """Results of tasks, groups, chains, chords and failures come back, and can be read again
        and forgotten."""
        self.variables["BROKER"] = f"disque://127.0.0.1:{self.running().port}"
        self.write("app", _APP)
        self.spawn("-m", "celery", "-A", "app", "worker", "-P", "threads", "-c", "4")
        lines = self.run_program(_CALLS).splitlines()
        self.assertEqual(
            ["3 3 SUCCESS", "[0, 2, 4, 6]", "6", "12", "'reason' FAILURE", "PENDING"], lines
        )


class BackendTests(FrameworkTestCase):
    """The backend without a worker."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.running("requirepass secret")
        self.url = f"disque://:secret@127.0.0.1:{self.node.port}"

    def app(self, url: str, **settings: Any) -> Any:
        """An application whose results are there."""
        app = Celery("app", broker="memory://", backend=url, set_as_current=False)
        app.conf.update(settings)
        self.addCleanup(app.close)
        return app

    def test_long_form(self) -> None:
        """The backend can be named by its class, for settings that are read before its import."""
        backend = self.app(f"{disque_tx.integrations.celery.RESULTS}+{self.url}").backend
        backend.store_result("x", 1, states.SUCCESS)
        self.assertEqual(1, backend.get_result("x"))

    def test_kept(self) -> None:
        """A result is kept for ``result_expires``, and a success is not replaced."""
        options = {"queue_name_prefix": "p:", "replicate": 1}
        app = self.app(self.url, result_expires=5000, result_backend_transport_options=options)
        app.backend.store_result("x", None, states.STARTED)
        app.backend.store_result("x", [1], states.SUCCESS)
        app.backend.store_result("x", None, states.RETRY)
        self.assertEqual([1], app.AsyncResult("x").get(timeout=1))
        client = Disque(f"127.0.0.1:{self.node.port}", "secret")
        self.addCleanup(client.close)
        jobs = list(client.job_scan("p:celery-task-meta-x"))
        self.assertEqual([True, True], [4900 < job.ttl_s <= 5000 for job in jobs])

    def test_no_password_shown(self) -> None:
        """A worker's banner does not show the password."""
        self.assertNotIn("secret", self.app(self.url).backend.as_uri())

    def test_settings(self) -> None:
        """Wrong settings are named at the start."""
        for url, options in (
            ("disque://a:b", {}),
            (self.url, {"replicate": 0}),
            (self.url, {"replicat": 1}),
        ):
            app = self.app(url, result_backend_transport_options=options)
            self.assertRaises(ImproperlyConfigured, lambda app=app: app.backend)

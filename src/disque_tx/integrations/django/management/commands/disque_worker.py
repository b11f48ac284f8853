"""``manage.py disque_worker``: does the tasks that were enqueued."""

from __future__ import annotations

import argparse
import logging
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import autoreload
from twisted.logger import STDLibLogObserver, globalLogBeginner

from disque_tx.client import DisqueClient
from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.compat import DEFAULT_TASK_QUEUE_NAME, task_backends
from disque_tx.integrations.django.running import TaskRunner
from disque_tx.worker.program import run, run_in_thread

#: How often a task may be delivered again, beyond its retries, because its worker died.
_CRASHES_MAX = 5


class Command(BaseCommand):
    """See Django's ``BaseCommand``."""

    help = "Do the tasks of a backend on Disque. SIGTERM drains: tasks that run may finish."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--backend", default="default", help="Its name in TASKS.")
        parser.add_argument(
            "--queue",
            dest="queues",
            action="append",
            help="Only this queue; may be repeated, the first one first. By default all of QUEUES.",
        )
        parser.add_argument("--concurrency", type=int, default=8, help="Tasks at a time.")
        parser.add_argument("--time-limit", type=float, default=3600.0, help="Seconds per task.")
        parser.add_argument("--grace", type=float, default=30.0, help="Seconds to finish tasks.")
        parser.add_argument("--name", help="Of this worker; by default host:pid.")
        parser.add_argument(
            "--reload", action="store_true", help="Start again when code changes; for development."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["concurrency"] < 1 or options["time_limit"] <= 0 or options["grace"] < 0:
            raise CommandError("--concurrency is at least 1, and times are not negative.")
        backend = task_backends[options["backend"]]
        if not isinstance(backend, DisqueBackend):
            raise CommandError(
                f"TASKS[{options['backend']!r}] is no backend on Disque, but {type(backend)!r}."
            )
        work = partial(self._work, backend, options)
        if options["reload"]:
            autoreload.run_with_reloader(partial(work, run_in_thread))
        else:
            work(run)

    def _work(self, backend: DisqueBackend, options: dict[str, Any], begin: Any) -> None:
        settings = backend.settings
        names = options["queues"] or sorted(backend.queues) or [DEFAULT_TASK_QUEUE_NAME]
        queues = [queue for name in names for queue in settings.queues(name)]
        logging.basicConfig(level=logging.INFO)
        globalLogBeginner.beginLoggingTo([STDLibLogObserver()], redirectStandardIO=False)
        client = partial(DisqueClient, settings.nodes, password=settings.password, tls=settings.tls)
        words = {
            "queues": queues,
            "order": "priority",
            "concurrency": options["concurrency"],
            "time_limit_s": options["time_limit"],
            "grace_s": options["grace"],
            "name": options["name"],
            "retries_max": settings.retries + _CRASHES_MAX,
            "replicate": settings.terms.replicate,
        }
        begin(client, dict.fromkeys(queues, TaskRunner(backend)), words)

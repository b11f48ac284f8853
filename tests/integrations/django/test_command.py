"""``manage.py disque_worker``: what its options make of a worker."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import autoreload
from twisted.logger import LogBeginner, LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import DisqueClient
from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.management.commands import disque_worker
from disque_tx.integrations.django.options import backend_options


class CommandTests(SynchronousTestCase):
    """The command, without the reactor that it would run."""

    def setUp(self) -> None:
        self.started: list[tuple[str, Any, Any, dict[str, Any]]] = []
        self.patch(disque_worker, "run", self.noting("process"))
        self.patch(disque_worker, "run_in_thread", self.noting("thread"))
        self.patch(autoreload, "run_with_reloader", lambda work: work())
        self.patch(logging.root, "handlers", [])
        self.addCleanup(logging.root.setLevel, logging.root.level)
        self.backend("default")

    def noting(self, where: str) -> Callable[..., None]:
        """What notes a worker, and where it is to run."""

        def note(client: Any, handlers: Any, words: dict[str, Any]) -> None:
            self.started.append((where, client, handlers, words))

        return note

    def backend(self, *queues: str, **options: Any) -> None:
        """Configure the backend with these queues and options."""
        backend = DisqueBackend("default", {"QUEUES": list(queues), "OPTIONS": options})
        self.patch(disque_worker, "task_backends", {"default": backend, "other": object()})

    def call(self, *arguments: str) -> None:
        """Run the command, which begins to log as the first of a process does."""
        beginner = LogBeginner(LogPublisher(), io.StringIO(), sys, warnings)
        self.patch(disque_worker, "globalLogBeginner", beginner)
        call_command(disque_worker.Command(), *arguments)

    def words(self, *arguments: str) -> dict[str, Any]:
        """The options of the worker that these arguments start."""
        self.started.clear()
        self.call(*arguments)
        ((_where, _client, handlers, words),) = self.started
        self.assertEqual(words["queues"], list(handlers))
        return words

    def assert_queues(self, names: Iterable[str], words: dict[str, Any]) -> None:
        """Assert that these queues of Django are asked in this order, with all priorities."""
        expected = [queue for name in names for queue in backend_options({}).queues(name)]
        self.assertEqual((expected, "priority"), (words["queues"], words["order"]))

    def test_reload(self) -> None:
        """Only with --reload, which is for development, the worker runs in a thread that a change
        of the code ends; in production it is a process that handles signals."""
        self.call()
        self.call("--reload")
        self.assertEqual(["process", "thread"], [where for where, *_ in self.started])

    def test_queues(self) -> None:
        """The tasks of all queues are done, or those of some, in the order in which these were
        named."""
        self.backend("mail", "export")
        self.assert_queues(["export", "mail"], self.words())
        self.assert_queues(["mail", "export"], self.words("--queue", "mail", "--queue", "export"))
        self.backend()
        self.assert_queues(["default"], self.words())

    def test_limits(self) -> None:
        """What an operator says arrives at the worker, and so do the settings of the project."""
        words = self.words(
            "--concurrency", "2", "--time-limit", "7.5", "--grace", "0", "--name", "w1"
        )
        found = [words[name] for name in ("concurrency", "time_limit_s", "grace_s", "name")]
        self.assertEqual([2, 7.5, 0, "w1"], found)
        self.backend("default", retries=10, replicate=2)
        few = self.words()
        self.backend("default", retries=11)
        more = self.words()
        self.assertEqual(1, more["retries_max"] - few["retries_max"])
        self.assertGreater(few["retries_max"], 10)
        self.assertEqual([2, None], [words["replicate"] for words in (few, more)])

    def test_client(self) -> None:
        """The worker connects to the nodes of the project."""
        self.backend("default", nodes=["a.example:1"])
        self.words()
        client: DisqueClient = self.started[0][1]()
        self.assertIn("a.example:1", repr(client))

    def test_refused(self) -> None:
        """An option that makes no sense ends the command before it takes a task, and so does a
        backend of another kind."""
        for arguments in (
            ("--concurrency", "0"),
            ("--time-limit", "0"),
            ("--grace", "-1"),
            ("--backend", "other"),
        ):
            with self.assertRaises(CommandError):
                self.call(*arguments)
        self.assertEqual([], self.started)
        self.words("--concurrency", "1", "--time-limit", "0.1", "--grace", "0")

"""``disque work``: what its words make of a worker, which another module runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.workers import work
from tests.cli.livenode import VerbCase

_HANDLERS = "tests.worker.handlers"


class WorkTests(VerbCase):
    """The verb, without the reactor that it would run."""

    def setUp(self) -> None:
        super().setUp()
        self.started: list[tuple[Any, Any, dict[str, Any]]] = []
        self.patch(work, "run", lambda *words: self.started.append(words))
        self.patch(sys, "path", list(sys.path))
        self.logged: list[Any] = []
        self.patch(work, "_log_to_stderr", self.logged.append)

    def words(self, *words: str | int, before: tuple[str, ...] = ()) -> dict[str, Any]:
        """What the worker is made with."""
        self.started.clear()
        status, _, errors = self.disque(*before, "work", f"{_HANDLERS}:note", *words)
        self.assertEqual(0, status, errors)
        return self.started[0][2]

    def refused(self, *words: str) -> str:
        """Why these words are refused."""
        status, _, errors = self.disque("work", *words)
        self.assertEqual((2, []), (status, self.started))
        return errors

    def test_defaults(self) -> None:
        """A worker of which nothing is said has the limits that the page of the verb names."""
        expected = {
            "queues": ("a",), "concurrency": 8, "order": "fair", "weights": None, "grace_s": 30.0,
            "time_limit_s": 3600.0, "retries_max": 5, "dead_queue": "dead:{queue}", "name": None,
            "remote_control": False,
        }  # fmt: skip
        self.assertEqual(expected, self.words("-q", "a"))
        self.assertEqual(["info"], [level.name for level in self.logged])
        self.assertIn(os.getcwd(), sys.path)

    def test_words(self) -> None:
        """Each word arrives at the worker."""
        found = self.words(
            "-q", "a", "-c", 2, "--weight", "a=3", "--weight", "b=1", "--grace", 0,
            "--time-limit", "0.5", "--dead-after", 0, "--dead-queue", "lost", "--name", "w1",
            "--remote-control", "-v",
        )  # fmt: skip
        expected = {
            "queues": ("a",), "concurrency": 2, "order": "fair", "weights": {"a": 3, "b": 1},
            "grace_s": 0.0, "time_limit_s": 0.5, "retries_max": 0, "dead_queue": "lost",
            "name": "w1", "remote_control": True,
        }  # fmt: skip
        self.assertEqual(expected, found)
        self.assertEqual("debug", self.logged[-1].name)
        self.assertEqual("priority", self.words("-q", "a", "--order", "priority")["order"])

    def test_nodes(self) -> None:
        """The worker's client has the nodes of the options, or those that are named for it, and the
        password."""
        self.words("-q", "a")
        self.assertEqual([(self.node.address,)], [tuple(self.started[0][0].args[0])])
        self.words("-q", "a", "--addresses", "a.example:1,b.example:2", before=("-a", "secret"))
        client = self.started[0][0]
        self.assertEqual((["a.example:1", "b.example:2"],), client.args)
        self.assertEqual({"password": "secret", "tls": False}, client.keywords)
        self.words("-q", "a", before=("--tls", "--insecure"))
        self.assertFalse(self.started[0][0].keywords["tls"].verify)

    def test_refused(self) -> None:
        """Words that make no sense are named before a worker starts."""
        handler = f"{_HANDLERS}:note"
        for words, said in (
            ((handler, "-q", "a", "--weight", "a"), "'a' is not QUEUE=N."),
            ((handler, "-q", "a", "--weight", "=3"), "'=3' is not QUEUE=N."),
            ((handler, "-q", "a", "--weight", "a=x"), "'a=x' is not QUEUE=N."),
            ((handler, "-q", "a", "--addresses", "no address:x"), "Error: "),
            ((handler, "-q", "a", "--addresses", ""), "'' is not the address of a node"),
            ((handler, "-q", "a", "-c", "0"), "Error: "),
            ((handler, "-q", "a", "-c", "10001"), "Error: "),
            ((handler, "-q", "a", "--time-limit", "0"), "Error: "),
            ((handler, "-q", "a", "--grace", "86401"), "Error: "),
            ((handler, "-q", "a", "--dead-after", "10001"), "Error: "),
            (("no.such.module:x",), "Error: "),
            ((f"{_HANDLERS}:missing",), "Error: "),
        ):
            errors = self.refused(*words)
            self.assertIn(said, errors, words)
            self.assertNotIn("Traceback", errors, words)

    def test_module_fails(self) -> None:
        """A module that fails while it is imported is shown with its traceback, for it is the
        program of the user."""
        folder = self.folder()
        name = f"broken_{Path(folder).name}".replace("-", "_")
        (folder / f"{name}.py").write_text("def f():\n    raise OSError('no disk')\n\nf()\n")
        sys.path.insert(0, str(folder))
        errors = self.refused(f"{name}:x")
        self.assertTrue(errors.startswith("Traceback (most recent call last):"), errors)
        self.assertIn("OSError: no disk\n", errors)
        self.assertIn("Error: ", errors)


class WeightTests(SynchronousTestCase):
    """Weights on the command line."""

    def test_values(self) -> None:
        """The last = separates the name, which may have others."""
        self.assertEqual({"a=b": 12, "c": 0}, work._weights(("a=b=12", "c=0")))
        self.assertIsNone(work._weights(()))
        self.assertEqual({"a": 123456789}, work._weights(("a=1234567890",)))

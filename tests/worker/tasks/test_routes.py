"""Which handler does the jobs of which queue, and how the command line finds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker import BadHandlers, Command, Context, Queue
from disque_tx.worker.base.errors import ImportFailed
from disque_tx.worker.tasks.routes import RouteTable, load_handlers, routes_of


def one(job: Context) -> None:
    """Do the jobs of one queue."""


def other(job: Context) -> None:
    """Do those of another."""


def third(job: Context) -> None:
    """Do those of all others."""


class TableTests(SynchronousTestCase):
    """Names and patterns of queues."""

    def setUp(self) -> None:
        self.table = RouteTable(
            routes_of({"*": third, "mail": one, "mail:*": other, "mail:??x": one, "x": other})
        )

    def name(self, queue: str) -> str:
        """The handler of a queue."""
        return self.table.route(queue).call(Context(_job(queue), "w")).handler.name

    def test_longest(self) -> None:
        """A name goes before patterns, and the longest pattern that matches before the others,
        whatever was asked before."""
        for _ in range(2):
            queues = ("mail", "mail:abx", "mail:abc", "x", "y")
            found = [self.name(queue) for queue in queues]
            self.assertEqual(["one", "one", "other", "other", "third"], found)

    def test_nothing(self) -> None:
        """A queue that nothing does is refused with its name."""
        table = RouteTable(routes_of({"mail": one, "sms:*": other}))
        self.assertIsNone(table.get("fax"))
        error = self.assertRaises(BadHandlers, table.route, "fax")
        self.assertEqual("Nothing handles fax.", str(error))
        error = self.assertRaises(BadHandlers, table.only, ["mail", "fax", "post"])
        self.assertEqual("Nothing handles fax, post. Name queues that have handlers.", str(error))
        for none in ({}, {"mail": one}):
            error = self.assertRaises(BadHandlers, RouteTable(routes_of(none)).only, [])
            self.assertEqual("There is no work. Name queues that have handlers.", str(error))

    def test_chosen(self) -> None:
        """Who names queues gets these, in this order; a pattern stands for all names that match
        it, unless it has a handler itself."""
        table = RouteTable(routes_of({"b:1": one, "a:1": other, "a:2": one, "c:*": third}))
        self.assertEqual(["a:1", "a:2", "b:1"], table.only(["a:*", "b:1"]).queues)
        self.assertEqual(["c:*", "c:9"], table.only(["c:*", "c:9"]).queues)
        self.assertEqual(["b:1", "a:1", "a:2", "c:*"], table.only(None).queues)

    def test_tasks(self) -> None:
        """People who look at workers see the name of each task and handler once."""
        queue = Queue("q")
        queue.job(name="send")(lambda: None)
        queue.job(name="bill")(lambda: None)
        table = RouteTable(routes_of({"q": queue, "r": one, "s": one, "t": Command(["true", "x"])}))
        self.assertEqual(["send", "bill", "one", "true"], table.tasks())

    def test_recurring(self) -> None:
        """A task that recurs needs a queue to which its jobs go, not a pattern."""
        queue = Queue("q")
        queue.every(60)(third_task)
        self.assertEqual({"q": ["third_task"]}, _names(RouteTable(routes_of({"q": queue}))))
        table = RouteTable(routes_of({"q*": queue, "r": one}))
        error = self.assertRaises(BadHandlers, table.recurring)
        self.assertEqual("Tasks that recur need a queue, and q* is a pattern.", str(error))
        self.assertEqual({"p*": []}, _names(RouteTable(routes_of({"p*": Queue("p*")}))))


def third_task() -> None:
    """A task without arguments."""


def _names(table: RouteTable) -> dict[str, list[str]]:
    return {queue: list(tasks) for queue, tasks in table.recurring().items()}


def _job(queue: str) -> Any:
    from disque_tx.client import Job

    return Job(queue, "D-1", b"")


class LoadTests(SynchronousTestCase):
    """``package.module:name`` on the command line."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir(parents=True)
        self.patch(sys, "path", [str(self.folder), *sys.path])
        self.patch(sys, "dont_write_bytecode", True)
        self.modules = 0

    def module(self, text: str) -> str:
        """A new module with this text; its name."""
        self.modules += 1
        name = f"handlers_of_{id(self)}_{self.modules}"
        (self.folder / f"{name}.py").write_text(text)
        self.addCleanup(sys.modules.pop, name, None)
        return name

    def test_found(self) -> None:
        """A function does the jobs of the one queue that is named; a dict or a queue has its
        own."""
        here = __name__
        self.assertEqual({"mail": one}, load_handlers(f"{here}:one", ["mail"]))
        name = self.module("from disque_tx.worker import Queue\nclass A:\n    q = Queue('q')\n")
        loaded = load_handlers(f"{name}:A.q", [])
        self.assertEqual("q", loaded.name)
        self.assertEqual("q", load_handlers(f"{name}:A.q", ["q"]).name)

    def refused(self, target: str, *queues: str) -> str:
        """Why these handlers are none."""
        return str(self.assertRaises(BadHandlers, load_handlers, target, queues))

    def test_refused(self) -> None:
        """What is wrong in the words is said so that they can be corrected."""
        for target in ("", "module", "module:", ":name"):
            self.assertEqual(f"{target!r} is not package.module:name.", self.refused(target))
        target = f"{__name__}:one"
        for queues in ((), ("a", "b")):
            self.assertEqual(
                f"{target} is one function: name its queue with one --queue.",
                self.refused(target, *queues),
            )
        target = f"{__name__}:nothing.here"
        self.assertEqual(
            f"{target}: module {__name__!r} has no attribute 'nothing'.", self.refused(target)
        )
        self.assertIn("3 cannot be used as handlers", self.refused(f"{self.module('x = 3')}:x"))

    def test_no_module(self) -> None:
        """A module that is missing is said to be missing, with what to do, the package of a
        misspelt one as well."""
        for target, missing in (
            ("no_such_module:x", "no_such_module"),
            ("no_such_package.module:x", "no_such_package"),
            ("json.no_such_module:x", "json.no_such_module"),
        ):
            self.assertEqual(
                f"There is no module {missing!r} here. Check the spelling, start in the folder that"
                " contains it, or set PYTHONPATH.",
                self.refused(target),
            )

    def test_broken_module(self) -> None:
        """A module that is there and cannot be imported is no misspelling: the error names what it
        lacks."""
        for text, why in (
            ("import no_such_thing", "No module named 'no_such_thing'"),
            ("raise ModuleNotFoundError('not today')", "not today"),
            ("raise ModuleNotFoundError('x', name='handlers')", "x"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("import json.nothing", "No module named 'json.nothing'"),
        ):
            name = self.module(text)
            error = self.assertRaises(ImportFailed, load_handlers, f"{name}:x", [])
            self.assertEqual(f"Module {name!r} cannot be imported: {why}.", str(error))

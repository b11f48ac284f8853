"""All clients have the same methods, described in one place."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx import client as tx
from disque_tx.client import aio, blocking
from disque_tx.client.requests import adding, scans
from disque_tx.client.requests import encoding as requests
from disque_tx.client.values import JobDetails

_CLIENTS: tuple[Any, ...] = (blocking.Disque, aio.Disque, tx.DisqueClient)
_JOBS: tuple[Any, ...] = (blocking.TakenJob, aio.TakenJob, tx.TakenJob)


def public(kind: Any) -> dict[str, Any]:
    """The methods that programs call."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


class DescriptionTests(SynchronousTestCase):
    """The documentation of methods in ``help()`` and editors."""

    def test_parameters(self) -> None:
        """A method shows the parameters of its command, not those of its implementation."""
        for client in _CLIENTS:
            for request in (adding.add_job, requests.ack_jobs, scans.queue_scan, requests.pause):
                of_request = inspect.signature(request)
                of_method = inspect.signature(getattr(client(), request.__name__))
                self.assertEqual(list(of_request.parameters), list(of_method.parameters), request)

    def test_results(self) -> None:
        """A method shows what a program gets, not what the client is told to do."""
        for client in _CLIENTS:
            shown = {name: inspect.signature(method) for name, method in public(client).items()}
            names = ("ack_jobs", "take", "queue_scan", "address", "queue_stat")
            expected = ["int", "list[TakenJob]", "Iterator[str]", "Address", "QueueStat | None"]
            self.assertEqual(expected, [shown[name].return_annotation for name in names])

    def test_documented(self) -> None:
        """Every method has a docstring, its own name and a parameter for the object."""
        for kind in (*_CLIENTS, *_JOBS):
            for name, method in public(kind).items():
                self.assertEqual(name, method.__name__)
                self.assertTrue(method.__doc__, name)
                self.assertEqual("self", next(iter(inspect.signature(method).parameters)), name)

    def test_same(self) -> None:
        """Who knows one client, knows the methods and parameters of the others."""
        for kinds in (_CLIENTS, _JOBS):
            first, *others = (
                {name: inspect.signature(m) for name, m in public(kind).items()} for kind in kinds
            )
            for other in others:
                common = first.keys() & other.keys()
                self.assertEqual({n: first[n] for n in common}, {n: other[n] for n in common})
        self.assertEqual([set(public(_JOBS[0]))] * 2, [set(public(kind)) for kind in _JOBS[1:]])


async def check_types(own: blocking.Disque, awaited: aio.Disque, deferred: tx.DisqueClient) -> None:
    """Not called: mypy reads what each kind of client returns."""
    assert_type(own.dequeue("q"), blocking.TakenJob | None)
    assert_type(own.take("q")[0].ack(), bool)
    assert_type(own.queue_scan(), Iterator[str])
    assert_type(await awaited.dequeue("q"), aio.TakenJob | None)
    assert_type(await (await awaited.take("q"))[0].show(), JobDetails | None)
    assert_type(awaited.queue_scan(), AsyncIterator[str])
    assert_type(deferred.dequeue("q"), Deferred[tx.TakenJob | None])
    assert_type((await deferred.take("q"))[0].working(), Deferred[int])
    assert_type(deferred.jobs("q"), AsyncIterator[tx.TakenJob])

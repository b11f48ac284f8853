"""A worker as a program of its own: from the start of the reactor to its end by a signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from twisted.internet import task
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.reflect import namedAny

from disque_tx.client import DisqueClient
from disque_tx.worker.base.errors import AllSlotsLost, BadHandlers
from disque_tx.worker.service import Worker

_FORCED: Final = 130
_LOST: Final = 70
_USAGE: Final = 2
_log = Logger()


def run(new_client: Callable[..., DisqueClient], handlers: Any, words: dict[str, Any]) -> None:
    """Run a worker until a signal ends it, and exit the process with its status: 0, 2 when handlers
    or queues are not valid, 70 when every slot is lost.

    ``new_client``: makes the client, with the argument ``reactor``. ``words``: for :class:`Worker`.
    The first SIGTERM or SIGINT drains, the second one ends at once.
    """
    task.react(_main, (new_client, handlers, words, True))


def run_in_thread(
    new_client: Callable[..., DisqueClient], handlers: Any, words: dict[str, Any]
) -> None:
    """Run a worker in a thread that is not the main one, so without handling signals, until it
    fails."""
    reactor: Any = namedAny("twisted.internet.reactor")

    def ended(result: object) -> None:
        if isinstance(result, Failure):
            _log.failure("The worker ended.", result)
        reactor.stop()

    def begin() -> None:
        _main(reactor, new_client, handlers, words, False).addBoth(ended)

    reactor.callWhenRunning(begin)
    reactor.run(installSignalHandlers=False)


def _main(
    reactor: Any,
    new_client: Callable[..., DisqueClient],
    handlers: Any,
    words: dict[str, Any],
    signals: bool,
) -> Deferred[None]:
    client = new_client(reactor=reactor)
    return Deferred.fromCoroutine(_run(reactor, client, handlers, words, signals))


async def _run(
    reactor: Any, client: DisqueClient, handlers: Any, words: dict[str, Any], signals: bool
) -> None:
    try:
        worker = Worker(client, handlers, reactor, **words)
    except BadHandlers as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(_USAGE) from error
    _log.info("Connecting to {client!r}", client=client)
    stopped = worker.when_stopped()
    worker.startService()
    if signals:
        reactor.callWhenRunning(_on_signals, reactor, worker)
    try:
        await stopped
    except AllSlotsLost:
        raise SystemExit(_LOST) from None
    await client.close()


def _on_signals(reactor: Any, worker: Worker) -> None:
    """The first signal drains, the second one ends."""

    def stop(number: int, frame: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: os._exit(_FORCED))
        reactor.callFromThread(worker.stopService)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)

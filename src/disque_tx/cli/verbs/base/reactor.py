"""Running verbs on Twisted's reactor, until they end or a signal ends them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Final

import click
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import react

from disque_tx.cli import signals
from disque_tx.errors import DisqueError

#: How long a verb may take to stop before it is cancelled, and how long after that the process is
#: ended.
_PATIENCE_S: Final = 10.0


class SignalHandling:
    """What the first signal does. ``stop``: called to let the work end by itself; if it is ``None``
    the work is cancelled. ``orderly``: the exit status is 0 after a signal."""

    def __init__(self) -> None:
        self.stop: Callable[[], object] | None = None
        self.orderly = False


Main = Callable[[Any, SignalHandling], Coroutine[Deferred[Any], Any, None]]


def run(name: str, main: Main) -> None:
    """Run ``main`` until it ends. Exits with 1 and a line that says why, when it failed; after a
    signal as described in :mod:`disque_tx.cli.signals`."""
    react(_run, (name, main))


def _run(reactor: Any, name: str, main: Main) -> Deferred[None]:
    on_signal = SignalHandling()
    work = Deferred.fromCoroutine(main(reactor, on_signal))
    signalled: list[int] = []

    def obey(number: int) -> None:
        signalled.append(number)
        if on_signal.stop is None:
            work.cancel()
            reactor.callLater(_PATIENCE_S, os._exit, signals.status(number))
        else:
            on_signal.stop()
            reactor.callLater(_PATIENCE_S, work.cancel)
            reactor.callLater(2 * _PATIENCE_S, os._exit, signals.status(number))

    def arrived(number: int, frame: FrameType | None) -> None:
        signals.exit_at_once()
        reactor.callFromThread(obey, number)

    def listen() -> None:
        for number in signals.NUMBERS:
            signal.signal(number, arrived)

    reactor.callWhenRunning(listen)
    return Deferred.fromCoroutine(_ended(work, name, on_signal, signalled))


async def _ended(
    work: Deferred[None], name: str, on_signal: SignalHandling, signalled: list[int]
) -> None:
    try:
        await work
    except CancelledError:
        if not signalled:
            raise
    except DisqueError as error:
        if not signalled:
            click.echo(f"disque {name}: {error}", err=True)
            raise SystemExit(1) from None
    if signalled and not on_signal.orderly:
        raise SystemExit(signals.status(signalled[0]))

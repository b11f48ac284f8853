"""Verbs that run on the reactor: until they have ended, or a signal ends them."""

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

#: What was asked to stop, and goes on for so long, is cancelled; and after so long again the
#: process ends.
_PATIENCE_S: Final = 10.0


class Ending:
    """How the first signal is obeyed. ``stop``: is called then and has the work end by itself;
    ``None``: it is cancelled. ``orderly``: then the exit status is 0."""

    def __init__(self) -> None:
        self.stop: Callable[[], object] | None = None
        self.orderly = False


Main = Callable[[Any, Ending], Coroutine[Deferred[Any], Any, None]]


def run(name: str, main: Main) -> None:
    """Run until it has ended. Exits: with 1 and a line that says why, when it failed; as
    :mod:`disque_tx.cli.signals` says, when a signal came."""
    react(_run, (name, main))


def _run(reactor: Any, name: str, main: Main) -> Deferred[None]:
    ending = Ending()
    work = Deferred.fromCoroutine(main(reactor, ending))
    signalled: list[int] = []

    def obey(number: int) -> None:
        signalled.append(number)
        if ending.stop is None:
            work.cancel()
            reactor.callLater(_PATIENCE_S, os._exit, signals.status(number))
        else:
            ending.stop()
            reactor.callLater(_PATIENCE_S, work.cancel)
            reactor.callLater(2 * _PATIENCE_S, os._exit, signals.status(number))

    def heard(number: int, frame: FrameType | None) -> None:
        signals.forget()
        reactor.callFromThread(obey, number)

    def listen() -> None:
        for number in signals.NUMBERS:
            signal.signal(number, heard)

    reactor.callWhenRunning(listen)
    return Deferred.fromCoroutine(_ended(work, name, ending, signalled))


async def _ended(work: Deferred[None], name: str, ending: Ending, signalled: list[int]) -> None:
    try:
        await work
    except CancelledError:
        if not signalled:
            raise
    except DisqueError as error:
        if not signalled:
            click.echo(f"disque {name}: {error}", err=True)
            raise SystemExit(1) from None
    if signalled and not ending.orderly:
        raise SystemExit(signals.status(signalled[0]))

"""Handlers of the demonstration, some slow, some failing: ``disque work worker:handlers``."""

from __future__ import annotations

import random
import time

from disque_tx.worker import Context, Hopeless

_CHANCE = random.Random()


def mail(job: Context) -> None:
    """Quick, as most work is."""
    time.sleep(_CHANCE.expovariate(100))


def orders(job: Context) -> None:
    """Fails one time in six, and is done at the next try."""
    time.sleep(_CHANCE.expovariate(20))
    if _CHANCE.random() < 1 / 6:
        raise ConnectionError("the bank does not answer")


def thumbnails(job: Context) -> None:
    """Often takes longer than the RETRY of its jobs."""
    time.sleep(_CHANCE.lognormvariate(-0.7, 0.9))


def imports(job: Context) -> None:
    """Some of these jobs cannot be done by anybody."""
    if job.body.startswith(b"broken"):
        raise Hopeless("this is no table")


handlers = {"mail": mail, "orders": orders, "thumbnails": thumbnails, "imports": imports}

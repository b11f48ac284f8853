"""``disque work``: a worker as a process of its own."""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial
from typing import Any

import click
from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
    textFileLogObserver,
)

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.client import BadAddress, DisqueClient
from disque_tx.client.addresses import seeds
from disque_tx.worker.base.errors import BadHandlers, ImportFailed
from disque_tx.worker.program import run
from disque_tx.worker.tasks.routes import load_handlers


@click.command("work")
@click.argument("handlers", metavar="PACKAGE.MODULE:HANDLERS")
@click.option("--queue", "-q", "queues", multiple=True, help="Only this queue; may be repeated.")
@click.option("--concurrency", "-c", type=click.IntRange(1, 10_000), default=8, show_default=True)
@click.option("--order", type=click.Choice(["fair", "priority"]), default="fair", show_default=True)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="QUEUE=N",
    help="Weight of a queue, with --order fair.",
)
@click.option(
    "--grace",
    "grace_s",
    type=FiniteRange(0, 86_400),
    default=30.0,
    show_default=True,
    help="Seconds that running handlers have after SIGTERM.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=FiniteRange(0, 86_400, min_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds that a handler without a limit of its own may take.",
)
@click.option(
    "--dead-after",
    "retries_max",
    type=click.IntRange(0, 10_000),
    default=5,
    show_default=True,
    help="How often a failing job is tried again before it becomes a dead letter.",
)
@click.option("--dead-queue", default="dead:{queue}", show_default=True)
@click.option("--addresses", help="host:port,host:port; by default the one of disque's options.")
@click.option("--name", help="Name of this worker in dead letters; by default host:pid.")
@click.option(
    "--remote-control",
    is_flag=True,
    help="Obey those who may add jobs: stop taking jobs, take them again, stop.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Log more, such as the traceback of every failure."
)
@click.pass_obj
def command(
    options: ClientOptions | None,
    /,
    handlers: str,
    queues: tuple[str, ...],
    addresses: str | None,
    weights: tuple[str, ...],
    verbose: bool,
    **words: Any,
) -> None:
    """Do the jobs of queues with the handlers of a Python module.

    HANDLERS is a Queue, a list of them, a dict from the name of a queue to a function, or one
    function with one --queue. SIGTERM drains: running handlers may finish within --grace, other
    jobs are given back. A second signal ends the process at once.
    """
    sys.path.insert(0, os.getcwd())
    _log_to_stderr(LogLevel.debug if verbose else LogLevel.info)
    given = options or ClientOptions()
    try:
        found = load_handlers(handlers, queues)
        words |= {"queues": queues or None, "weights": _weights(weights)}
        nodes = addresses.split(",") if addresses is not None else given.nodes
        # Check the addresses before the reactor starts.
        seeds(nodes)
        client = partial(DisqueClient, nodes, password=given.secret, tls=given.encryption or False)
        run(client, found, words)
    except (BadHandlers, BadAddress) as error:
        if isinstance(error, ImportFailed) and error.__cause__ is not None:
            click.echo("".join(traceback.format_exception(error.__cause__)), err=True, nl=False)
        raise click.UsageError(str(error)) from error


def _weights(words: tuple[str, ...]) -> dict[str, int] | None:
    weights = {}
    for word in words:
        queue, _, number = word.rpartition("=")
        if not queue or not number.isdecimal():
            raise BadHandlers(f"{word!r} is not QUEUE=N.")
        weights[queue] = int(number[:9])
    return weights or None


def _log_to_stderr(level: Any) -> None:
    observer = FilteringLogObserver(
        textFileLogObserver(sys.stderr), [LogLevelFilterPredicate(level)]
    )
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)

"""``disque workqueue``: clean or count a Redis work queue, or move it to Disque."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from os import environ
from typing import TYPE_CHECKING, Any, Final

import click
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
    textFileLogObserver,
)

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.base.output import Bar
from disque_tx.cli.verbs.base.reactor import SignalHandling, run
from disque_tx.workqueue import (
    BadRedisUrl,
    CleaningService,
    KeyPrefix,
    MoveRefused,
    Redis,
    WorkQueue,
)
from disque_tx.workqueue.mover import Mover
from disque_tx.workqueue.parking import Parking, parking_options

if TYPE_CHECKING:
    from disque_tx.client import DisqueClient

_NAME: Final = "workqueue"
_DISQUE: Final = "disque://"


def _redis_url(_ctx: object, _param: object, value: str) -> str:
    """The address of a Redis server; checked here, connected to later."""
    try:
        Redis.at(value, None)
    except BadRedisUrl as error:
        raise click.BadParameter(str(error)) from None
    return value


def _key_prefix(text: str) -> KeyPrefix:
    try:
        return KeyPrefix(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _one_prefix(_ctx: object, _param: object, value: str) -> KeyPrefix:
    return _key_prefix(value)


def _some_prefixes(_ctx: object, _param: object, values: tuple[str, ...]) -> list[KeyPrefix]:
    return [_key_prefix(value) for value in values]


_SECONDS: Final = FiniteRange(min=0, min_open=True, max=1e9)
_prefixes = click.option(
    "--prefix",
    "prefixes",
    callback=_some_prefixes,
    multiple=True,
    required=True,
    help="Key prefix of a work queue; may be given several times.",
)
_redis = click.argument(
    "redis", callback=_redis_url, metavar="redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]"
)


@click.group(
    "workqueue",
    help="Clean or count a Redis work queue, or move it to Disque. Passwords: in the URL, or better"
    " in REDIS_PASSWORD and DISQUE_PASSWORD.",
)
def command() -> None:
    """The group of the commands below."""


@command.command("clean")
@_prefixes
@click.option(
    "--every",
    "every_s",
    type=_SECONDS,
    metavar="S",
    help="Seconds between cleans: about the shortest lease.",
)
@click.option(
    "--deep-every", "deep_every_s", type=_SECONDS, metavar="S", help="Seconds between deep cleans."
)
@click.option("--once", is_flag=True, help="Clean once, and print how many items were returned.")
@click.option("--deep", is_flag=True, help="With --once: a deep clean.")
@_redis
def clean(
    prefixes: list[KeyPrefix],
    every_s: float | None,
    deep_every_s: float | None,
    once: bool,
    deep: bool,
    redis: str,
) -> None:
    """Return items whose workers died to their queues."""
    if once == (every_s is not None) or (deep and not once) or (deep_every_s and once):
        raise click.UsageError(
            "Use either --every S, with --deep-every S or without, or --once, with --deep or"
            " without."
        )

    async def clean_once(reactor: Any, on_signal: SignalHandling) -> None:
        for queue in _queues(redis, prefixes, reactor):
            returned = await (queue.deep_clean() if deep else queue.light_clean())
            click.echo(f"{queue.prefix.prefix}: {returned} items returned")

    async def clean_often(reactor: Any, on_signal: SignalHandling) -> None:
        _log_to_stderr(LogLevel.info)
        queues = _queues(redis, prefixes, reactor)
        for queue in queues:
            await queue.counts()
        service = CleaningService(queues, every_s or 0.0, deep_every_s, clock=reactor)
        ended: Deferred[None] = Deferred()
        on_signal.stop, on_signal.orderly = partial(ended.callback, None), True
        service.startService()
        await ended
        await maybeDeferred(service.stopService)

    run(_NAME, clean_once if once else clean_often)


@command.command("counts")
@_prefixes
@_redis
def counts(prefixes: list[KeyPrefix], redis: str) -> None:
    """Print how many items wait, and how many are being worked on."""

    async def count(reactor: Any, on_signal: SignalHandling) -> None:
        for queue in _queues(redis, prefixes, reactor):
            found = await queue.counts()
            click.echo(
                f"{queue.prefix.prefix}: {found.queue} waiting, {found.processing} in processing"
            )

    run(_NAME, count)


@command.command("move")
@click.option("--prefix", callback=_one_prefix, required=True, help="Key prefix of the work queue.")
@click.option("--queue", required=True, help="The queue of Disque.")
@click.option("--retry", "retry_s", type=int, default=300, show_default=True, help="RETRY, in s.")
@click.option("--ttl", "ttl_s", type=int, default=86_400, show_default=True, help="TTL, in s.")
@click.option("--replicate", type=int, help="Copies; by default the node decides.")
@_redis
@click.argument("disque", metavar="disque://[:PASSWORD@]HOST[:PORT],...")
@click.pass_obj
def move(
    options: ClientOptions | None,
    prefix: KeyPrefix,
    queue: str,
    retry_s: int,
    ttl_s: int,
    replicate: int | None,
    redis: str,
    disque: str,
) -> None:
    """Move every incomplete item into a queue of Disque. If this is stopped, start it again."""
    if not disque.startswith(_DISQUE):
        raise click.UsageError(f"The address of Disque nodes looks like {_DISQUE}host:port.")
    try:
        job_options = parking_options(retry_s, ttl_s, replicate)
    except MoveRefused as error:
        raise click.UsageError(str(error)) from None

    async def move_all(reactor: Any, on_signal: SignalHandling) -> None:
        _log_to_stderr(LogLevel.warn)
        server = Redis.at(redis, reactor, password=environ.get("REDIS_PASSWORD"))
        source = WorkQueue(prefix, server)
        client, member = _clients(disque, options or ClientOptions(), reactor)
        _say(f"Moving {prefix.prefix} from {server.address} to {queue} of {client!r}")
        parking, bar = Parking(client, member, queue, job_options), Bar()
        mover = Mover(source, server, parking, progress=bar, waiting=_say)
        on_signal.stop = mover.stop
        try:
            with bar:
                await mover.run()
        finally:
            moved = f"{mover.moved} items moved from {prefix.prefix} to the queue {queue}"
            click.echo(moved if mover.ended else f"{moved}; start it again to move the rest")
            await client.close()
            await server.close()

    run(_NAME, move_all)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _clients(
    url: str, options: ClientOptions, reactor: Any
) -> tuple[DisqueClient, Callable[[str], DisqueClient]]:
    """A client of the cluster, and what makes one of a single node."""
    from disque_tx.client import DisqueClient
    from disque_tx.client.addresses import seeds

    password = seeds(url).password or options.secret or environ.get("DISQUE_PASSWORD")
    new_client = partial(
        DisqueClient, password=password, tls=options.encryption or False, reactor=reactor
    )
    return new_client(url), partial(new_client, discover=False)


def _queues(url: str, prefixes: list[KeyPrefix], reactor: Any) -> list[WorkQueue]:
    """Work queues that share their connections."""
    redis = Redis.at(url, reactor, password=environ.get("REDIS_PASSWORD"))
    return [WorkQueue(prefix, redis) for prefix in prefixes]


def _log_to_stderr(level: Any) -> None:
    """What cleaning returns, and what fails."""
    predicate = LogLevelFilterPredicate(defaultLogLevel=LogLevel.warn)
    predicate.setLogLevelForNamespace("disque_tx", level)
    observer = FilteringLogObserver(textFileLogObserver(sys.stderr), [predicate])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)

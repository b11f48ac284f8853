"""``disque workqueue``: look after a Redis work queue, and move one to Disque."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from os import environ
from typing import TYPE_CHECKING, Any, Final

import click
from twisted.internet.defer import Deferred
from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
    textFileLogObserver,
)

from disque_tx.cli.options import Options
from disque_tx.errors import DisqueError
from disque_tx.workqueue import (
    BadRedisUrl,
    CleaningService,
    KeyPrefix,
    MoveRefused,
    Redis,
    WorkQueue,
)
from disque_tx.workqueue.parking import Parking, Terms

if TYPE_CHECKING:
    from disque_tx.client import DisqueClient

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


_SECONDS: Final = click.FloatRange(min=0, min_open=True, max=1e9)
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
    help="Look after a Redis work queue, and move one to Disque. Passwords: in the URL, or better"
    " in REDIS_PASSWORD and DISQUE_PASSWORD.",
)
def command() -> None:
    """The group; what it can do follows."""


@command.command("clean")
@_prefixes
@click.option("--every", "every_s", type=_SECONDS, metavar="S", help="About the shortest lease.")
@click.option("--deep-every", "deep_every_s", type=_SECONDS, metavar="S", help="And deeply.")
@click.option("--once", is_flag=True, help="Once, and say how many items were returned.")
@click.option("--deep", is_flag=True, help="With --once: deeply.")
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
            "Give either --every S, with --deep-every S or without, or --once, with --deep or"
            " without."
        )

    async def clean_once(reactor: Any) -> None:
        for queue in _queues(redis, prefixes, reactor):
            returned = await (queue.deep_clean() if deep else queue.light_clean())
            click.echo(f"{queue.prefix.prefix}: {returned} items returned")

    async def clean_often(reactor: Any) -> None:
        _log_to_stderr()
        queues = _queues(redis, prefixes, reactor)
        for queue in queues:
            await queue.counts()
        service = CleaningService(queues, every_s or 0.0, deep_every_s, clock=reactor)
        reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
        service.startService()
        await Deferred()

    _run(clean_once if once else clean_often)


@command.command("counts")
@_prefixes
@_redis
def counts(prefixes: list[KeyPrefix], redis: str) -> None:
    """Print how many items wait, and how many are being worked on."""

    async def count(reactor: Any) -> None:
        for queue in _queues(redis, prefixes, reactor):
            found = await queue.counts()
            click.echo(
                f"{queue.prefix.prefix}: {found.queue} waiting, {found.processing} in processing"
            )

    _run(count)


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
    options: Options | None,
    prefix: KeyPrefix,
    queue: str,
    retry_s: int,
    ttl_s: int,
    replicate: int | None,
    redis: str,
    disque: str,
) -> None:
    """Make a job of Disque of every incomplete item. To be started again when it was stopped."""
    if not disque.startswith(_DISQUE):
        raise click.UsageError(f"The address of Disque nodes looks like {_DISQUE}host:port.")
    try:
        terms = Terms(retry_s, ttl_s, replicate)
    except MoveRefused as error:
        raise click.UsageError(str(error)) from None

    async def run(reactor: Any) -> None:
        server = Redis.at(redis, reactor, password=environ.get("REDIS_PASSWORD"))
        source = WorkQueue(prefix, server)
        client, member = _clients(disque, options or Options(), reactor)
        try:
            moved = await _move(source, server, Parking(client, member, queue, terms))
        finally:
            await client.close()
            await server.close()
        click.echo(f"{moved} items moved from {prefix.prefix} to the queue {queue}")

    _run(run)


async def _move(source: WorkQueue, server: Redis, parking: Parking) -> int:
    """Move, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from disque_tx.workqueue.mover import Mover

    columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("moving", total=None)

        def progress(moved: int, left: int) -> None:
            bar.update(task, completed=moved, total=moved + left)

        return await Mover(source, server, parking, progress).run()


def _clients(
    url: str, options: Options, reactor: Any
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


def _log_to_stderr() -> None:
    """What cleaning returns, and what fails."""
    predicate = LogLevelFilterPredicate(defaultLogLevel=LogLevel.warn)
    predicate.setLogLevelForNamespace("disque_tx", LogLevel.info)
    observer = FilteringLogObserver(textFileLogObserver(sys.stderr), [predicate])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)


def _run(main: Callable[[Any], Coroutine[Deferred[Any], Any, None]]) -> None:
    """Run until it has ended; exit status 1, and a line that says why, when it fails."""
    from twisted.internet.task import react

    async def guarded(reactor: Any) -> None:
        try:
            await main(reactor)
        except DisqueError as error:
            click.echo(f"disque workqueue: {error}", err=True)
            raise SystemExit(1) from None

    react(lambda reactor: Deferred.fromCoroutine(guarded(reactor)), ())

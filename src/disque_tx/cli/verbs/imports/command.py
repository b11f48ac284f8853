"""``disque import``: moves the jobs of RQ or of beanstalkd into queues of Disque."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from os import environ
from typing import Any, Final, TypeVar

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.imports.beanstalk import Beanstalk
from disque_tx.cli.verbs.imports.outcome import ImportOutcome
from disque_tx.cli.verbs.imports.rqsource import RQImport, RQSource, redis_errors
from disque_tx.cli.verbs.imports.tubes import TubeImport, movable
from disque_tx.integrations.adding import JobTerms
from disque_tx.messages.limits import REPLICATE_RANGE, TTL_RANGE

_SECONDS: Final = click.IntRange(*TTL_RANGE)
_TTL_S: Final = 10 * 86_400
_F = TypeVar("_F", bound=Callable[..., object])


@click.group(
    "import",
    help="Move the jobs of another queue to Disque. A job is deleted there only after it is stored"
    " here; an import that was interrupted can be started again.",
)
def command() -> None:
    """The group of the commands below."""


def _terms(function: _F) -> _F:
    """What both commands can be told about the jobs."""
    for option in (
        click.option(
            "--dry-run", is_flag=True, help="Only list what would be moved, and what not."
        ),
        click.option(
            "--replicate", type=click.IntRange(*REPLICATE_RANGE), help="Copies of each job."
        ),
        click.option(
            "--ttl",
            "ttl_s",
            type=_SECONDS,
            default=_TTL_S,
            show_default=True,
            help="TTL, in s, after the delay.",
        ),
        click.option("--to", "to_queue", help="Queue for all jobs; by default the name is kept."),
    ):
        function = option(function)
    return function


@command.command("rq")
@click.argument("redis", metavar="redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]")
@click.option("--queue", "queues", multiple=True, help="Only this queue; may be repeated.")
@click.option("--key-prefix", default="rq", show_default=True, help="Prefix of RQ's keys.")
@click.option(
    "--retry", "retry_s", type=_SECONDS, default=60, show_default=True, help="RETRY, in s."
)
@_terms
@click.pass_obj
def rq(
    options: ClientOptions,
    redis: str,
    queues: tuple[str, ...],
    key_prefix: str,
    retry_s: int,
    to_queue: str | None,
    ttl_s: int,
    replicate: int | None,
    dry_run: bool,
) -> None:
    """Move waiting and scheduled jobs of RQ. Jobs become calls of tasks for disque work, with the
    name of the function as RQ has it. What cannot be moved stays, and is listed with the reason.

    A password is better in REDIS_PASSWORD than in the URL.
    """
    terms = JobTerms(retry_s, ttl_s, replicate)
    with closing(RQSource(redis, environ.get("REDIS_PASSWORD"), key_prefix)) as source:
        with redis_errors():
            names = list(queues) or source.queues()
            total = sum(map(source.counts, names))

        def run(client: Any, outcome: ImportOutcome) -> None:
            RQImport(source, client, terms, outcome, to_queue).run(names)

        _run(options, "import rq", total, dry_run, run)


@command.command("beanstalkd")
@click.argument("address", metavar="HOST[:PORT]")
@click.option("--tube", "tubes", multiple=True, help="Only this tube; may be repeated.")
@click.option("--urgent-to", "urgent_queue", help="Queue for jobs with a priority below 1024.")
@_terms
@click.pass_obj
def beanstalkd(
    options: ClientOptions,
    address: str,
    tubes: tuple[str, ...],
    urgent_queue: str | None,
    to_queue: str | None,
    ttl_s: int,
    replicate: int | None,
    dry_run: bool,
) -> None:
    """Move ready, delayed and buried jobs of beanstalkd. The TTR of a job becomes its RETRY; ready
    jobs are added in the order of their priorities; buried ones become dead letters.
    """
    terms = JobTerms(60, ttl_s, replicate)
    with closing(Beanstalk(address)) as source:
        names = list(tubes) or source.tubes()

        def run(client: Any, outcome: ImportOutcome) -> None:
            TubeImport(source, client, terms, outcome, to_queue, urgent_queue).run(names)

        total = sum(movable(source, name) for name in names)
        _run(options, "import beanstalkd", total, dry_run, run)


def _run(
    options: ClientOptions,
    label: str,
    total: int,
    dry_run: bool,
    run: Callable[[Any, ImportOutcome], None],
) -> None:
    """Connect, show the progress, and report in the end, whatever happens."""
    with Members(options) as members:
        client = None if dry_run else members.cluster()
        with progress(label, total) as advance:
            outcome = ImportOutcome(dry_run, advance)
            try:
                run(client, outcome)
            finally:
                outcome.report()
                if client is not None:
                    client.close()

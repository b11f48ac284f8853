"""``disque schedule``: list, show, set, pause, run and delete recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from disque_tx.cli.formatting import jsonable
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.client.errors import printable
from disque_tx.client.options import AddOptions
from disque_tx.client.requests.schedules import MISSED, Schedule

_COLUMNS: Final = ("name", "when", "zone", "state", "queue", "last", "next", "error")
_DIGITS_MAX: Final = 20
_json = click.option("--json", "as_json", is_flag=True, help="A JSON document per line.")


@click.group("schedule")
def command() -> None:
    """List, show, set, pause, run or delete schedules: jobs that the cluster adds by itself.

    A schedule holds on all nodes of the cluster, and one of them adds each job.
    """


@command.command("list")
@_json
@output.as_csv
@click.pass_obj
def show_list(options: ClientOptions, as_json: bool, as_csv: bool) -> None:
    """List all schedules, each with its next time."""
    with Members(options) as members:
        found = members.cluster().schedule_list()
    if as_json:
        _documents(found)
        return
    rows = [_row(one) for one in found]
    if as_csv:
        output.csv(_COLUMNS, rows)
    else:
        output.show(_COLUMNS, [tuple(map(printable, row)) for row in rows])


@command.command("get")
@click.argument("name")
@_json
@click.pass_obj
def show_one(options: ClientOptions, name: str, as_json: bool) -> None:
    """Show a schedule, with its next five times."""
    with Members(options) as members:
        found = members.cluster().schedule_get(name)
    if as_json:
        _documents([found])
        return
    rows = [(field, _text(value)) for field, value in _values(found).items()]
    output.show(("field", "value"), [(field, printable(text)) for field, text in rows])


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value or "-")


def _documents(found: Sequence[Schedule]) -> None:
    for one in found:
        output.document(_values(one) | {"body": jsonable(one.body)})


def _values(one: Schedule) -> dict[str, Any]:
    """Everything about a schedule, for people and programs."""
    return {
        "name": one.name,
        "when": one.when,
        "zone": one.zone,
        "missed": one.missed,
        "state": "paused" if one.paused else "on",
        "queue": one.queue,
        "body": one.body.decode("utf-8", "backslashreplace"),
        "options": list(one.options),
        "last": _time(one.last),
        "next": [_time(time) for time in one.next],
        "node": one.node,
        "error": one.error,
    }


def _row(one: Schedule) -> tuple[str, ...]:
    values = _values(one)
    values["next"] = values["next"][0] if values["next"] else None
    return tuple(values[column] or "-" for column in _COLUMNS)


def _time(time: datetime | None) -> str | None:
    """In UTC, as all tools read it."""
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_interval(when: str) -> bool:
    """Whether this is a number of seconds. One that is too long is left to the node to refuse."""
    return when.isascii() and when.isdigit() and len(when) <= _DIGITS_MAX


@command.command("set")
@click.argument("name")
@click.argument("when")
@click.argument("queue")
@click.argument("body")
@click.option("--tz", help="Time zone of a cron expression; UTC by default.")
@click.option("--missed", type=click.Choice(MISSED), help="What to do about missed times.")
@click.option("--ttl", "ttl_s", type=int, help="Seconds until the job expires.")
@click.option("--retry", "retry_s", type=int, help="Seconds between deliveries, 0 for one only.")
@click.option("--delay", "delay_s", type=int, help="Seconds before the first delivery.")
@click.option("--replicate", type=int, help="How many nodes hold a copy.")
@click.option("--maxlen", type=int, help="Add no job while the queue holds this many.")
@click.option("--async", "asynchronous", is_flag=True, help="Do not wait for the copies.")
@click.pass_obj
def change(
    options: ClientOptions,
    /,
    name: str,
    when: str,
    queue: str,
    body: str,
    tz: str | None,
    missed: str | None,
    **job: Any,
) -> None:
    """Add a job with BODY to QUEUE whenever it is due.

    WHEN is a cron expression in quotes, such as "*/5 * * * *" or "@daily", or a number of seconds.
    """
    if job["retry_s"] == 0 and job["replicate"] is None:
        job["replicate"] = 1
    with Members(options) as members:
        members.cluster().schedule_set(
            name,
            int(when) if _is_interval(when) else when,
            queue,
            body,
            tz=tz,
            missed=missed,
            options=AddOptions(**job),
        )


@command.command("pause")
@click.argument("name")
@click.pass_obj
def pause(options: ClientOptions, name: str) -> None:
    """Add no jobs by this schedule until it is resumed."""
    with Members(options) as members:
        members.cluster().schedule_pause(name)


@command.command("resume")
@click.argument("name")
@click.pass_obj
def resume(options: ClientOptions, name: str) -> None:
    """Let a schedule go on from now; what was due meanwhile is left out."""
    with Members(options) as members:
        members.cluster().schedule_resume(name)


@command.command("skip")
@click.argument("name")
@click.pass_obj
def skip(options: ClientOptions, name: str) -> None:
    """Leave out the next occurrence of a schedule, and print its time. Once more: the one after
    that, too."""
    with Members(options) as members:
        click.echo(_time(members.cluster().schedule_skip(name)))


@command.command("run")
@click.argument("name")
@click.pass_obj
def run(options: ClientOptions, name: str) -> None:
    """Add the job of a schedule now, and print its ID."""
    with Members(options) as members:
        click.echo(members.cluster().schedule_run(name))


@command.command("repair")
@click.pass_obj
def repair(options: ClientOptions) -> None:
    """Number the table of schedules anew on all nodes, so that it can be changed again after a node
    has run its counters ahead. Prints how many entries it has."""
    with Members(options) as members:
        click.echo(members.cluster().schedule_repair())


@command.command("del")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(options: ClientOptions, name: str, yes: bool) -> None:
    """Delete a schedule. Jobs that it has added stay. The exit status is 1 if there is none."""
    with Members(options) as members:
        if not yes:
            click.confirm(f"Delete the schedule {printable(name)}?", abort=True, err=True)
        if not members.cluster().schedule_del(name):
            click.echo(f"There is no schedule {printable(name)}.", err=True)
            raise SystemExit(1)

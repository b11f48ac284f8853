"""``disque dead``: list and show dead letters, requeue their jobs, or drop them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.client import BadAddress, ClientError, Refused
from disque_tx.client.blocking import Disque
from disque_tx.messages.limits import REPLICATE_RANGE
from disque_tx.text.counts import counted
from disque_tx.worker.settling.deadletters import DeadJob, DeadLetters, Letter
from disque_tx.worker.settling.requeueing import LetterTaken
from disque_tx.worker.tasks.policy import cut_name

_PREFIX: Final = "dead:"
_NAMES: Final = ("queue", "id", "at", "attempts", "letters", "reason")
#: From this many on there is a progress bar on a terminal.
_MANY: Final = 50
#: A node that does not answer within this time is reported as missing.
_NODE_S: Final = 2.0
#: What stands in the list of actions for the queues of all letters.
_ANY_QUEUE: Final = "*"
_T = TypeVar("_T")

_queue = click.argument("queue", required=False)
_json = click.option("--json", "as_json", is_flag=True, help="A JSON document per line.")
_ids = click.option(
    "--id", "ids", multiple=True, help="ID of a job or of its letter; may be repeated."
)
_all = click.option("--all", "everything", is_flag=True, help="Every letter of the queue.")
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group("dead")
@click.option("--addresses", help="host:port,host:port; by default the one of disque's options.")
@click.pass_context
def command(context: click.Context, addresses: str | None) -> None:
    """List dead letters, requeue their jobs, or drop them.

    QUEUE is the queue of the jobs, or of the letters; without it: all queues whose names begin with
    "dead:", and those that policies name. Letters on all nodes are found, on each the first 10,000
    of a queue.
    """
    options = context.obj or ClientOptions()
    nodes = addresses.split(",") if addresses is not None else options.nodes
    try:
        members = context.with_resource(Members(options, nodes))
    except BadAddress as error:
        raise click.UsageError(str(error)) from error
    one = partial(
        Disque,
        password=options.secret,
        tls=options.encryption or False,
        discover=False,
        timeout_s=_NODE_S,
        patience_s=0,
    )
    context.obj = DeadLetters(context.with_resource(_guarded(members.cluster)), one)


def _guarded(function: Callable[[], _T], passed: tuple[type[ClientError], ...] = ()) -> _T:
    try:
        return function()
    except passed:
        raise
    except ClientError as error:
        raise click.ClickException(str(error)) from error


def _entries(mailbox: DeadLetters, queue: str | None) -> list[DeadJob]:
    if queue is not None and not queue.startswith(_PREFIX):
        queue = cut_name(_PREFIX + queue)
    found = _guarded(lambda: mailbox.entries(queue, _PREFIX))
    for address in mailbox.unseen:
        click.echo(f"Node {address} could not be asked: letters there are missing here.", err=True)
    return found


@command.command("list")
@_queue
@_json
@output.as_csv
@click.pass_obj
def show_list(mailbox: DeadLetters, queue: str | None, as_json: bool, as_csv: bool) -> None:
    """List dead jobs, a line each: which, when, how many attempts, why."""
    entries = _entries(mailbox, queue)
    rows = [_row(entry, _plain) for entry in entries]
    exact = [_row(entry, str) | _when(entry) for entry in entries]
    if as_json:
        for row in exact:
            output.document(row)
    elif as_csv:
        output.csv((*_NAMES, "failed_at_s"), [row.values() for row in exact])
    elif sys.stdout.isatty():
        _print_table(rows)
    else:
        for row in rows:
            click.echo("\t".join(str(value) for value in row.values()))


def _row(entry: DeadJob, text: Callable[[str], str]) -> dict[str, Any]:
    """``text``: makes untrusted text safe for the reader."""
    letter = entry.letter
    if letter is None:
        values = (entry.dead_queue, entry.id, "", 0, len(entry.letters), entry.trouble)
    else:
        values = (
            letter.queue,
            letter.id,
            _moment(letter.failed_at_s),
            letter.nacks + letter.additional_deliveries + 1,
            len(entry.letters),
            letter.reason,
        )
    row = dict(zip(_NAMES, values, strict=True))
    return {name: text(value) if isinstance(value, str) else value for name, value in row.items()}


def _when(entry: DeadJob) -> dict[str, Any]:
    return {"failed_at_s": None if entry.letter is None else entry.letter.failed_at_s}


def _plain(text: str) -> str:
    """Untrusted text on one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)


def _moment(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return "?"


def _print_table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo("no dead letters")
        return
    from rich.console import Console

    cells = [[str(value) for value in row.values()] for row in rows]
    Console().print(output.drawn(rows[0], cells))


@command.command("show")
@click.argument("id_", metavar="ID")
@_json
@click.option("--queue", help="Search this queue only.")
@click.pass_obj
def show(mailbox: DeadLetters, id_: str, as_json: bool, queue: str | None) -> None:
    """Show all that is known about one dead job."""
    (entry,) = _chosen(_entries(mailbox, queue), (id_,), False)
    if entry.letter is None:
        raise click.ClickException(entry.trouble)
    values = entry.letter.table() | {"letters": list(entry.letters)}
    if as_json:
        output.document(values)
        return
    for name, value in values.items():
        lines = str(value).splitlines() or [""]
        click.echo(f"{name}: {_plain(lines[0])}")
        for line in lines[1:]:
            click.echo(f"    {_plain(line)}")


@command.command("requeue")
@_queue
@_ids
@_all
@_yes
@click.option(
    "--replicate", type=click.IntRange(*REPLICATE_RANGE), help="Copies; by default as before."
)
@click.pass_obj
def requeue(
    mailbox: DeadLetters,
    queue: str | None,
    ids: Any,
    everything: bool,
    yes: bool,
    replicate: int | None,
) -> None:
    """Add the jobs to their queues again, and drop the letters.

    A job keeps its RETRY and its number of copies; its TTL starts anew. A job with RETRY 0 is still
    delivered at most once.

    Nodes of disque-tx do both in one step (QMOVE). With an original, and with --replicate, it is
    ADDJOB, then ACKJOB: when this is interrupted in between, the letter is there again after its
    RETRY, and its job may be done twice if it is requeued again. Of several people who requeue the
    same letter at the same time one does.
    """
    chosen = _confirmed(mailbox, queue, ids, everything, yes, "requeue")
    done = 0
    try:
        for entry in _progress(chosen, "requeue"):
            trouble = f"stays: {entry.trouble}"
            if entry.letter is not None:
                trouble = _requeued(mailbox, entry, entry.letter, replicate)
            if trouble:
                # One that a node refuses is not in the way of the others.
                click.echo(f"{_plain(entry.id)} {_plain(trouble)}", err=True)
            else:
                done += 1
    finally:
        click.echo(f"{done} requeued")
        _tell(mailbox, "REQUEUE", queue, everything)
    if done < len(chosen):
        raise SystemExit(1)


def _requeued(mailbox: DeadLetters, entry: DeadJob, letter: Letter, replicate: int | None) -> str:
    """Why the job is not added, behind its ID; empty if it is."""
    try:
        _guarded(partial(mailbox.requeue, entry, letter, replicate), passed=(Refused,))
    except Refused as error:
        return f"stays: {error}"
    except LetterTaken as error:
        return f"is not requeued: {error}"
    return ""


@command.command("drop")
@_queue
@_ids
@_all
@_yes
@click.pass_obj
def drop(mailbox: DeadLetters, queue: str | None, ids: Any, everything: bool, yes: bool) -> None:
    """Delete the letters, and with them the jobs."""
    chosen = _confirmed(mailbox, queue, ids, everything, yes, "drop")
    done = 0
    try:
        for entry in _progress(chosen, "drop"):
            _guarded(partial(mailbox.drop, entry))
            done += 1
    finally:
        click.echo(f"{done} dropped")
        _tell(mailbox, "DROP", queue, everything)


def _tell(mailbox: DeadLetters, verb: str, queue: str | None, everything: bool) -> None:
    """Leave a line in the list of actions of each node, also of what was done before an error."""
    mailbox.tell(verb, queue or _ANY_QUEUE, "ALL" if everything else "IDS")


def _confirmed(
    mailbox: DeadLetters,
    queue: str | None,
    ids: tuple[str, ...],
    everything: bool,
    yes: bool,
    verb: str,
) -> list[DeadJob]:
    """The selected letters, after a confirmation if all were selected."""
    if bool(ids) == everything:
        raise click.UsageError("Select letters with --id, once or more, or with --all.")
    chosen = _chosen(_entries(mailbox, queue), ids, everything)
    if everything and chosen and not yes:
        click.confirm(f"{verb} {counted(len(chosen), 'dead letter')}?", abort=True, err=True)
    return chosen


def _chosen(entries: list[DeadJob], ids: tuple[str, ...], everything: bool) -> list[DeadJob]:
    if everything:
        return entries
    chosen = []
    for id_ in ids:
        named = [entry for entry in entries if id_ == entry.id or id_ in entry.letters]
        if not named:
            raise click.ClickException(f"There is no dead letter of {id_!r}.")
        chosen += named[:1]
    return chosen


def _progress(entries: list[DeadJob], verb: str) -> Iterable[DeadJob]:
    if len(entries) < _MANY or not sys.stderr.isatty():
        return entries
    return _tracked(entries, verb)


def _tracked(entries: list[DeadJob], verb: str) -> Iterator[DeadJob]:
    from rich.console import Console
    from rich.progress import track

    yield from track(entries, verb, console=Console(stderr=True))

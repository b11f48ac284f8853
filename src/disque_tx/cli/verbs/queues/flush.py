"""``disque flush``: ends the jobs of a queue, on one node or in the whole cluster."""

from __future__ import annotations

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members

_STATES = ("queued", "delayed", "backoff", "in-flight", "loaded", "any")


@click.command("flush")
@click.argument("queue")
@click.option("--cluster", "everywhere", is_flag=True, help="On all nodes, not only on one.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="State of the jobs to end; queued by default. May be repeated.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(
    options: ClientOptions, queue: str, everywhere: bool, states: tuple[str, ...], yes: bool
) -> None:
    """End the jobs of QUEUE as if they had been acknowledged: they are not delivered any more.

    Needs nodes of disque-tx. The exit status is 1 if there are nodes whose jobs may still be there.
    """
    with Members(options) as members, members.cluster() as client:
        counts = client.queue_counts(queue, cluster=everywhere).counts
        if not yes:
            where = "all nodes" if everywhere else f"the node at {client.address()}"
            click.echo(
                f"{queue} on {where}: {counts.queued} queued, {counts.delayed} delayed,"
                f" {counts.backoff} in backoff, {counts.in_flight} in flight,"
                f" {counts.loaded} loaded from the log",
                err=True,
            )
            shown = ", ".join(states) or "queued"
            click.confirm(f"End the jobs that are {shown}?", abort=True, err=True)
        done = client.flush_queue(queue, states, cluster=everywhere)
    click.echo(f"{done.jobs} ended")
    for node in done.nodes_missing:
        click.echo(f"Node {node} was not reached: its jobs may still be there.", err=True)
    if done.nodes_missing:
        raise SystemExit(1)

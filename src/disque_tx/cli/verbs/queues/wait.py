"""``disque wait``: waits until a job has ended."""

from __future__ import annotations

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange


@click.command("wait")
@click.argument("job_id", metavar="ID")
@click.option(
    "--timeout", "timeout_s", type=FiniteRange(min=0.001), help="In seconds; none by default."
)
@click.pass_obj
def command(options: ClientOptions, job_id: str, timeout_s: float | None) -> None:
    """Wait until the job with this ID has ended, and print how: acked, deleted, expired or dead.

    Needs a node of disque-tx that holds the job. The exit status is 0 if it was acknowledged, 1 if
    it ended in another way, or not in time.
    """
    with Members(options) as members, members.cluster() as client:
        how = client.wait_job(job_id, max(1, round(timeout_s * 1000)) if timeout_s else 0)
    click.echo(how or "not yet")
    if how != "acked":
        raise SystemExit(1)

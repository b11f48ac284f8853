"""``disque doctor``: what is wrong with a cluster and its queues, as its console shows it."""

from __future__ import annotations

import attrs
import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.survey import whole_survey
from disque_tx.diagnosis.findings import findings, is_problem, shown


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document.")
@click.pass_obj
def command(options: ClientOptions, as_json: bool) -> int:
    """Print what is wrong with the nodes of the cluster and with its queues: first what endangers
    jobs, each with what to do.

    The other nodes are found through the one that is asked. The exit status is 1 when there is a
    problem, and 0 when there are notes only.
    """
    with Members(options) as members:
        found = findings(whole_survey(members, options.nodes, discover=options.encryption is None))
    if as_json:
        output.document({"findings": [attrs.asdict(finding) for finding in found]})
    elif not found:
        click.echo("All is well.")
    else:
        for finding in found:
            click.echo(f"{shown(finding)}\n    {finding.advice}")
    return 1 if any(map(is_problem, found)) else 0

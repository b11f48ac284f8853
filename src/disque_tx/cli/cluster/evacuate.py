"""``disque cluster evacuate``: a node gives all its jobs to the others, and can be stopped then."""

from __future__ import annotations

import time
from typing import Final

import click

from disque_tx.cli.cluster.options import a_node, agreed, yes_option
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.base.output import Bar
from disque_tx.client.blocking import Disque
from disque_tx.errors import DisqueError
from disque_tx.text.counts import counted

_POLL_S: Final = 0.5
#: How often progress is printed where there is no terminal to draw it on.
_LINE_S: Final = 10.0
#: What the node waits for, by INFO's ``evacuation_obstacle``.
_WAITS_FOR: Final = {
    "no-node": "no other node takes jobs",
    "no-answer": "the other nodes have no memory for copies",
    "paused": "replicate-again-rate is 0",
    "copies": "copies are being made on other nodes",
    "clients": "clients of this node work on them",
    "acknowledgements": "holders that cannot be reached have to confirm acknowledgements",
}


class CannotEvacuate(DisqueError):
    """The node cannot give its jobs away: it is an original, or too old."""


@click.command("evacuate")
@a_node
@click.option("--wait", is_flag=True, help="Wait until the node is empty.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0),
    help="Wait for so many seconds at the most; implies --wait.",
)
@click.option("--cancel", is_flag=True, help="Stay in the cluster, with the jobs still there.")
@yes_option
@click.pass_obj
def command(
    options: ClientOptions, node: str, wait: bool, timeout_s: float | None, cancel: bool, yes: bool
) -> int:
    """Have a node leave the cluster and give all its jobs to the other nodes.

    It can be stopped when it is empty, whatever it has on disk. With --wait progress is shown, and
    the exit status is 0 when the node is empty, 1 when time is over.
    """
    with Members(options, [node]) as members:
        client = members.cluster()
        if cancel:
            client.cluster_leaving(False)
            click.echo(f"{node} stays in the cluster.")
            return 0
        agreed(f"Give all jobs of {node} to other nodes, and let it leave the cluster?", yes)
        client.cluster_leaving(True, evacuate=True)
        if "evacuating" not in client.info("copies"):
            raise CannotEvacuate(f"{node} cannot give its jobs away: its version is too old.")
        if wait or timeout_s is not None:
            return _wait(client, node, timeout_s)
    click.echo(f"{node} gives its jobs away; --wait shows how many are left.")
    return 0


def _wait(client: Disque, node: str, timeout_s: float | None) -> int:
    begun_s = said_s = time.monotonic()
    with Bar() as bar:
        while True:
            info = client.info("copies")
            if info.get("evacuating") != "yes":
                click.echo(f"{node} does not leave any more.", err=True)
                return 1
            left = int(info["evacuation_left"])
            bar(int(info["evacuation_moved"]), left)
            if left == 0:
                break
            now_s = time.monotonic()
            if timeout_s is not None and now_s - begun_s >= timeout_s:
                click.echo(f"{node} is not empty: {_line(info)}.", err=True)
                return 1
            if now_s - said_s >= _LINE_S:
                said_s = now_s
                click.echo(f"{node}: {_line(info)}", err=True)
            time.sleep(_POLL_S)
    click.echo(f"{node} is empty, and can be stopped.")
    return 0


def _line(info: dict[str, str]) -> str:
    """How far it is, in words."""
    waits_for = _WAITS_FOR.get(info["evacuation_obstacle"], "")
    eta_s = int(info["evacuation_eta_s"])
    soon = f"about {eta_s} s more" if eta_s >= 0 else ""
    left = f"{counted(int(info['evacuation_left']), 'job')} left"
    return ": ".join(filter(None, (left, waits_for or soon)))

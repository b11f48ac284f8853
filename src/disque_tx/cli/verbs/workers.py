"""``disque workers``: who takes jobs, from CLIENT LIST of all nodes.

Workers of this package name their connections (:mod:`disque_tx.worker.status`). Others, and
programs that only fetch jobs, are not in the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import attrs
import click

from disque_tx.cli.options import Options
from disque_tx.cli.verbs import output
from disque_tx.cli.verbs.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import printable
from disque_tx.worker.status import WorkerStatus

_COLUMNS: Final = ("worker", "slots", "held", "queues", "from", "nodes", "age s")


@attrs.define
class Seen:
    """A worker. ``sign``: what its most active connection says. ``idle_s``: of that connection.
    ``age_s``: of the oldest. ``hosts``: where it connects from, ``nodes``: and to."""

    sign: WorkerStatus
    idle_s: int
    age_s: int
    hosts: list[str]
    nodes: list[str]

    def joined(self, other: Seen) -> Seen:
        """Both are connections of one worker."""
        latest = min(self, other, key=lambda seen: seen.idle_s)
        return Seen(
            latest.sign,
            latest.idle_s,
            max(self.age_s, other.age_s),
            list(dict.fromkeys(self.hosts + other.hosts)),
            list(dict.fromkeys(self.nodes + other.nodes)),
        )


def connections(node: str, listing: bytes) -> Iterator[Seen]:
    """The connections of workers in an answer to CLIENT LIST."""
    for line in listing.decode("utf-8", "replace").splitlines():
        fields = dict(word.partition("=")[::2] for word in line.split(" "))
        sign = WorkerStatus.decoded(fields.get("name", ""))
        if sign is not None:
            host = fields.get("addr", "").rpartition(":")[0]
            yield Seen(sign, _number(fields, "idle"), _number(fields, "age"), [host], [node])


def _number(fields: dict[str, str], name: str) -> int:
    value = fields.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else 0


def _listing(node: Disque) -> bytes:
    reply = node.execute("CLIENT", "LIST")
    return reply if isinstance(reply, bytes) else str(reply).encode()


@click.command("workers")
@click.option("--json", "as_json", is_flag=True, help="A JSON document per line.")
@output.as_csv
@click.pass_obj
def command(options: Options, as_json: bool, as_csv: bool) -> None:
    """List the workers that are connected to the nodes of the cluster, and how much they hold.

    Held are the jobs that a worker has taken and neither acknowledged nor given back, by what it
    said itself some seconds ago at most: those that it does, that wait for their turn, and that
    wait for their next try. Listed are workers of disque work, and of the same class in other
    programs.
    """
    with Members(options) as members:
        found = members.ask(members.known(), _listing)
    for address, why in found.silent.items():
        click.echo(f"Node {address} could not be asked ({why}).", err=True)
    workers: dict[str, Seen] = {}
    for address, listing in found.of.items():
        for seen in connections(address, listing):
            known = workers.get(seen.sign.worker)
            workers[seen.sign.worker] = seen if known is None else known.joined(seen)
    _show([workers[name] for name in sorted(workers)], as_json, as_csv)


def _show(workers: list[Seen], as_json: bool, as_csv: bool) -> None:
    if as_json:
        for seen in workers:
            click.echo(json.dumps(_values(seen)))
    elif as_csv:
        rows = [_values(seen).values() for seen in workers]
        names = ("worker", "slots", "held", "queues", "more_queues", "hosts", "nodes", "age_s")
        output.csv(names, [[_joined(value) for value in row] for row in rows])
    else:
        output.show(_COLUMNS, [tuple(map(printable, _cells(seen))) for seen in workers])


def _values(seen: Seen) -> dict[str, object]:
    sign = seen.sign
    return {
        "worker": sign.worker,
        "slots": sign.slots,
        "held": sign.held,
        "queues": [queue for queue in sign.queues if queue is not None],
        "more_queues": None in sign.queues,
        "hosts": seen.hosts,
        "nodes": seen.nodes,
        "age_s": seen.age_s,
    }


def _joined(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _cells(seen: Seen) -> tuple[str, ...]:
    sign = seen.sign
    return (
        sign.worker,
        str(sign.slots),
        str(sign.held),
        " ".join("…" if queue is None else queue for queue in sign.queues),
        " ".join(seen.hosts),
        " ".join(seen.nodes),
        str(seen.age_s),
    )

"""``disque workers``: the connected workers, from CLIENT LIST of all nodes.

Workers of this package name their connections (:mod:`disque_tx.worker.base.status`). Others, and
programs that only fetch jobs, are not in the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import printable
from disque_tx.worker.base.status import WorkerStatus

_COLUMNS: Final = ("worker", "slots", "held", "queues", "from", "nodes", "age s")


@attrs.define
class ConnectedWorker:
    """A worker. ``status``: what its most active connection says. ``idle_s``: of that connection.
    ``age_s``: of the oldest. ``hosts``: where it connects from, ``nodes``: and to."""

    status: WorkerStatus
    idle_s: int
    age_s: int
    hosts: list[str]
    nodes: list[str]

    def joined(self, other: ConnectedWorker) -> ConnectedWorker:
        """This worker as its latest connection reports it, with the hosts and nodes of both
        connections."""
        latest = min(self, other, key=lambda worker: worker.idle_s)
        return ConnectedWorker(
            latest.status,
            latest.idle_s,
            max(self.age_s, other.age_s),
            list(dict.fromkeys(self.hosts + other.hosts)),
            list(dict.fromkeys(self.nodes + other.nodes)),
        )


def connections(node: str, listing: bytes) -> Iterator[ConnectedWorker]:
    """The connections of workers in an answer to CLIENT LIST."""
    for line in listing.decode("utf-8", "replace").splitlines():
        fields = dict(word.partition("=")[::2] for word in line.split(" "))
        status = WorkerStatus.decoded(fields.get("name", ""))
        if status is not None:
            host = fields.get("addr", "").rpartition(":")[0]
            yield ConnectedWorker(
                status, _number(fields, "idle"), _number(fields, "age"), [host], [node]
            )


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
def command(options: ClientOptions, as_json: bool, as_csv: bool) -> None:
    """List the workers that are connected to the nodes of the cluster, and how much they hold.

    Held are the jobs that a worker has fetched and neither acknowledged nor given back, as it
    reported some seconds ago at most: those that run, that wait for a slot, and that wait for their
    next attempt. Listed are workers of disque work, and of the same class in other programs.
    """
    with Members(options) as members:
        found = members.ask(members.known(), _listing)
    for address, why in found.silent.items():
        click.echo(f"Node {address} could not be asked ({why}).", err=True)
    workers: dict[str, ConnectedWorker] = {}
    for address, listing in found.of.items():
        for worker in connections(address, listing):
            known = workers.get(worker.status.worker)
            workers[worker.status.worker] = worker if known is None else known.joined(worker)
    _show([workers[name] for name in sorted(workers)], as_json, as_csv)


def _show(workers: list[ConnectedWorker], as_json: bool, as_csv: bool) -> None:
    if as_json:
        for worker in workers:
            output.document(_values(worker))
    elif as_csv:
        rows = [_values(worker).values() for worker in workers]
        names = ("worker", "slots", "held", "queues", "more_queues", "hosts", "nodes", "age_s")
        output.csv(names, [[_joined(value) for value in row] for row in rows])
    else:
        output.show(_COLUMNS, [tuple(map(printable, _cells(worker))) for worker in workers])


def _values(worker: ConnectedWorker) -> dict[str, object]:
    status = worker.status
    return {
        "worker": status.worker,
        "slots": status.slots,
        "held": status.held,
        "queues": [queue for queue in status.queues if queue is not None],
        "more_queues": None in status.queues,
        "hosts": worker.hosts,
        "nodes": worker.nodes,
        "age_s": worker.age_s,
    }


def _joined(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _cells(worker: ConnectedWorker) -> tuple[str, ...]:
    status = worker.status
    return (
        status.worker,
        str(status.slots),
        str(status.held),
        " ".join("…" if queue is None else queue for queue in status.queues),
        " ".join(worker.hosts),
        " ".join(worker.nodes),
        str(worker.age_s),
    )

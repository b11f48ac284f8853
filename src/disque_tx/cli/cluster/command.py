"""``disque cluster create|check|info|meet|forget|…``: the nodes of a cluster, all at once."""

from __future__ import annotations

from typing import Final

import attrs
import click

from disque_tx.cli.cluster import downgrade, evacuate, joining
from disque_tx.cli.cluster.joining import NodeJoining, NotJoined, bus_configs, causes
from disque_tx.cli.cluster.options import a_node, agreed, as_json_option, some_nodes, yes_option
from disque_tx.cli.connection import explained
from disque_tx.cli.formatting import human_size
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.base.survey import basic_view, place, survey
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused, printable
from disque_tx.diagnosis.facts import Survey, SurveyedNode
from disque_tx.diagnosis.finding import Finding
from disque_tx.diagnosis.findings import findings, is_problem
from disque_tx.text.counts import counted

_ID_LENGTH: Final = 40
_UNKNOWN: Final = ("?",) * 6
_COLUMNS: Final = ("node", "id", "state", "version", "jobs", "queues", "memory", "clients", "links")


_timeout = click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(0, 86_400),
    default=60.0,
    show_default=True,
    help="Seconds within which all nodes must know each other.",
)


@click.group("cluster")
def command() -> None:
    """Create, check and change clusters.

    In these commands an address with a port follows the verb. The server's own CLUSTER commands
    have none there, and are sent to it unchanged: disque cluster nodes.
    """


# -- looking -------------------------------------------------------------------------------------


@command.command("check")
@some_nodes
@as_json_option
@click.pass_obj
def check(options: ClientOptions, nodes: tuple[str, ...], as_json: bool) -> int:
    """Check all nodes of the cluster; print what is wrong and what to do.

    Other nodes are found through the named ones. The exit status is 1 when there is a problem.
    """
    found = _survey(options, nodes)
    result = findings(found)
    (_print_json if as_json else _print_text)(found, result)
    return 1 if any(map(is_problem, result)) else 0


def _survey(options: ClientOptions, nodes: tuple[str, ...]) -> Survey:
    """The state of all nodes of a cluster. With TLS only named nodes are asked: the nodes do not
    know each other's TLS ports."""
    with Members(options) as members:
        return survey(members, nodes, discover=options.encryption is None)


def _print_json(found: Survey, result: list[Finding]) -> None:
    views = found.views.values()
    listening = {
        view.address: {whom: view.listening(whom) for whom in ("clients", "bus")} for view in views
    }
    document = {
        "nodes": [view.address for view in views],
        "listening": listening,
        "findings": [attrs.asdict(each) for each in result],
    }
    output.document(document)


def _print_text(found: Survey, result: list[Finding]) -> None:
    for finding in result:
        click.echo(f"{finding.severity}: {finding.node}: {finding.what}\n    {finding.advice}")
    for view in found.views.values():
        clients, bus = (", ".join(view.listening(whom)) for whom in ("clients", "bus"))
        if clients:
            asked = f"listens for clients on {clients}; for other nodes on {bus or 'no address'}"
            click.echo(f"{view.address}: {printable(asked)}")
    problems = sum(map(is_problem, result))
    verdict = counted(problems, "problem") if problems else "no problem"
    click.echo(f"{counted(len(found.views), 'node')} answered: {verdict}")


@command.command("info")
@some_nodes
@as_json_option
@output.as_csv
@click.pass_obj
def info(options: ClientOptions, nodes: tuple[str, ...], as_json: bool, as_csv: bool) -> int:
    """Print a table of all nodes of the cluster. The exit status is 1 when one does not answer."""
    found = _survey(options, nodes)
    rows = [_row(view, found) for view in sorted(found.views.values(), key=lambda v: v.address)]
    rows += [(silent, "?", "unreachable", *_UNKNOWN) for silent in sorted(found.silent)]
    if as_json:
        output.document(_exact(found))
    elif as_csv:
        exact = _exact(found)
        columns = list(dict.fromkeys(name for row in exact for name in row))
        output.csv(columns, [[_cell(row.get(name)) for name in columns] for row in exact])
    else:
        output.show(_COLUMNS, rows)
    return 1 if found.silent else 0


def _cell(value: object) -> object:
    return ",".join(value) if isinstance(value, list) else value


def _exact(found: Survey) -> list[dict[str, object]]:
    """The table for programs: full IDs, and exact numbers."""
    views = sorted(found.views.values(), key=lambda view: view.address)
    rows: list[dict[str, object]] = [
        {
            "node": view.address,
            "id": view.id,
            "state": _state(view, found).split(","),
            "version": view.info.get("disque_version"),
            "disque_tx_version": view.info.get("disque_tx_version"),
            "jobs": view.number("registered_jobs"),
            "queues": view.number("registered_queues"),
            "memory_bytes": view.number("used_memory"),
            "maxmemory_bytes": view.maxmemory,
            "clients": view.number("connected_clients"),
            "links": sum(node.connected for node in view.others),
            "others": len(view.others),
        }
        for view in views
    ]
    silent = sorted(found.silent.items())
    return rows + [
        {"node": address, "id": None, "state": ["unreachable"], "why": why}
        for address, why in silent
    ]


def _row(view: SurveyedNode, found: Survey) -> tuple[str, ...]:
    links = sum(node.connected for node in view.others)
    return (
        view.address,
        view.id[:8],
        _state(view, found),
        printable(view.info.get("disque_version", "?")),
        str(view.number("registered_jobs")),
        str(view.number("registered_queues")),
        human_size(view.number("used_memory")),
        str(view.number("connected_clients")),
        f"{links}/{len(view.others)}",
    )


def _state(view: SurveyedNode, found: Survey) -> str:
    """The node's flags, in its own table and in those of the others."""
    flags = set(view.flags)
    for other in found.views.values():
        if other is not view:
            seen = other.table.get(view.id)
            flags |= seen.flags if seen is not None else {"unknown to some"}
    return ",".join(sorted(map(printable, flags))) or "ok"


# -- changing ------------------------------------------------------------------------------------


@command.command("create")
@some_nodes
@yes_option
@_timeout
@click.pass_obj
def create(options: ClientOptions, nodes: tuple[str, ...], yes: bool, timeout_s: float) -> None:
    """Make a cluster of nodes that know no other nodes yet, or only each other.

    ``create`` may be repeated: nodes that already know each other stay as they are.
    """
    with Members(options) as members:
        views = _views(members, nodes, timeout_s)
        ids = {view.id for view in views}
        for view in views:
            strangers = view.met - ids
            if strangers:
                raise NotJoined(
                    f"{view.address} knows nodes that were not named ({', '.join(strangers)})."
                    " Name them too, or add nodes to their cluster with disque cluster meet."
                )
        _join(
            members,
            views,
            [],
            ids,
            f"Make a cluster of {len(views)} nodes?",
            yes=yes,
            timeout_s=timeout_s,
        )


@command.command("meet")
@a_node
@some_nodes
@yes_option
@_timeout
@click.pass_obj
def meet(
    options: ClientOptions, node: str, nodes: tuple[str, ...], yes: bool, timeout_s: float
) -> None:
    """Add the other nodes, and all that they know, to the cluster of the first."""
    with Members(options) as members:
        views = _views(members, (node, *(each for each in nodes if each != node)), timeout_s)
        ids = set().union(*(view.met for view in views))
        question = f"Make one cluster of the {len(ids)} nodes that these know?"
        # With TLS, nodes do not know each other's ports for clients.
        others = joining.others(views) if options.encryption is None else []
        _join(members, views, others, ids, question, yes=yes, timeout_s=timeout_s)


def _views(members: Members, nodes: tuple[str, ...], timeout_s: float) -> list[SurveyedNode]:
    """The state of the nodes to join, in the order of ``nodes``."""
    found = joining.answering(members, nodes, timeout_s, lambda text: click.echo(text, err=True))
    if found.silent:
        asked = "; ".join(f"{silent}: {why}" for silent, why in found.silent.items())
        raise NotJoined(f"Not all nodes answer ({asked}). Nothing was changed.")
    views = list(found.of.values())
    if len({view.id for view in views}) < len(views):
        raise NotJoined("Two of the addresses are the same node. Nothing was changed.")
    if len({view.info.get("disque_version") for view in views}) > 1:
        raise NotJoined("The nodes have different versions. Nothing was changed.")
    return views


def _join(
    members: Members,
    views: list[SurveyedNode],
    others: list[str],
    ids: set[str],
    question: str,
    *,
    yes: bool,
    timeout_s: float,
) -> None:
    if joining.is_joined(views, ids):
        click.echo(f"The {len(ids)} nodes already know each other.")
        return
    addresses = [view.address for view in views]
    places = {each: joining.resolve_for_meet(each) for each in addresses}
    agreed(question, yes)
    buses = bus_configs(members, places)
    why = causes(buses, {each: found.ip for each, found in places.items()})
    for cause in why:
        click.echo(f"Note: {cause}", err=True)
    to_meet = [
        attrs.evolve(places[each], bus_port=buses[each].port if each in buses else 0)
        for each in addresses[1:]
    ]
    work = NodeJoining(members, addresses[0], addresses + others, to_meet, ids, causes=why)
    with progress("links", work.pairs) as advance:
        work.run(timeout_s, advance)
    click.echo(f"The {len(ids)} nodes know each other.")


@command.command("forget")
@a_node
@click.argument("node_id", metavar="NODE-ID")
@yes_option
@click.pass_obj
def forget(options: ClientOptions, node: str, node_id: str, yes: bool) -> int:
    """Make all nodes of a cluster forget a node, which should be stopped before.

    A node that cannot be asked would bring it back a minute later. The exit status is 1 then.
    """
    node_id = node_id.lower()
    if len(node_id) != _ID_LENGTH:
        raise click.UsageError(f"NODE-ID has {_ID_LENGTH} characters; see disque cluster nodes.")
    with Members(options) as members:
        found = survey(members, [node], basic_view, discover=options.encryption is None)
        if not any(node_id in view.table for view in found.views.values()):
            raise click.UsageError(f"No node knows {printable(node_id)!r}.")
        asked = [view.address for view in found.views.values() if view.id != node_id]
        agreed(_warning(found, node_id, len(asked)), yes)
        answers = members.ask(asked, lambda client: _forget(client, node_id))
    click.echo(f"{node_id} is forgotten by {counted(len(answers.of), 'node')}.")
    missed = {**found.silent, **answers.silent}
    for address in _places(found, node_id):
        missed.pop(address, None)
    for silent, why in missed.items():
        click.echo(
            f"{silent} could not be asked ({explained(why).rstrip('.')}). It will bring the node"
            " back: make sure that it answers, and repeat this.",
            err=True,
        )
    return 1 if missed else 0


def _places(found: Survey, node_id: str) -> set[str]:
    """The addresses of a node in the tables of others."""
    tables = [view.table for view in found.views.values()]
    return {place(table[node_id]) for table in tables if node_id in table}


def _warning(found: Survey, node_id: str, asked: int) -> str:
    alive = " It still runs: let it leave first (disque cluster evacuate), then stop it."
    return f"Make {counted(asked, 'node')} forget {node_id}?" + (
        alive if node_id in found.views else ""
    )


def _forget(client: Disque, node_id: str) -> None:
    """CLUSTER FORGET; no error if the node does not know it any more."""
    try:
        client.cluster_forget(node_id)
    except Refused as refused:
        if "Unknown node" not in str(refused):
            raise


command.add_command(downgrade.command)
command.add_command(evacuate.command)

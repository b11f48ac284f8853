"""``disque cluster downgrade``: what is lost when the nodes of a cluster are replaced by originals.

1. Policies, schedules and keys are not known to originals: a queue does what the jobs' own options
   say, nothing recurs, and a job that is added twice is there twice.
2. A job that waits in a backoff comes back after its RETRY.
3. A log with records of keys is refused by originals, unless it is written without them
   (``disque-check-aof --original``).
"""

from __future__ import annotations

from typing import Final

import attrs
import click

from disque_tx.cli.cluster.options import agreed, as_json_option, some_nodes, yes_option
from disque_tx.cli.connection import explained
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.survey import basic_view, survey
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused, printable
from disque_tx.client.requests.schedules import Schedule
from disque_tx.text.counts import counted

#: Fields of INFO policies → what they count, for people: a noun in the plural, and more.
_COUNTED: Final = {
    "keys": "keys of jobs: ADDJOB with UNIQUE is refused by originals",
    "jobs_in_backoff": "jobs in a backoff: it ends with RETRY, perhaps sooner",
}


@attrs.frozen
class Losses:
    """What one node would lose. ``policies``: patterns; ``schedules``: names. ``counts``: of what
    there are how many, for people. ``keys_in_log``: originals refuse to load the log of
    the node as it is. An original itself loses nothing."""

    policies: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    counts: dict[str, int] = attrs.Factory(dict)
    keys_in_log: bool = False

    def __bool__(self) -> bool:
        return bool(self.policies or self.schedules or self.counts)

    def lines(self) -> list[str]:
        """For people, a line each."""
        found = []
        if self.policies:
            found.append(f"{_policies(len(self.policies))}: {_some(self.policies)}")
        if self.schedules:
            found.append(f"{counted(len(self.schedules), 'schedule')}: {_some(self.schedules)}")
        for what, count in self.counts.items():
            nouns, _, rest = what.partition(" ")
            found.append(f"{counted(count, nouns.removesuffix('s'))} {rest}")
        if self.keys_in_log:
            found.append("keys in the log: once the node is stopped, disque-check-aof --original")
        return found


def losses(node: Disque) -> Losses:
    """Ask one node."""
    try:
        policies = tuple(node.policy_list())
    except Refused:
        return Losses()
    info = node.info("policies")
    counts = {what: int(info.get(name, "0")) for name, what in _COUNTED.items()}
    logged = node.info("persistence").get("aof_enabled") == "1"
    return Losses(
        policies,
        tuple(schedule.name for schedule in _schedules(node)),
        {what: count for what, count in counts.items() if count},
        logged and info.get("keys", "0") != "0",
    )


def give_up(node: Disque) -> tuple[int, int]:
    """Delete all policies and schedules of the cluster; how many patterns, and how many
    schedules."""
    schedules = _schedules(node)
    for schedule in schedules:
        node.schedule_del(schedule.name)
    patterns = node.policy_list()
    for pattern in patterns:
        node.policy_del(pattern)
    return len(patterns), len(schedules)


def _given_up(members: Members, asked: list[str]) -> tuple[int, int]:
    """The same at the first of these nodes that has any: originals among them know of none."""
    answers = members.try_to_ask(asked, losses).of
    having = [at for at, one in answers.items() if one.policies or one.schedules]
    return members.ask(having[:1], give_up).of[having[0]] if having else (0, 0)


def _schedules(node: Disque) -> list[Schedule]:
    try:
        return node.schedule_list()
    except Refused:
        return []


_SHOWN: Final = 5


def _policies(patterns: int) -> str:
    return f"policies of {counted(patterns, 'pattern')}"


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


@click.command("downgrade")
@some_nodes
@click.option(
    "--check", "only_check", is_flag=True, help="Show what --do would delete; the default."
)
@click.option("--do", "do", is_flag=True, help="Delete the policies and schedules of the cluster.")
@yes_option
@as_json_option
@click.pass_obj
def command(
    options: ClientOptions,
    nodes: tuple[str, ...],
    only_check: bool,
    do: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """List what is lost when the nodes of the cluster are replaced by originals.

    Other nodes are found through the named ones. The exit status is 1 if there is something, or a
    node cannot be asked. With --do policies and schedules are deleted, after a question.
    """
    if only_check and do:
        raise click.UsageError("Use --check or --do.")
    with Members(options) as members:
        found = survey(members, nodes, basic_view, discover=options.encryption is None)
        asked = [view.address for view in found.views.values()]
        if do:
            agreed("Delete all policies and schedules of the cluster?", yes)
            policies, schedules = _given_up(members, asked)
            deleted = f"{_policies(policies)}, {counted(schedules, 'schedule')}"
            click.echo(f"Deleted: {deleted}.", err=True)
        answers = members.try_to_ask(asked, losses)
    if as_json:
        output.document({at: attrs.asdict(one) for at, one in answers.of.items()})
    else:
        for at, one in answers.of.items():
            click.echo("\n".join(printable(f"{at}: {line}") for line in one.lines() or ["nothing"]))
    missed = {**found.silent, **answers.silent}
    for silent, why in missed.items():
        click.echo(f"{silent} could not be asked ({explained(why).rstrip('.')}).", err=True)
    return 1 if missed or any(answers.of.values()) else 0

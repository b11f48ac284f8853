"""``disque-pipeline``: one group of commands, defined in other modules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Final

import click

from disque_tx.spark.pipeline.engines.runner import ENGINES, SPARK, PipelineRunner

_PIPELINE: Final = "disque_tx.spark.pipeline"
#: Command → the module below that defines it, as NAME_command.
_COMMANDS: Final = {
    **dict.fromkeys(("ingest", "lifecycle", "audit"), "cli.analysis"),
    "report": "cli.reporting",
    "export": "transfer.export",
    "load": "transfer.load",
    "replay": "transfer.replay",
    **dict.fromkeys(("optimize", "vacuum", "expire", "forget", "history"), "cli.upkeep"),
    "convert": "cli.upkeep",
    "stream": "transfer.streaming",
    "drain": "transfer.drain",
}


class _LazyGroup(click.Group):
    """A group that imports a command when it is run: most of them import Spark's library."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        found = getattr(import_module(f"{_PIPELINE}.{place}"), f"{cmd_name}_command")
        assert isinstance(found, click.Command)
        return found


@click.group(
    name="disque-pipeline",
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=SPARK,
    show_default=True,
    help="What computes: Spark, or DuckDB in this process, without Java.",
)
@click.option("--master", help="Where Spark runs; by default as spark-submit says, or local[*].")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress bars on stderr; by default on terminals.",
)
@click.pass_context
def command(
    context: click.Context,
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    progress: bool | None,
) -> None:
    """Find out what happened to jobs, from the event logs of many nodes."""
    if engine != SPARK and (master is not None or conf):
        wrong = "--conf" if master is None else "--master"
        raise click.UsageError(f"{wrong} is for Spark: leave it out, or --engine {engine}.")
    context.obj = PipelineRunner(
        master or _submitted_or("local[*]"), _settings(conf), progress, engine
    )


def _submitted_or(master: str) -> str | None:
    """``None`` where ``spark-submit`` chose a master."""
    return None if "PYSPARK_GATEWAY_PORT" in os.environ else master


def _settings(words: Iterable[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.UsageError(f"--conf {word!r} is not KEY=VALUE.")
        settings[key] = value
    return settings


def main() -> None:
    """The program ``disque-pipeline``."""
    command(prog_name="disque-pipeline")

"""``python -m disque_tx.sim``: one seed, or a campaign of many."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import attrs
import click

from disque_tx.sim.campaign import (
    COVERAGE_RUNS,
    SeedOutcome,
    Summary,
    checked_run,
    minimise,
    outcomes,
)
from disque_tx.sim.run import SimulatedRun
from disque_tx.sim.stage.shape import DEAL, Shape, table

#: Seeds that failed once; they are part of every campaign.
SEEDS: Final = Path(__file__).with_name("seeds.txt")
_TRACE_LINES: Final = 200
#: Runs between lines of progress, where there is no terminal for a bar.
_PROGRESS_RUNS: Final = 100


def known_seeds() -> list[int]:
    """The seeds of ``seeds.txt``: a number per line, the reason behind it."""
    lines = SEEDS.read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def command(seed: int) -> str:
    """What replays a seed."""
    return f"python -m disque_tx.sim --seed {seed}"


def parse_range(text: str) -> list[int]:
    """``A-B``, both included, or several of these with commas between them; ``ValueError`` for
    anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last) + 1)
    return found


@click.command(help="Run a simulated cluster and check what it promises.")
@click.option("--seed", type=int, help="One run, reported in detail.")
@click.option(
    "--seeds", metavar="A-B[,C-D]", help="A campaign over these seeds and the known ones."
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Runs at the same time.")
@click.option("--trace", is_flag=True, help="With --seed: print every event.")
@click.option(
    "--pairs",
    is_flag=True,
    help=f"Print which workload meets which fault in --seeds (1-{DEAL}), and run nothing.",
)
@click.option(
    "--minimise",
    "tries",
    type=int,
    default=60,
    show_default=True,
    metavar="N",
    help="Runs spent on making a failing run smaller.",
)
def main(
    seed: int | None, seeds: str | None, jobs: int, trace: bool, pairs: bool, tries: int
) -> None:
    """The command; exit status 1 when a promise was broken."""
    if pairs and seeds is None:
        seeds = f"1-{DEAL}"
    if (seed is None) == (seeds is None):
        raise click.UsageError("Give either --seed N or --seeds A-B.")
    if seed is not None:
        sys.exit(0 if _one(seed, None, trace) else 1)
    assert seeds is not None
    try:
        numbers = parse_range(seeds)
    except ValueError:
        raise click.BadParameter(
            f"'{seeds}' is not like 1-200 or 1-50,90-99", param_hint="--seeds"
        ) from None
    if pairs:
        click.echo(table(numbers))
        return
    sys.exit(0 if _campaign(numbers, jobs, tries) else 1)


def _one(seed: int, shape: Shape | None, trace: bool) -> bool:
    run = checked_run(seed, shape, keep_trace=True)
    breaches = run.execute()
    if trace:
        click.echo("\n".join(run.world.lines))
    elif breaches:
        click.echo("\n".join(_relevant_lines(run, breaches)))
    click.echo(f"seed {seed}: {attrs.asdict(run.shape)}")
    click.echo(f"{len(run.history.added)} jobs added, {len(run.history.delivered)} deliveries")
    click.echo(f"trace {run.world.trace_hash()}")
    for breach in breaches:
        click.echo(f"BROKEN  {breach}")
    return not breaches


def _relevant_lines(run: SimulatedRun, breaches: list[str]) -> list[str]:
    """The last lines of the trace that speak of a job of the first breach, or all when none is."""
    job_id = breaches[0].split(":")[0]
    lines = [line for line in run.world.lines if job_id in line]
    return (lines or list(run.world.lines))[-_TRACE_LINES:]


def _campaign(numbers: list[int], jobs: int, tries: int) -> bool:
    summary = Summary()
    seeds = list(dict.fromkeys([*known_seeds(), *numbers]))
    with click.progressbar(outcomes(seeds, jobs), length=len(seeds), file=sys.stderr) as bar:
        for done, one in enumerate(bar, 1):
            summary.add(one)
            if one.breaches:
                click.echo(f"\nFailed: {command(one.seed)}", err=True)
            elif done % _PROGRESS_RUNS == 0 and not sys.stderr.isatty():
                click.echo(f"{done} of {len(seeds)} runs", err=True)
    click.echo(summary.table())
    for failed in summary.failed:
        _report(failed)
    if summary.failed and tries > 0:
        _show_smaller(summary.failed[0], tries)
    missing = summary.missing() if summary.runs >= COVERAGE_RUNS else []
    for name in missing:
        click.echo(f"MISSING {name} never happened in this campaign")
    click.echo(f"{summary.runs} runs, {len(summary.failed)} failed")
    return not summary.failed and not missing


def _report(failed: SeedOutcome) -> None:
    click.echo(f"\n{command(failed.seed)}")
    for breach in failed.breaches:
        click.echo(f"  BROKEN  {breach}")


def _show_smaller(failed: SeedOutcome, tries: int) -> None:
    """The first failure again, with less around it."""
    click.echo(f"\nSeed {failed.seed} made smaller:")
    _one(failed.seed, minimise(failed.seed, failed.shape, tries), False)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of hashed things must be the same in every process.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "disque_tx.sim", *sys.argv[1:]])
    main()

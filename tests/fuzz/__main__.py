"""Run a fuzzer: ``python -m tests.fuzz bus|job|nodesfile [options of libFuzzer]``.

It needs atheris (``pip install 'disque-tx[fuzz]'``) and the package as it is, not compiled. It runs
until it finds something, or as long as ``-max_total_time=<seconds>`` says; what it found, and the
inputs worth starting with the next time, are kept in ``build/fuzz``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["disque_tx"]):
    from tests.fuzz.checks import (
        bus_seeds,
        check_bus,
        check_job,
        check_nodesfile,
        job_seeds,
        nodesfile_seeds,
    )

TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "bus": (check_bus, bus_seeds),
    "job": (check_job, job_seeds),
    "nodesfile": (check_nodesfile, nodesfile_seeds),
}
FOLDER = Path("build", "fuzz")


def main() -> None:
    """Fuzz the target that the command line names."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python -m tests.fuzz {'|'.join(TARGETS)} [options of libFuzzer]")
    name = sys.argv.pop(1)
    check, seeds = TARGETS[name]
    corpus = FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([*sys.argv, f"-artifact_prefix={FOLDER}/{name}-", str(corpus)], check)
    atheris.Fuzz()


main()

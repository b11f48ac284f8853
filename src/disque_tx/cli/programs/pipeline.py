"""The program ``disque-pipeline``, which needs the extra ``spark``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the program; returns 2 if a package that it needs is not installed."""
    try:
        from disque_tx.spark.pipeline.cli.program import main as run

        # Commands import what they need when they are run.
        run()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("disque_tx"):
            raise
        print(
            f"disque-pipeline needs {error.name}: pip install 'disque-tx[spark]'", file=sys.stderr
        )
        return 2
    return 0

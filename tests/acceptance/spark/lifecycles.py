"""A process that makes results of a table of events; after each step it prints its name, and waits
for a line.

Arguments: TABLE OUT, and ``whole`` or ``update``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame

from disque_tx.spark import session
from disque_tx.spark.pipeline.lifecycle import results
from disque_tx.spark.pipeline.outputs import Output

#: For a few hundred rows, compiling a query would take longer than running it.
SETTINGS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class SteppingOutput(Output):
    """A table of results that stops after each step."""

    def write(self, rows: DataFrame, settled: Column | None = None) -> None:
        """Write new rows."""
        super().write(rows, settled)
        self._stop("written")

    def publish(self, *words: Any) -> None:
        """Publish them."""
        super().publish(*words)
        self._stop("published")

    def _stop(self, step: str) -> None:
        print(step, self.root.rpartition("/")[2], flush=True)
        sys.stdin.readline()


def main(table: str, out: str, how: str) -> None:
    """Run to the end, or until killed."""
    results.Output = SteppingOutput  # type: ignore[attr-defined]
    results.WHOLE_BELOW = 0  # type: ignore[misc]
    spark = session("killed", "local[2]", SETTINGS)
    print(results.lifecycle(spark, table, out, 3600, how == "whole").how, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

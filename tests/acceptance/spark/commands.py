"""A process that runs commands of ``disque-pipeline`` with one Spark: a list of words in JSON per
line of its input, and the status and output of each per line of its output."""

from __future__ import annotations

import json
import sys
import traceback

from click.testing import CliRunner

from disque_tx.spark.pipeline.cli.program import command

#: For a few hundred rows, compiling a query would take longer than running it.
_SETTINGS = (
    *("spark.sql.shuffle.partitions=2", "spark.sql.codegen.wholeStage=false"),
    *("spark.sql.codegen.factoryMode=NO_CODEGEN", "spark.log.level=OFF"),
)
#: What is written before a command.
OPTIONS = ("--no-progress", *(word for setting in _SETTINGS for word in ("--conf", setting)))


def main() -> None:
    """Run until the input ends."""
    for line in sys.stdin:
        done = CliRunner().invoke(command, ["--master", "local[2]", *OPTIONS, *json.loads(line)])
        output = done.output
        if not isinstance(done.exception, SystemExit | None):
            output += "".join(traceback.format_exception(done.exception))
        print(json.dumps([done.exit_code, output]), flush=True)


if __name__ == "__main__":
    main()

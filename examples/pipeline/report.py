"""The whole pipeline, on the event logs in a folder: ``python report.py FOLDER REPORT``."""

from __future__ import annotations

import sys

import click
from steps import step

from disque_tx.spark.pipeline.cli.program import command


def main(folder: str, html: str) -> None:
    """Make the tables and the report. The exit status of the audit is ignored."""
    table, out = f"{folder}/table", f"{folder}/out"
    _pipeline(4, folder, "ingest", f"{folder}/events", "--into", table)
    _pipeline(5, folder, "lifecycle", table, "--into", out, "--window", "1")
    _pipeline(6, folder, "audit", table, "--limit", "3")
    _pipeline(7, folder, "report", out, "--events", table, "--html", html)


def _pipeline(number: int, folder: str, *words: str) -> None:
    """Run a command in the session of the one before it, since starting one takes seconds."""
    settings = (f"local.dir={folder}", "sql.shuffle.partitions=2")
    options = [option for setting in settings for option in ("--conf", f"spark.{setting}")]
    try:
        with step(number, f"disque-pipeline {words[0]}"):
            command.main([*options, *words], standalone_mode=False)
    except click.ClickException as error:
        raise SystemExit(error.format_message()) from error


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""Where ``load`` and ``replay`` put jobs: their common options, and the write itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import click

from disque_tx.messages.limits import REPLICATE_RANGE, RETRY_RANGE
from disque_tx.spark.errors import PipelineError
from disque_tx.spark.options import write_options
from disque_tx.spark.pipeline import wording

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SECONDS: Final = click.IntRange(*RETRY_RANGE)
#: An error of the sink within the text of Spark's error.
_CAUSE: Final = re.compile(r"disque_tx\.[\w.]+: ([^\n]+)")
_Command = TypeVar("_Command", bound=Callable[..., Any])


class NotWritten(PipelineError):
    """Jobs could not be added."""


@attrs.frozen
class TransferTarget:
    """The nodes, and how jobs are added. ``options``: of the format ``disque``."""

    servers: str
    options: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    @classmethod
    def from_options(
        cls,
        servers: str,
        *,
        replicate: int | None,
        retry_s: int | None,
        ttl_s: int | None,
        **words: Any,
    ) -> TransferTarget:
        """From the command line. ``words``: arguments of :func:`connection`.

        :raises BadOption: when an address or an option is invalid.
        """
        wanted = {"disque.replicate": replicate, "retry": retry_s, "ttl": ttl_s}
        options = {name: str(value) for name, value in wanted.items() if value is not None}
        options |= connection(**words)
        target = cls(servers, options)
        write_options(target.all_options())
        return target

    def all_options(self) -> dict[str, str]:
        """The options of a staged write: no job becomes visible before all have been added."""
        return {"disque.servers": self.servers, "deliveryMode": "staged", **self.options}

    def write(self, jobs: DataFrame, queue: str | None = None) -> None:
        """Add jobs: all, or none. ``queue``: of all of them, if there is no such column.

        :raises NotWritten: when they cannot be added, with the reason.
        """
        # Not above: drain has the same options, and runs without Spark.
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        options = self.all_options() | ({} if queue is None else {"queue": queue})
        try:
            jobs.write.format("disque").mode("append").options(**options).save()
        except (PySparkException, Py4JJavaError) as error:
            cause = _CAUSE.search(str(error))
            if cause is None:
                raise
            raise NotWritten(cause[1]) from error


def connection(
    *,
    password: str | None,
    tls: bool,
    cacert: str | None,
    cert: str | None,
    key: str | None,
    password_file: str | None = None,
) -> dict[str, str]:
    """Options of the format ``disque`` from those of the command line that say how to connect."""
    wanted = {
        # The variable is for all programs of somebody, the file for this one.
        "disque.password": None if password_file else password,
        "disque.passwordFile": password_file,
        "disque.tls": "true" if tls else None,
        "disque.tls.ca": cacert,
        "disque.tls.certificate": cert,
        "disque.tls.key": key,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def connection_options(command: _Command) -> _Command:
    """``servers``, and arguments of :func:`connection`."""
    for option in reversed(_connection_options()):
        command = option(command)
    return command


def target_options(command: _Command) -> _Command:
    """Options of a command that adds jobs: arguments of :meth:`TransferTarget.from_options`."""
    for option in reversed((*_connection_options(), *_adding_options())):
        command = option(command)
    return command


def _connection_options() -> list[Callable[[_Command], _Command]]:
    file = click.Path(exists=True, dir_okay=False)
    return [
        click.option("--servers", required=True, help="Nodes of a cluster: host:port,host:port."),
        click.option(
            "--password",
            envvar="DISQUE_PASSWORD",
            help="Better set DISQUE_PASSWORD: process lists show arguments.",
        ),
        click.option("--password-file", type=file, help="A file whose first line it is."),
        click.option("--tls", is_flag=True, help="Use TLS."),
        click.option("--cacert", type=file, help="PEM file of the authorities to trust."),
        click.option("--cert", type=file, help="PEM file of the client's own certificate."),
        click.option("--key", type=file, help="PEM file of its private key."),
    ]


def _adding_options() -> list[Callable[[_Command], _Command]]:
    return [
        click.option(
            "--replicate", type=click.IntRange(*REPLICATE_RANGE), help="Copies of each job."
        ),
        click.option("--retry", "retry_s", type=_SECONDS, help="RETRY of the jobs, in seconds."),
        click.option("--ttl", "ttl_s", type=_SECONDS, help="TTL of the jobs, in seconds."),
    ]


def asking_options(command: _Command) -> _Command:
    """``--dry-run`` and ``--yes``, as ``dry_run`` and ``yes``."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask before jobs are added."),
        click.option("--dry-run", is_flag=True, help="Show what would be added, and stop."),
    ):
        command = option(command)
    return command


def confirmed(
    lines: Iterable[str], jobs: int, target: TransferTarget, dry_run: bool, yes: bool
) -> bool:
    """Print what was found; returns whether there is something to add, and the user agrees.

    :raises click.Abort: when the user does not agree.
    """
    for line in lines:
        click.echo(line)
    if dry_run or not jobs:
        return False
    if not yes:
        click.confirm(
            f"Add {wording.counted(jobs, 'job')} at {target.servers}?", abort=True, err=True
        )
    return True

"""The options of formats, and those of ``disque``: where the nodes are, what to read, how to write.

Names are those of Spark's Kafka source where it has similar options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_tx.client.addresses import Address, seeds
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import BadAddress, NameNotFound, printable
from disque_tx.client.options import TLS, AddOptions, ConnectionOptions
from disque_tx.client.requests.selection import Selection
from disque_tx.client.resolving import expanded
from disque_tx.messages.limits import DELAY_RANGE, REPLICATE_RANGE, RETRY_RANGE, TTL_RANGE, U32_MAX
from disque_tx.spark.errors import BadOption
from disque_tx.spark.paths import resolved
from disque_tx.spark.schema import STAGED_DDL, jobs_ddl

#: Of a batch: each is leased as long as the batch runs.
_JOBS_MAX: Final = 1_000_000
_JOBS: Final = 50_000
#: Of a batch that is stored as a file: a task need not hold it, and larger batches cost less.
_STAGED_JOBS: Final = 200_000
#: Of a batch: its bodies are in the driver at once.
_BYTES_MAX: Final = 1 << 30
_BYTES: Final = 128 << 20
DELIVERY_MODES: Final = ("direct", "staged", "unique")
#: How long keys are kept: longer than anybody lets a failed query wait.
_KEY_FOR_S: Final = 86_400
_FORMAT: Final = "disque"
_PASSWORD_CHARACTERS_MAX: Final = 1000
_PARTITIONS_MAX: Final = 10_000
#: As GETJOB and SHOW take them; names are short in practice.
_QUEUES_MAX: Final = 1000
_PATTERNS_MAX: Final = 100
_TIMEOUT_S: Final = 10.0
#: Of :func:`password_of` and :func:`tls_of`.
SECURITY: Final = ("disque.password", "disque.passwordFile", "disque.tls.ca") + (
    "disque.tls.certificate",
    "disque.tls.key",
    "disque.tls.verify",
    "disque.tls.checkHostname",
)
_CONNECTION: Final = ("disque.servers", "disque.tls", *SECURITY)
_READ: Final = ("subscribe", "includeDetails")
_TABLE: Final = "deltaTable"
_STREAM: Final = ("subscribePattern", "checkpointLocation", "queryName", "maxJobsPerTrigger") + (
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    _TABLE,
)
_WRITE: Final = ("queue", "delay", "retry", "ttl", "deliveryMode", "keyFor") + (
    "disque.replicate",
    "disque.timeout",
    "disque.maxlen",
    "disque.async",
)
#: What Spark itself puts among the options of a format.
_SPARK_OWN: Final = frozenset(("checkpointlocation", "queryname"))
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}


class FormatOptions:
    """The options of a format as the user set them: texts by name, checked one by one.

    Spark hands them over with names in lower case; messages show them as they are documented.
    ``form``: the name of the format. ``known``: the names it has.

    :raises BadOption: when another one is set.
    """

    def __init__(self, form: str, options: Mapping[str, str], known: Iterable[str]) -> None:
        self._form = form
        self._options = {name.lower(): value for name, value in options.items()}
        names = sorted(known, key=str.lower)
        strange = set(self._options) - {name.lower() for name in names} - _SPARK_OWN
        if strange:
            raise BadOption(
                f"The format {form} has no option {', '.join(map(repr, sorted(strange)))} here."
                f" Its options are: {', '.join(names)}."
            )

    def text(self, name: str) -> str | None:
        """The text of an option; ``None`` if it is not set, or is empty."""
        return self._options.get(name.lower()) or None

    def required(self, name: str, example: str) -> str:
        """The text of an option that must be set.

        :raises BadOption: when it is not.
        """
        value = self.text(name)
        if value is None:
            raise BadOption(
                f"The format {self._form} needs the option {name}, as in"
                f" .option({name!r}, {example!r})."
            )
        return value

    def number(self, name: str, least: int, most: int) -> int | None:
        """A whole number.

        :raises BadOption: when it is not a number, or is out of its range.
        """
        value = self.text(name)
        if value is None:
            return None
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
            raise self.invalid(name, f"a whole number from {least} to {most}")
        if not least <= int(digits) <= most:
            raise self.invalid(name, f"a whole number from {least} to {most}")
        return int(digits)

    def boolean(self, name: str, otherwise: bool) -> bool:
        """True or false.

        :raises BadOption: when it is neither.
        """
        value = self.text(name)
        if value is None:
            return otherwise
        if value.strip().lower() not in _BOOLEANS:
            raise self.invalid(name, "true or false")
        return _BOOLEANS[value.strip().lower()]

    def choice(self, name: str, values: Sequence[str]) -> str:
        """The value of an option that is one of some words, by default the first.

        :raises BadOption: when it is another one.
        """
        value = (self.text(name) or values[0]).strip().lower()
        if value not in values:
            raise self.invalid(name, " or ".join(values))
        return value

    def invalid(self, name: str, wanted: str) -> BadOption:
        """The error for an invalid value."""
        value = printable(self._options.get(name.lower(), ""))
        return BadOption(f"The option {name} must be {wanted}, not {value!r}.")


@attrs.frozen
class Cluster:
    """The addresses of the nodes, and the options of connections to them."""

    addresses: tuple[Address, ...]
    connection: ConnectionOptions

    def servers(self) -> Servers:
        """Connections, none of them open yet."""
        return Servers(self.addresses, self.connection)


@attrs.frozen
class ReadOptions:
    """``patterns``: globs of further queues. ``details``: whether there are columns that GETJOB
    does not bring. Of a stream only: ``checkpoint``, ``query_name``: of the query. ``jobs_max``,
    ``bytes_max``: of a batch. ``partitions``: minimum number of tasks of a batch, ``None``: by its
    size. ``strict``: whether jobs that can no longer be read end the query. ``table``: the folder
    of the table into which jobs are written as files, resolved; ``None`` for rows of jobs."""

    cluster: Cluster
    queues: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    details: bool = False
    checkpoint: str = ""
    query_name: str | None = None
    jobs_max: int = _JOBS
    bytes_max: int = _BYTES
    partitions: int | None = None
    strict: bool = True
    table: str | None = None

    @property
    def selection(self) -> Selection:
        """What GETJOB is asked for."""
        return Selection.of(self.queues, self.patterns)

    @property
    def ddl(self) -> str:
        """The columns."""
        return jobs_ddl(self.details)


@attrs.frozen
class WriteOptions:
    """``queue``: of all jobs; overrides the column. ``adding``: options of ADDJOB where no column
    sets them. ``mode``: how they become visible, and whether again. ``key_for_s``: how long a job
    is not added again with a key that it had."""

    cluster: Cluster
    queue: str | None
    adding: AddOptions
    mode: str
    key_for_s: int

    @property
    def staged(self) -> bool:
        """Whether jobs become visible only when all have been added."""
        return self.mode == "staged"


def read_options(options: Mapping[str, str], streaming: bool) -> ReadOptions:
    """What a stream or a batch reads.

    :raises BadOption: when an option is unknown, missing, or cannot be.
    """
    if "startingoffsets" in {name.lower() for name in options}:
        raise BadOption(
            "A queue has no startingOffsets: every job is delivered until it is acknowledged. Leave"
            " the option out."
        )
    names = _CONNECTION + _READ + (_STREAM if streaming else ())
    checked = FormatOptions(_FORMAT, options, names)
    patterns = _names(checked, "subscribePattern", needed=False) if streaming else ()
    wanted = ReadOptions(
        cluster=_cluster(checked),
        queues=_names(checked, "subscribe", needed=not streaming or not patterns),
        patterns=patterns,
        details=checked.boolean("includeDetails", False),
    )
    if not streaming:
        return wanted
    table = checked.text(_TABLE)
    return attrs.evolve(
        wanted,
        checkpoint=checked.required("checkpointLocation", "the same as of writeStream"),
        query_name=checked.text("queryName"),
        jobs_max=checked.number("maxJobsPerTrigger", 1, _JOBS_MAX)
        or (_JOBS if table is None else _STAGED_JOBS),
        bytes_max=checked.number("maxBytesPerTrigger", 1, _BYTES_MAX) or _BYTES,
        partitions=checked.number("minPartitions", 1, _PARTITIONS_MAX),
        strict=checked.boolean("failOnDataLoss", True),
        table=None if table is None else resolved(table),
    )


def columns(options: Mapping[str, str]) -> str:
    """The columns of what is read with these options.

    :raises BadOption: when ``includeDetails`` is neither true nor false.
    """
    checked = FormatOptions(_FORMAT, options, options)
    details = checked.boolean("includeDetails", False)
    return jobs_ddl(details) if checked.text(_TABLE) is None else STAGED_DDL


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """How a table or a stream is written.

    :raises BadOption: when an option is unknown, missing, or cannot be.
    """
    checked = FormatOptions(_FORMAT, options, _CONNECTION + _WRITE)
    wanted = WriteOptions(
        cluster=_cluster(checked),
        queue=checked.text("queue"),
        adding=AddOptions(
            timeout_ms=checked.number("disque.timeout", 1, 600_000) or 5000,
            replicate=checked.number("disque.replicate", *REPLICATE_RANGE),
            delay_s=checked.number("delay", *DELAY_RANGE),
            retry_s=checked.number("retry", *RETRY_RANGE),
            ttl_s=checked.number("ttl", *TTL_RANGE),
            maxlen=checked.number("disque.maxlen", 1, U32_MAX),
            asynchronous=checked.boolean("disque.async", False),
        ),
        mode=checked.choice("deliveryMode", DELIVERY_MODES),
        key_for_s=checked.number("keyFor", 1, U32_MAX) or _KEY_FOR_S,
    )
    if wanted.staged:
        for name, value in (("delay", wanted.adding.delay_s), ("maxlen", wanted.adding.maxlen)):
            if value is not None:
                raise BadOption(
                    f"With deliveryMode=staged jobs cannot have a {name}; leave the option out."
                )
    return wanted


def cluster(servers: str, password: str | None = None, tls: TLS | None = None) -> Cluster:
    """The nodes of a list separated by commas.

    :raises BadOption: when it is malformed, or contains a password, which plans would show.
    """
    try:
        found = seeds(servers)
        addresses = tuple(dict.fromkeys(expanded(found.addresses)))
    except BadAddress as error:
        raise BadOption(f"The option disque.servers is not understood. {error}") from None
    except NameNotFound as error:
        raise BadOption(f"The option disque.servers cannot be used. {error}") from None
    if found.password is not None:
        raise BadOption(
            "The option disque.servers must not contain a password, as Spark shows it in plans. Set"
            " disque.password, which Spark does not show."
        )
    return Cluster(addresses, ConnectionOptions(password, tls, _TIMEOUT_S))


def _cluster(checked: FormatOptions) -> Cluster:
    servers = checked.required("disque.servers", "127.0.0.1:7711")
    tls = tls_of(checked) if checked.boolean("disque.tls", False) else None
    return cluster(servers, password_of(checked), tls)


def password_of(checked: FormatOptions) -> str | None:
    """The password, read on the driver, so that its file need not be on other machines.

    :raises BadOption: when it is set twice, or cannot be read.
    """
    file = checked.text("disque.passwordFile")
    if file is None:
        return checked.text("disque.password")
    if checked.text("disque.password") is not None:
        raise BadOption("Set disque.password or disque.passwordFile, not both.")
    try:
        with open(file, encoding="utf-8") as lines:
            password = lines.readline(_PASSWORD_CHARACTERS_MAX).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"The file of disque.passwordFile cannot be read: {error}") from None
    if not password:
        raise BadOption(f"The first line of {file} (disque.passwordFile) is empty.")
    return password


def tls_of(checked: FormatOptions) -> TLS:
    """How connections are encrypted, where they are."""
    return TLS(
        ca_file=checked.text("disque.tls.ca"),
        certificate_file=checked.text("disque.tls.certificate"),
        key_file=checked.text("disque.tls.key"),
        verify=checked.boolean("disque.tls.verify", True),
        check_hostname=checked.boolean("disque.tls.checkHostname", True),
    )


def _names(checked: FormatOptions, option: str, needed: bool) -> tuple[str, ...]:
    given = checked.required(option, "mail,orders") if needed else checked.text(option)
    if given is None:
        return ()
    names = [name.strip() for name in given.split(",")]
    most = _QUEUES_MAX if option == "subscribe" else _PATTERNS_MAX
    if not all(names) or len(names) > most:
        raise checked.invalid(option, f"names of queues, at most {most}, separated by commas")
    return tuple(dict.fromkeys(names))

"""The options of formats, and those of ``disque``: where the nodes are, what to read, how to write.

Names are those of Spark's Kafka source where it has the like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_tx.client.addresses import Address, seeds
from disque_tx.client.errors import BadAddress, printable
from disque_tx.client.options import TLS, AddOptions, ConnectionOptions
from disque_tx.spark.errors import BadOption
from disque_tx.spark.servers import Servers

#: IDs of a batch travel in its offset, some 45 bytes each.
JOBS_MAX: Final = 10_000
#: A batch read has one batch.
MODES: Final = ("peek", "lease", "drain")
DELIVERY_MODES: Final = ("direct", "staged")
DEFAULT_TTL_S: Final = 86_400
_FORMAT: Final = "disque"
_PARTITIONS_MAX: Final = 10_000
_SECONDS_MAX: Final = (1 << 32) - 1
#: As GETJOB and SHOW take them; names are short in practice.
_QUEUES_MAX: Final = 1000
_TIMEOUT_S: Final = 10.0
_CONNECTION: Final = (
    "disque.servers",
    "disque.password",
    "disque.tls",
    "disque.tls.ca",
    "disque.tls.certificate",
) + ("disque.tls.key", "disque.tls.verify", "disque.tls.checkHostname")
_STREAM: Final = ("subscribe", "maxJobsPerTrigger", "minPartitions", "failOnDataLoss")
_WRITE: Final = ("queue", "delay", "retry", "ttl", "deliveryMode") + (
    "disque.replicate",
    "disque.timeout",
    "disque.maxlen",
    "disque.async",
)
#: What Spark itself puts among the options of a format.
_SPARKS: Final = frozenset(("checkpointlocation", "queryname"))
_TRUTHS: Final = {"true": True, "yes": True, "false": False, "no": False}


class Given:
    """The options of a format as they were given: texts by name, to be checked one by one.

    Spark hands them over with names in lower case; messages show them as they are documented.
    ``form``: the name of the format. ``known``: the names it has.

    :raises BadOption: when another one was given.
    """

    def __init__(self, form: str, options: Mapping[str, str], known: Iterable[str]) -> None:
        self._form = form
        self._options = {name.lower(): value for name, value in options.items()}
        names = sorted(known, key=str.lower)
        strange = set(self._options) - {name.lower() for name in names} - _SPARKS
        if strange:
            raise BadOption(
                f"The format {form} has no option {', '.join(map(repr, sorted(strange)))} here."
                f" It has: {', '.join(names)}."
            )

    def text(self, name: str) -> str | None:
        """As it was given; ``None`` if it was not, or is empty."""
        return self._options.get(name.lower()) or None

    def needed(self, name: str, example: str) -> str:
        """As it was given.

        :raises BadOption: when it was not.
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

        :raises BadOption: when it is none, or is out of its range.
        """
        value = self.text(name)
        if value is None:
            return None
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
            raise self.bad(name, f"a whole number from {least} to {most}")
        if not least <= int(digits) <= most:
            raise self.bad(name, f"a whole number from {least} to {most}")
        return int(digits)

    def truth(self, name: str, otherwise: bool) -> bool:
        """True or false.

        :raises BadOption: when it is neither.
        """
        value = self.text(name)
        if value is None:
            return otherwise
        if value.strip().lower() not in _TRUTHS:
            raise self.bad(name, "true or false")
        return _TRUTHS[value.strip().lower()]

    def choice(self, name: str, values: Sequence[str]) -> str:
        """One of some words, by default the first.

        :raises BadOption: when it is another one.
        """
        value = (self.text(name) or values[0]).strip().lower()
        if value not in values:
            raise self.bad(name, " or ".join(values))
        return value

    def bad(self, name: str, wanted: str) -> BadOption:
        """The error for a value that cannot be."""
        value = printable(self._options.get(name.lower(), ""))
        return BadOption(f"The option {name} must be {wanted}, not {value!r}.")


@attrs.frozen
class Cluster:
    """Where the nodes are, and how to talk to them."""

    addresses: tuple[Address, ...]
    connection: ConnectionOptions

    def servers(self) -> Servers:
        """Connections, none of them open yet."""
        return Servers(self.addresses, self.connection)


@attrs.frozen
class Reading:
    """``jobs_max``: in a batch. ``partitions``: tasks of a batch at least, ``None``: as its size
    asks for. ``strict``: whether jobs that cannot be read any more end the query. ``mode``: of a
    batch read."""

    cluster: Cluster
    queues: tuple[str, ...]
    jobs_max: int
    partitions: int | None
    strict: bool
    mode: str


@attrs.frozen
class Writing:
    """``queue``: of all jobs, before what the column says. ``adding``: how they are added where no
    column says it. ``staged``: whether jobs are shown only when all are there."""

    cluster: Cluster
    queue: str | None
    adding: AddOptions
    staged: bool


def reading(options: Mapping[str, str], streaming: bool) -> Reading:
    """What a stream or a batch reads.

    :raises BadOption: when an option is unknown, missing, or cannot be.
    """
    if "startingoffsets" in {name.lower() for name in options}:
        raise BadOption(
            "A queue has no startingOffsets: every job is delivered until it is acknowledged. Leave"
            " the option out."
        )
    names = _CONNECTION + _STREAM + (() if streaming else ("mode",))
    given = Given(_FORMAT, options, names)
    return Reading(
        cluster=_cluster(given),
        queues=_queues(given),
        jobs_max=given.number("maxJobsPerTrigger", 1, JOBS_MAX) or JOBS_MAX,
        partitions=given.number("minPartitions", 1, _PARTITIONS_MAX),
        strict=given.truth("failOnDataLoss", True),
        mode="lease" if streaming else given.choice("mode", MODES),
    )


def writing(options: Mapping[str, str]) -> Writing:
    """How a table or a stream is written.

    :raises BadOption: when an option is unknown, missing, or cannot be.
    """
    given = Given(_FORMAT, options, _CONNECTION + _WRITE)
    wanted = Writing(
        cluster=_cluster(given),
        queue=given.text("queue"),
        adding=AddOptions(
            timeout_ms=given.number("disque.timeout", 1, 600_000) or 5000,
            replicate=given.number("disque.replicate", 1, 65_535),
            delay_s=given.number("delay", 0, _SECONDS_MAX),
            retry_s=given.number("retry", 0, _SECONDS_MAX),
            ttl_s=given.number("ttl", 1, _SECONDS_MAX),
            maxlen=given.number("disque.maxlen", 1, _SECONDS_MAX),
            asynchronous=given.truth("disque.async", False),
        ),
        staged=given.choice("deliveryMode", DELIVERY_MODES) == "staged",
    )
    if wanted.staged and wanted.adding.delay_s is not None:
        raise BadOption("With deliveryMode=staged jobs cannot have a delay; leave the option out.")
    return wanted


def cluster(servers: str, password: str | None = None, tls: TLS | None = None) -> Cluster:
    """The nodes of a comma list.

    :raises BadOption: when it is none, or holds a password, which plans would show.
    """
    try:
        found = seeds(servers)
    except BadAddress as error:
        raise BadOption(f"The option disque.servers is not understood. {error}") from None
    if found.password is not None:
        raise BadOption(
            "The option disque.servers must hold no password, as Spark shows it in plans. Give it"
            " with disque.password, which Spark does not show."
        )
    addresses = tuple(dict.fromkeys(found.addresses))
    return Cluster(addresses, ConnectionOptions(password, tls, _TIMEOUT_S))


def _cluster(given: Given) -> Cluster:
    servers = given.needed("disque.servers", "127.0.0.1:7711")
    return cluster(servers, given.text("disque.password"), _tls(given))


def _tls(given: Given) -> TLS | None:
    if not given.truth("disque.tls", False):
        return None
    return TLS(
        ca_file=given.text("disque.tls.ca"),
        certificate_file=given.text("disque.tls.certificate"),
        key_file=given.text("disque.tls.key"),
        verify=given.truth("disque.tls.verify", True),
        check_hostname=given.truth("disque.tls.checkHostname", True),
    )


def _queues(given: Given) -> tuple[str, ...]:
    names = [name.strip() for name in given.needed("subscribe", "mail,orders").split(",")]
    if not all(names) or len(names) > _QUEUES_MAX:
        raise given.bad("subscribe", f"names of queues, at most {_QUEUES_MAX}, with commas between")
    return tuple(dict.fromkeys(names))

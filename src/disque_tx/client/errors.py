"""Errors of the clients: one class for each case that a program may want to handle differently.

:class:`ClientError` is the base. :class:`Refused` and its subclasses are error replies, by their
code (client protocol, section 23). Texts say what happened, on which node, and what to do; they
never hold passwords, nor anything else from a request but the name of the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from disque_tx.errors import DisqueError

_CHARACTERS_MAX: Final = 200


class ClientError(DisqueError):
    """Base of every error of the clients."""


class BadAddress(ClientError, ValueError):
    """The text is not the address of a node."""


class CannotConnect(ClientError):
    """No node could be reached within the client's ``patience_s``.

    ``tried``: address → reason of the last failure there.
    """

    def __init__(self, tried: Mapping[str, str]) -> None:
        self.tried = dict(tried)
        reasons = "; ".join(f"{address}: {reason}" for address, reason in self.tried.items())
        super().__init__(
            f"No Disque node could be reached ({reasons or 'no address is known'})."
            " Check the addresses, and that the nodes run."
        )


class NameNotFound(ClientError):
    """A name that stands for the nodes of a cluster gives no address.

    ``name``: the lookup. ``reason``: why, for people.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = printable(reason)
        super().__init__(f"{name} gives no address of a node: {self.reason}.")


class ConnectionLost(ClientError):
    """The connection to one node failed, or the node did not answer in time.

    ``address``: of the node. ``reason``: why, for people. ``sent``: whether a request may have
    reached it.
    """

    def __init__(self, address: str, reason: str, sent: bool) -> None:
        self.address = address
        self.reason = reason
        self.sent = sent
        super().__init__(f"The connection to {address} failed: {reason}.")


class OutcomeUnknown(ClientError):
    """A request was sent, no answer came, and a repetition might execute it twice.

    ``command``: its name. ``address``: the node that may have executed it.
    """

    def __init__(self, command: str, lost: ConnectionLost) -> None:
        self.command = command
        self.address = lost.address
        super().__init__(
            f"{command} was sent to {lost.address}, which may or may not have executed it"
            f" ({lost.reason}). Repeat it if doing it twice does no harm."
        )


class ScanInterrupted(ClientError):
    """The connection to the node whose queues or jobs were being listed is lost; no other node can
    continue from its cursor."""

    def __init__(self, command: str, lost: ConnectionLost) -> None:
        super().__init__(
            f"{command} lost its node {lost.address} half-way ({lost.reason}). Start again."
        )


class BrokenReply(ClientError):
    """A node's answer does not parse, or is not one that the command can have."""

    def __init__(self, command: str, address: str, what: str) -> None:
        super().__init__(
            f"The answer of {address} to {command} is not understood: {what}."
            " Check that a Disque node, and no other server, listens there."
        )


class PublicationIncomplete(ClientError):
    """A message reached some of the queues subscribed to its channel, and not the others.

    ``jobs``: queue → job ID where it was added. ``missing``: the other queues. The cause is the
    error at the first of them, to which it may have been added as well if that is
    :class:`OutcomeUnknown`.
    """

    def __init__(
        self, channel: str, jobs: Mapping[str, str], missing: list[str], cause: ClientError
    ) -> None:
        self.jobs = dict(jobs)
        self.missing = missing
        super().__init__(
            f"A message for channel {channel!r} was added to {len(self.jobs)} queues and not to"
            f" {', '.join(map(repr, missing))} ({str(cause).rstrip('.')}). Add it there with"
            " add_job()."
        )


class Refused(ClientError):
    """A node answered with an error.

    ``code``: the first word of the reply. ``text``: the rest. ``command``: what was refused.
    ``address``: of the node that refused it.
    """

    advice: ClassVar[str] = ""

    def __init__(self, command: str, address: str, code: str, text: str) -> None:
        self.command = command
        self.address = address
        self.code = code
        self.text = text
        reply = f"{code} {text}".strip().rstrip(".")
        super().__init__(f"{address} refused {command}: {reply}. {self.advice}".rstrip())


class AuthenticationRefused(Refused):
    """The password is wrong, or missing where the node requires one (NOAUTH, WRONGPASS)."""

    advice = "Give the password that the node has in its directive requirepass."


class NotEnoughReplicas(Refused):
    """The job could not be copied to as many nodes as asked, or not in time (NOREPL)."""

    advice = "Ask for fewer copies, wait longer, or bring more nodes up; the job was taken back."


class OutOfMemory(Refused):
    """The node is full (OOM)."""

    advice = "Let workers catch up, or raise maxmemory."


class Paused(Refused):
    """The queue takes no jobs (PAUSED)."""

    advice = "Try later, or resume the queue with PAUSE."


class QueueFull(Refused):
    """The queue holds as many jobs as MAXLEN allows (MAXLEN)."""

    advice = "Try later."


class UnknownJob(Refused):
    """The node holds no copy of the job (NOJOB)."""

    advice = "Ask the node that delivered it; or the job has been acknowledged or has expired."


class TooLate(Refused):
    """More than half of the job's TTL is over: its next delivery cannot be postponed (TOOLATE)."""

    advice = "Finish soon: the job will be delivered again."


class OptionUnknown(Refused):
    """The node does not know an option of ADDJOB: it is an original, and UNIQUE was asked for."""

    advice = "Keys (unique) need nodes of disque-tx: originals know none."


class Leaving(Refused):
    """The node leaves the cluster or shuts down, and no other node answered (LEAVING)."""

    advice = "Give the client more addresses."


class AlreadyAcknowledged(Refused):
    """The job is done: its next delivery cannot be postponed (ACKED; not of the original)."""

    advice = "Nothing is left to do for this job."


class BadJobId(Refused):
    """The text is not the ID of a job (BADID)."""

    advice = "Pass an ID as add_job returned it, 40 characters."


class Loading(Refused):
    """The node still reads its log (LOADING), and no other node answered."""

    advice = "Try again later."


class CannotPersist(Refused):
    """The node cannot write its log (MISCONF)."""

    advice = "Check the disk of the node."


BY_CODE: Final[Mapping[str, type[Refused]]] = {
    "ACKED": AlreadyAcknowledged,
    "BADID": BadJobId,
    "LEAVING": Leaving,
    "LOADING": Loading,
    "MAXLEN": QueueFull,
    "MISCONF": CannotPersist,
    "NOAUTH": AuthenticationRefused,
    "NOJOB": UnknownJob,
    "NOREPL": NotEnoughReplicas,
    "OOM": OutOfMemory,
    "PAUSED": Paused,
    "TOOLATE": TooLate,
    "WRONGPASS": AuthenticationRefused,
}
#: Error replies whose code is a general one, by their text.
_BY_TEXT: Final[Mapping[str, type[Refused]]] = {
    "invalid password": AuthenticationRefused,
    "Client sent AUTH, but no password is set": AuthenticationRefused,
}


def refusal(command: str, address: str, line: str) -> Refused:
    """The exception for an error reply; ``line``: the reply without its dash."""
    code, _, text = printable(line).partition(" ")
    kind = BY_CODE.get(code) or _BY_TEXT.get(text, Refused)
    if command == "ADDJOB" and text == "syntax error":
        kind = OptionUnknown
    return kind(command, address, code, text)


def printable(text: str) -> str:
    """Untrusted text for an error message: one line, cut to a limit, without control characters."""
    cut = text[:_CHARACTERS_MAX]
    return "".join(character if character.isprintable() else "?" for character in cut)

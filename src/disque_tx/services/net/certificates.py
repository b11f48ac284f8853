"""The certificates that a node presents: when they expire, and loading new ones without a restart.

The bus and every listener with TLS has one. Connections that are made after :meth:`reload` get the
new one; those that exist go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import Service
from twisted.internet.interfaces import IOpenSSLContextFactory
from twisted.internet.task import LoopingCall
from zope.interface import implementer

from disque_tx.errors import ConfigError
from disque_tx.text.counts import counted

if TYPE_CHECKING:
    from OpenSSL import SSL
    from twisted.internet.ssl import CertificateOptions

    from disque_tx.services.machine.log import DaemonLog

_DAY_S: Final = 86_400
#: A certificate is near its end in its last 30 days, or the last third of a shorter life.
_SOON_S: Final = 30 * _DAY_S


def openssl_text(error: BaseException | None) -> str:
    """What an error of OpenSSL says; empty for any other error."""
    entries = error.args[0] if error is not None and error.args else None
    if not isinstance(entries, list):
        return ""
    return "; ".join(str(entry[-1]) for entry in entries) or "unknown reason"


@implementer(IOpenSSLContextFactory)
class Identity:
    """The certificate of one endpoint, ``name``, and the context factory of its TLS. ``read``:
    reads the files; raises ``ConfigError`` when they are not usable. ``protocols``: what clients
    may choose by ALPN; those that offer something else are served as if they had not."""

    def __init__(
        self,
        name: str,
        read: Callable[[], CertificateOptions],
        protocols: Sequence[bytes] = (),
    ) -> None:
        self.name = name
        self._read = read
        self._options = read()
        self._protocols = tuple(protocols)
        self._prepared = False

    def getContext(self) -> SSL.Context:
        """For Twisted, whose own choice by ALPN fails with context factories."""
        context = self._options.getContext()
        if not self._prepared:  # a context cannot be changed after its first connection
            self._prepared = True
            context.set_alpn_select_callback(self._choose)
        return context

    def _choose(self, connection: SSL.Connection, offered: list[bytes]) -> Any:
        from OpenSSL import SSL  # only where there is TLS

        chosen = [protocol for protocol in self._protocols if protocol in offered]
        return chosen[0] if chosen else SSL.NO_OVERLAPPING_PROTOCOLS

    def reload(self) -> None:
        """Read the files again; ``ConfigError`` when they are not usable: then nothing changes."""
        self._options = self._read()
        self._prepared = False

    def expires_s(self) -> float | None:
        """Unix time at which the certificate expires; ``None`` when that is unknown."""
        certificate: Any = getattr(self._options, "certificate", None)
        return _unix_s(certificate.get_notAfter()) if certificate is not None else None

    def near_end_s(self) -> float:
        """How long before its end the certificate is to be replaced, in seconds."""
        certificate: Any = getattr(self._options, "certificate", None)
        begin_s = _unix_s(certificate.get_notBefore()) if certificate is not None else None
        end_s = self.expires_s()
        if begin_s is None or end_s is None:
            return _SOON_S
        return min(_SOON_S, max(0.0, (end_s - begin_s) / 3))


def _unix_s(time_asn1: bytes | None) -> float | None:
    if time_asn1 is None:
        return None
    return datetime.strptime(time_asn1.decode(), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


class Certificates(Service):
    """Watches the certificates of a node. ``identities``: returns them."""

    def __init__(
        self,
        identities: Callable[[], list[Identity]],
        log: DaemonLog,
        reactor: Any,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._identities = identities
        self._log = log
        self._now_s = now_s
        self._loop = LoopingCall(self.check)
        self._loop.clock = reactor

    def startService(self) -> None:
        """Check now, and once a day, if there is anything to check."""
        super().startService()
        if self._identities():
            self._loop.start(_DAY_S)

    def stopService(self) -> None:
        """No more checks."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def check(self) -> None:
        """Warn of what has expired or soon will."""
        for identity in self._identities():
            expires_s = identity.expires_s()
            if expires_s is None:
                continue
            left_s = expires_s - self._now_s()
            left_days = int(left_s // _DAY_S)
            date = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
            if left_s >= identity.near_end_s():
                continue
            if left_s < 0:
                problem = f"expired on {date}: clients and nodes that check it refuse to connect"
            else:
                problem = f"expires on {date}, in {counted(left_days, 'day')}"
            self._log.warning(
                f"{identity.name}: the certificate {problem}. Put a new one in its place, then send"
                " SIGHUP to this process ('systemctl reload disque')."
            )

    def info(self) -> list[tuple[str, str]]:
        """Which certificate is the next one to expire, in how many seconds, and how long before
        its end it is to be replaced, for INFO; nothing where there is none."""
        known = [(one.expires_s(), one) for one in self._identities()]
        ends = [(expires_s, one) for expires_s, one in known if expires_s is not None]
        if not ends:
            return []
        expires_s, one = min(ends, key=lambda end: end[0])
        left_s = max(0, int(expires_s - self._now_s()))
        return [
            ("certificate_next", one.name),
            ("certificate_expires_in_seconds", str(left_s)),
            ("certificate_near_end_seconds", str(int(one.near_end_s()))),
        ]

    def reload(self) -> None:
        """Load new certificates from the files that the configuration names."""
        identities = self._identities()
        for identity in identities:
            try:
                identity.reload()
            except ConfigError as error:
                self._log.warning(f"{identity.name}: the old certificate stays in use: {error}")
            else:
                self._log.notice(f"{identity.name}: the certificate was reloaded")
        if not identities:
            self._log.notice("There are no certificates to reload")
        self.check()

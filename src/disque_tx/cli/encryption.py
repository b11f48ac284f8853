"""TLS on the connections of the command line."""

from __future__ import annotations

import socket
import ssl

from disque_tx.client.options import TLS


def wrapped(sock: socket.socket, host: str, tls: TLS, sni: str | None) -> ssl.SSLSocket:
    """The same connection, encrypted. ``sni``: the name to ask for and to check, instead of the
    host.

    :raises OSError: when the other side speaks no TLS, or nobody vouches for it; also for files
        that cannot be read. ``ssl.SSLError`` is one.
    """
    context = ssl.create_default_context(cafile=tls.ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.verify and tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context.wrap_socket(sock, server_hostname=sni or host)

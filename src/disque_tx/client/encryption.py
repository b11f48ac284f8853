"""TLS for the clients and programs that use Python's own; the Twisted client has
:mod:`disque_tx.client.tx.tls`."""

from __future__ import annotations

import ssl

from disque_tx.client.options import TLS


def ssl_context(tls: TLS) -> ssl.SSLContext:
    """TLS options as the standard library takes them.

    :raises OSError: when a file cannot be read, or holds no certificate or key.
    """
    context = ssl.create_default_context(cafile=tls.ca_file)
    # Some distributions leave the limit to a file of the system.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.check_hostname = tls.verify and tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context

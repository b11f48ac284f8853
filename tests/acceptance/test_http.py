"""HTTP with TLS, by a client that negotiates as browsers do."""

from __future__ import annotations

import socket
import ssl

from tests.acceptance.daemon import DaemonTestCase, free_port
from tests.services.net.certificates import Authority


class TlsTests(DaemonTestCase):
    """Listeners with TLS."""

    def test_negotiated(self) -> None:
        """curl and browsers offer protocols in the handshake; HTTP/1.1 is chosen, and a listener
        that has no name for its own is not disturbed by it."""
        folder = self.folder()
        certificate, key = Authority(folder, "ca").issue("node")
        http, resp = free_port(), free_port()
        files = f"privateKey={key}:certKey={certificate}:interface=127.0.0.1"
        self.running(f"listen http ssl:{http}:{files}", f"listen resp ssl:{resp}:{files}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        for port, request, protocol, answer in (
            (
                http,
                b"GET /healthz/live HTTP/1.0\r\nHost: localhost\r\n\r\n",
                "http/1.1",
                b"HTTP/1.",
            ),
            (resp, b"PING\r\n", None, b"+PONG\r\n"),
        ):
            with (
                socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
                context.wrap_socket(plain) as client,
            ):
                self.assertEqual(protocol, client.selected_alpn_protocol())
                client.sendall(request)
                self.assertEqual(answer, client.recv(len(answer)))

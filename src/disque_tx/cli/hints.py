"""What to do about failures whose text alone helps nobody."""

from __future__ import annotations

from typing import Final

#: Part of a text → what to do; the first that fits is told.
_HINTS: Final[tuple[tuple[str, str], ...]] = (
    ("WRONG_VERSION_NUMBER", "The server does not speak TLS at this port; try without --tls."),
    ("UNEXPECTED_EOF", "The server may not speak TLS at this port; try without --tls."),
    ("RECORD_LAYER_FAILURE", "The server does not speak TLS at this port; try without --tls."),
    (
        "certificate verify failed: Hostname mismatch",
        "The certificate is of another host; give its name with --sni, or --no-host-check.",
    ),
    (
        "certificate verify failed: IP address mismatch",
        "The certificate is of another host; give its name with --sni, or --no-host-check.",
    ),
    ("doesn't match", "The certificate is of another host; see --sni and --no-host-check."),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "Nobody who is trusted has signed the certificate; give the authority with --cacert.",
    ),
    ("CERTIFICATE_REQUIRED", "The server wants to see a certificate; give --cert and --key."),
    ("b'\\x15\\x03", "The server speaks TLS at this port; try with --tls."),
    ("Connection closed by server", "If the port is for TLS, try with --tls."),
    ("NOAUTH", "The node wants a password: DISQUE_PASSWORD, --askpass or -a."),
)


def explained(text: str) -> str:
    """The text, and what to do if that is known."""
    for part, hint in _HINTS:
        if part in text:
            return f"{text.rstrip('.')}. {hint}"
    return text

"""Text of the protocol: quoting, patterns."""

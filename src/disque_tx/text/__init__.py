"""Text of the protocol: quoting, patterns, dead letters."""

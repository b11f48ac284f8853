"""The state of a node. Knows no bytes on the wire, no reactor, no clock of its own."""

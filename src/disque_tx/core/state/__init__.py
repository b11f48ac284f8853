"""The state of a node, which all later rooms work on."""

"""From the words of a request to a call on the node."""

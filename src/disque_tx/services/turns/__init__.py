"""The turns of a node: clocks, input, rounds of the reactor."""

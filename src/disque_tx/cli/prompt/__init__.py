"""Commands on the command line, from a pipe, and at the prompt."""

"""The machine: files, log lines, the process, limits of guesses."""

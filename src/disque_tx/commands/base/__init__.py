"""What all commands need: arguments, the registry, the server they run in, statistics."""

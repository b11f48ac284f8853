"""Options of ``disque`` that replace a command: figures, latency, mass insertion."""

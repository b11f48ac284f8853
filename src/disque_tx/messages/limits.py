"""Greatest numbers that the formats of jobs have room for, and the ranges of ADDJOB's options.

Nodes, clients, Spark and the command line check numbers against these. The module imports nothing
of the package, so that a client can use it without the code of the server.
"""

from __future__ import annotations

from typing import Final

#: Greatest number in four bytes; as a mask, it takes the sign off a number that was read as signed.
U32_MAX: Final = 0xFFFF_FFFF
#: Greatest number in two bytes.
U16_MAX: Final = 65_535

#: Durations and unix times of a job, in seconds.
SECONDS_MAX: Final = U32_MAX
#: How many nodes may have a copy of a job.
REPLICATE_MAX: Final = U16_MAX
#: How many NACKs and deliveries of a job are counted.
COUNTER_MAX: Final = U16_MAX
PORT_MAX: Final = U16_MAX
#: The longest name of a queue that gets new jobs, in bytes.
QUEUE_BYTES_MAX: Final = 1_024

#: Least and greatest number of ADDJOB's options (client protocol, section 14).
REPLICATE_RANGE: Final = (1, REPLICATE_MAX)
TTL_RANGE: Final = (1, SECONDS_MAX)
RETRY_RANGE: Final = (0, SECONDS_MAX)
DELAY_RANGE: Final = (0, SECONDS_MAX)
MAXLEN_RANGE: Final = (1, (1 << 63) - 1)

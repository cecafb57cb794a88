"""Give each part of everlog its logger, below the logger `everlog` of Python's `logging`.

Used where agents write, models are called and timers fire, and by the command line. A line names agents, models, counts
and types of records. It never quotes a message, a memory, a prompt or a reply, and no error text of an endpoint, which
may quote one. Without a handler nothing is written: a program that imports everlog decides, and so does --log.
"""

import logging

ROOT = "everlog"

# Without this, Python prints warnings of loggers without a handler to stderr, between the output of a program.
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def logger_of(place: str) -> logging.Logger:
    """Return the logger of a part of everlog, such as `gateway`."""
    return logging.getLogger(f"{ROOT}.{place}")

"""Pages about errors of the store: the log could not do what was asked, and has kept nothing of the request.

Used by `explain_command`. Run `python -m docs.make_errors` after a change: a test runs the examples, and compares the
pages in `docs`.
"""

from everlog.interfaces.explain.error_page import ErrorPage

_LOG = """\
import time
from pathlib import Path

from everlog.events import UserMessage, draft, uuid7
from everlog.store import FileStore


def now():
    return time.time_ns() // 1000


def message(number):
    return draft(UserMessage(text="Hello"), event_id=uuid7(now(), number), recorded_at=now(), turn=1, step=0)


store = FileStore.create(Path("store"), now, "example", shards=1)
store.register("sam")
log = store.open("sam", "example")
"""
"""Beginning of the examples that write to a log without an agent."""

PAGES = (
    ErrorPage(
        "StoreError",
        "The store could not be opened, read or written. The log has kept nothing of the request.",
        (
            "The folder holds no store.",
            "The disk is full, is read-only, or reports an error.",
            "The process may not open more files.",
            "The store is on a file system that cannot keep the promises of a log, for example some network mounts.",
        ),
        (
            "Check the folder: `--store DIR`, else EVERLOG_STORE, else `~/.everlog`.",
            "Make room on the disk, or correct the permissions, and repeat the command. Repeating is safe.",
            "Raise the limit of open files (`ulimit -n`) if the message names it.",
            "Move the store to a local disk or to NFS.",
        ),
        """\
$ everlog agents --store nowhere
""",
        "EverlogError",
    ),
    ErrorPage(
        "WrongSequence",
        "An append named a position in the log that is no longer the end: another commit came first. The log has kept "
        "nothing of the append. The attributes `expected` and `actual` are the two positions.",
        (
            "Two writers of one program use the same log object and do not wait for each other.",
            "A program appends with an old value of `expected_seq`.",
        ),
        (
            "Read the new records, decide again, and append with the new end of the log.",
            "Use an agent (`everlog.open`) in place of the log: an agent orders its commands itself.",
        ),
        _LOG
        + """\
log.append("sam", 0, [message(1)])
log.append("sam", 0, [message(2)])
""",
        "StoreError",
    ),
    ErrorPage(
        "DuplicateId",
        "An event id was used before with other content, or only a part of its commit was sent again. The log has kept "
        "the first event and nothing of this request.",
        (
            "A program reuses one `event_id` for two different messages.",
            "A repeated request was changed before it was sent again.",
        ),
        (
            "Use a new id (UUID version 7) for a new message.",
            "Send a repeated request with exactly the same content: the log then keeps it once.",
        ),
        """\
import time

import everlog
from everlog.events import uuid7

event_id = uuid7(time.time_ns() // 1000, 1)
with everlog.open("store") as system:
    sam = system.agent("sam")
    sam.send("Hello", event_id=event_id)
    sam.send("Goodbye", event_id=event_id)
""",
        "StoreError",
    ),
    ErrorPage(
        "StaleId",
        "The event id is more than 24 hours old. The log no longer remembers ids of that age, so it cannot see whether "
        "this is a repetition. The log has kept nothing of the request.",
        (
            "A program sends a message again after more than a day.",
            "The id was not made from the current time, or the clock of the machine that made the id is wrong.",
        ),
        (
            "Look whether the message is in the log: `everlog events NAME`.",
            "If the message is not in the log, send it with a new id.",
        ),
        """\
$ everlog send sam "Hello" --id 01890000-0000-7000-8000-000000000001
""",
        "StoreError",
    ),
    ErrorPage(
        "Fenced",
        "Another process has taken over the log, so this process must stop writing. The log has not acknowledged the "
        "request of this process. The agent continues in the other process.",
        (
            "A command with `--take-over` was used while this process had the agent open.",
            "A cluster restarted the host of the agent elsewhere because this one did not respond.",
        ),
        (
            "Stop this process, and use the agent where it is open now.",
            "To continue here, open the agent again; add `--take-over` if the other process must stop.",
            "Use `--take-over` only if the other process hangs.",
        ),
        """\
import everlog

with everlog.open("store") as first, everlog.open("store") as second:
    sam = first.agent("sam")
    second.agent("sam", take_over=True)
    sam.send("Hello")
""",
        "StoreError",
    ),
    ErrorPage(
        "Moved",
        "The agent was moved to another partition, and this log no longer takes records of the agent. The log has kept "
        "nothing of the append. Commands of agents find the new place by themselves; only programs that use the store "
        "directly see this error.",
        ("`everlog move` ran while the program held the old log open.",),
        ("Open the agent again with `store.open(NAME, ...)`, and append the same events there.",),
        _LOG
        + """\
log.append("sam", 0, [message(1)])
store.begin_move(log, "sam", "shard-000")
log.append("sam", 2, [message(2)])
""",
        "StoreError",
    ),
    ErrorPage(
        "PartitionBusy",
        "Another live process has this agent open, and a log has only one writer. Nothing was changed. The message "
        "names the process and its command; in Python they are `error.pid` and `error.owner`.",
        (
            "`everlog chat` has the agent open in another terminal.",
            "A program holds the agent open, or holds a shared log in which the agent lives.",
        ),
        (
            "End the other command, or leave its chat with `/exit`. Commands that only read work meanwhile.",
            "Run the agents in one place for all commands: `everlog up`.",
            "Use `--take-over` if the other process hangs. The other process can no longer write then.",
        ),
        """\
import everlog

with everlog.open("store") as first, everlog.open("store") as second:
    first.agent("sam")
    second.agent("sam")
""",
        "StoreError",
    ),
    ErrorPage(
        "Poisoned",
        "An earlier write to this log failed, so the end of the file is unknown until the log is opened again. "
        "Everything that was acknowledged before is on the disk.",
        (
            "The disk is full, or reported an error. The first failure was a StoreError with the cause.",
            "The process was interrupted during a write.",
        ),
        (
            "Remove the cause: make room, or check the disk.",
            "Close the system, and open it again: opening repairs the end of the file.",
            "Send the request again with the same id.",
        ),
        """\
from unittest import mock

"""
        + _LOG
        + """\
with mock.patch("os.fdatasync", side_effect=OSError(5, "Input/output error")):
    try:
        log.append("sam", 0, [message(1)])
    except Exception as error:
        print(error)
log.append("sam", 0, [message(2)])
""",
        "StoreError",
    ),
    ErrorPage(
        "CorruptLog",
        "Bytes inside a log differ from what was written. everlog changed nothing. Records before the damage can still "
        "be read.",
        (
            "The disk or its controller has changed bytes.",
            "Another program has written into the folder of the store, or a copy of the folder was incomplete.",
        ),
        (
            "Find the extent of the damage: `everlog log check --all --deep`.",
            "Restore the file that the message names from a backup, or the agent from a file of `everlog export`.",
            "Ask the undamaged agents meanwhile: `everlog sql --skip-damaged`.",
        ),
        """\
from pathlib import Path

import everlog

with everlog.open("store") as system:
    system.agent("sam").send("Hello")
(file,) = Path("store/log").glob("*/*.open")
damaged = bytearray(file.read_bytes())
damaged[1000] ^= 1
file.write_bytes(damaged)
with everlog.open("store") as system:
    system.agent("sam")
""",
        "StoreError",
    ),
    ErrorPage(
        "NewerFormat",
        "The store was written by a newer everlog, and this everlog does not know its format. Nothing was changed.",
        ("Two versions of everlog use one store, and this one is the older.",),
        (
            "Install a newer everlog.",
            "On a cluster, install the same version on all nodes.",
        ),
        """\
import json
from pathlib import Path

import everlog

with everlog.open("store"):
    pass
file = Path("store/everlog.json")
file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
with everlog.open("store"):
    pass
""",
        "StoreError",
    ),
)
"""In the order of the tree of errors."""

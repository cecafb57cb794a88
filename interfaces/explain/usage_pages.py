"""Pages about errors of the caller: the request cannot be carried out as it was made.

Used by `explain_command`. Run `python -m docs.make_errors` after a change: a test runs the examples, and compares the
pages in `docs`.
"""

from everlog.interfaces.explain.error_page import ErrorPage

PAGES = (
    ErrorPage(
        "EverlogError",
        "This type is the root of all errors that everlog raises on purpose. everlog raises one of the types below it, "
        "and never this type itself. Any other exception is a bug of everlog or of your own code.",
        ("A program catches this type to handle every error of everlog in one place.",),
        (
            "Read the message: it says what was expected, what was found, and what to do.",
            "Read the page of the type that was raised. In Python `error.code` is the name of the page.",
        ),
        """\
import everlog

with everlog.open("store") as system:
    try:
        system.agent("sam", create=False)
    except everlog.EverlogError as error:
        print(error.code)
        raise
""",
    ),
    ErrorPage(
        "UsageError",
        "The request does not fit the state of the store or of the system. Nothing was changed.",
        (
            "A method of `everlog.open` was called after its `with` block had ended, or inside a running event loop.",
            "A restore or a fork was interrupted earlier, and is not finished.",
            "An agent has functions of your own, and was opened without them.",
            "The result of a `Run` was iterated over a second time.",
            "`everlog load` found PDF or Word files, and the packages that read them are not installed.",
        ),
        (
            "Do what the end of the message says: open the system again, or repeat the interrupted command.",
            "Inside a running event loop use `async with everlog.open_system(...)`.",
            "Give the functions of the agent with `--tools FILE.py`, or with `tools=` in Python.",
            "Install the readers of PDF and Word files: `pip install 'everlog[documents]'`.",
        ),
        """\
import everlog

with everlog.open("store") as system:
    sam = system.agent("sam")
sam.send("Hello")
""",
        "EverlogError",
    ),
    ErrorPage(
        "UnknownAgent",
        "No agent has this name in this store. Nothing was changed.",
        (
            "The name is misspelled. The message lists names that are similar.",
            "The command uses another store than you expect.",
            "The agent was deleted.",
        ),
        (
            "List the agents of the store: `everlog agents`.",
            "Name the store: `--store DIR`, or set EVERLOG_STORE.",
            "Create the agent: `everlog create NAME`. `chat`, `send`, `import` and `load` create it too.",
        ),
        """\
$ everlog create sam
$ everlog memory sma
""",
        "UsageError",
    ),
    ErrorPage(
        "BadInput",
        "A value, a line or a file does not have the required form. Nothing of it was kept.",
        (
            "An option has a value that is out of range, or an option does not fit another one.",
            "A file does not exist, is not UTF-8, or has another format.",
            "A query is not a single SELECT, or DuckDB refuses the query.",
            "A moment (`--as-of`) is after the end of the log.",
        ),
        (
            "Correct the value that the message names; the message says what is allowed.",
            "Add `--help` to the command: it lists all options and has an example.",
        ),
        """\
$ everlog create sam --window 100
""",
        "UsageError",
    ),
    ErrorPage(
        "AlreadyDecided",
        "A call that waited for an approval was decided before, was withdrawn with its turn, or its time is over. The "
        "first decision holds, and nothing was changed.",
        (
            "Two people decided the same call, or one person twice.",
            "The call was not decided in time: it counts as refused (`approval_s` of the agent's settings; a week).",
            "The turn that made the call was taken back, such as with `/pop` in a chat.",
        ),
        (
            "`everlog approvals NAME --decided` shows what was decided, when and why.",
            "Ask the agent to make the call again; it waits again.",
        ),
        """\
import everlog
from everlog.testing import ScriptedModel, call, system

settings = everlog.Settings(approvals=[everlog.ApprovalRule("core_memory_*")])
model = ScriptedModel([call("core_memory_append", name="human", content="Sails."), "Then not."])
with system(model) as agents:
    sam = agents.agent("sam", settings)
    sam.ask("I sail")
    request = next(record.seq for record in agents.log("sam") if record.type == "approval_requested")
    sam.refuse(request).reply()
    sam.approve(request).reply()
""",
        "UsageError",
    ),
    ErrorPage(
        "EditConflict",
        "A text was edited from an older state of it: another edit came first. Nothing was changed. In Python "
        "`error.current` is the text that is there now, `error.wanted` that of the edit, and `error.seq` the record to "
        "edit from.",
        (
            "Two people, or a person and the agent itself, edited the same memory block.",
            "A program read a block, waited, and wrote the block with the `base` that it had read.",
        ),
        (
            "Look at both texts, and edit again with `base` set to the new `seq`.",
            "Leave `base` out to edit the block whatever it is now.",
        ),
        """\
import everlog

with everlog.open("store") as system:
    sam = system.agent("sam")
    sam.update_block("human", "Sails.", base=1)
""",
        "UsageError",
    ),
    ErrorPage(
        "Busy",
        "A queue is full, or the agent is in the middle of a turn and the request has to wait until the turn ends. "
        "Nothing of the request was kept. In Python `error.retry_after_s` is the time to wait, in seconds.",
        (
            "More than a thousand inputs wait for one agent, or a thousand callers wait for its answers.",
            "A shared host has as many commands or agents as it can hold.",
            "An agent was to move between placements while it was at work.",
        ),
        (
            "Send the same request again after `retry_after_s` seconds.",
            "Send fewer messages at once.",
            "Use more shards (`--shards`) for a new store with many shared agents.",
        ),
        """\
import asyncio

import everlog


async def main():
    async with everlog.open_system("store") as system:
        sam = await system.agent("sam")
        async for record in sam.send("Hello"):
            await sam.move("shared")


asyncio.run(main())
""",
        "UsageError",
    ),
)
"""In the order of the tree of errors."""

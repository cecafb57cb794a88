"""Make a store that has every kind of file that can lie in a store at rest.

Used by `tests/damage`: the table of files in docs/explanation/durability.md, and the damage matrix. A new kind of file
belongs into this store too.
"""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from everlog.actors.models.model_catalogue import save_probe
from everlog.actors.models.model_types import ProbeFindings
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.store import FileStore, keep_typed, typed_path
from everlog.store.base.names import hash_of
from tests.support.cli.command_line import CountedIds, HandClock, Script, completion, says

SHARDS = 2


class StoreCommands:
    """Commands over one store, run in this process with a scripted model."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock, self.ids = HandClock(), CountedIds()
        self.script = Script([])

    @property
    def world(self) -> CommandEnvironment:
        return CommandEnvironment(
            clock=self.clock, ids=self.ids, model=lambda *_: self.script, probe=None,
            lower_priority=lambda: None, hold_memory=lambda _: None,
        )  # fmt: skip

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Run a command. Return exit code, stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["--store", str(self.root), *words], world=self.world)
        return code, out.getvalue(), err.getvalue()

    def ok(self, *words: str) -> str:
        """Return the stdout of a command that must succeed."""
        code, out, err = self(*words)
        assert code == 0, f"{words}: {err}{out}"
        return out


def make(root: Path, texts: Path) -> None:
    """Make the store in `root`, which does not exist; `texts` is an empty folder for documents."""
    run = StoreCommands(root)
    with patch.multiple("everlog.store.sealed.checkpoints", CHECKPOINT_RECORDS=4, MARK_RECORDS=2):
        _agents(run)
        _moved_and_shared(run)
        _memory(run, texts)
        _leftovers(run)
        _register(run)
        _archive(run)
    _descriptions(root)


def _agents(run: StoreCommands) -> None:
    """Make a dedicated agent with sealed files, states and checkpoints, and a fork of it."""
    run.ok("create", "sam", "--shards", str(SHARDS))
    for number in range(3):
        run.ok("send", "sam", f"message {number} of the harbour")
    run.ok("log", "seal", "sam")
    run.ok("send", "sam", "the harbour after sealing")
    run.ok("fork", "sam", "--new-name", "kid")
    run.ok("send", "kid", "the fork speaks")


def _moved_and_shared(run: StoreCommands) -> None:
    """Make agents of shards, agents that moved out of one and into one, and agents that were registered together."""
    for name in ("ann", "bob", "eve"):
        run.ok("create", name, "--placement", "shared")
        run.ok("send", name, f"the words of {name}")
    run.ok("move", "bob", "--placement", "dedicated")
    run.ok("send", "bob", "after the move")
    run.ok("create", "cid")
    run.ok("send", "cid", "before the move")
    run.ok("move", "cid", "--placement", "shared")
    run.ok("send", "cid", "after the move")
    run.ok("cluster", "shards", str(SHARDS + 1))
    crew = [f"crew-{number}" for number in range(400)]
    some = [name for name in crew if hash_of(name)[:2] == hash_of(crew[0])[:2]][:2]
    FileStore(run.root, run.clock.now).register_many(some, shared=True)
    for name in some:
        run.ok("create", name, "--placement", "shared")


def _memory(run: StoreCommands, texts: Path) -> None:
    """Make a shared block, a source, memories, and an erasure in a log with sealed files."""
    run.ok("shared", "create", "team", "The captain is Ann.")
    run.ok("shared", "attach", "sam", "team")
    run.ok("shared", "set", "team", "The captain is Bob.")
    (texts / "tides.txt").write_text("The tide turns at noon. The harbour is deep.")
    (texts / "ships.txt").write_text("The Ada is a ship of the harbour.")
    run.ok("load", "sam", str(texts), "--source", "book")
    run.script.answers = [
        completion(("archival_memory_insert", {"content": "Chad sails."}), ("send_message", {"message": "Noted."})),
        says("Kept."),
    ]
    run.ok("send", "sam", "keep that")
    for text in ("The Ada is a boat.", "The mast is of oak.", "The anchor is lost."):
        run.ok("archive", "insert", "sam", text)
    run.ok("archive", "insert", "ann", "Ann has a compass.")
    run.ok("erase", "sam", "--from", "9", "--to", "9", "--yes")
    run.ok("send", "sam", "after the erasure")


def _leftovers(run: StoreCommands) -> None:
    """Make a tail that was cut, a mark that was not met, closed files of frames, and a file that no manifest names."""
    path = _open_file(run.root, "ann")
    path.write_bytes(path.read_bytes() + b"nonsense")
    run.ok("send", "ann", "after the cut")
    path = _open_file(run.root, "bob")
    path.write_bytes(path.read_bytes()[:-1])
    run.ok("send", "bob", "after the loss")
    run.ok("create", "fay")
    run.ok("send", "fay", "one")
    store = FileStore(run.root, run.clock.now)
    held = store.open("fay", "stopped")
    store.open("fay", "takes over", take_over=True).close()  # closes the file of the other owner as it is
    held.close()
    run.ok("send", "fay", "two")
    (path.parent / "000000000001-e000001.open.e000001-gone-1-0.tmp").write_bytes(b"left by a killed owner")


def _register(run: StoreCommands) -> None:
    """Leave what a repair of the register keeps: a damaged file, and a name without a record that was given up."""
    store = FileStore(run.root, run.clock.now)
    for name in ("gone", "waits"):
        store.register(name)
    _file_of(run.root, "gone", ".new").unlink()
    damaged = _file_of(run.root, "eve", "")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    run.ok("log", "repair-register", "--yes")


def _file_of(root: Path, name: str, ending: str) -> Path:
    """Return the path of a name's file in the register."""
    digest = hash_of(name)
    return root / "agents" / digest[:2] / f"{digest}{ending}"


def _open_file(root: Path, name: str) -> Path:
    folder = root / "log" / FileStore(root, lambda: 0).partition_of(name)
    return max(folder.glob("*.open"))


def _archive(run: StoreCommands) -> None:
    """Build the index, with its lookup indices, and write into it afterwards."""
    run.ok("archive", "rebuild")
    run.ok("archive", "insert", "sam", "The sail is red.")
    run.ok("archive", "search", "sam", "sail")


def _descriptions(root: Path) -> None:
    """Write a description of a model, the findings of a probe, and what a person typed at prompts."""
    for agent_id in ("sam", None):
        keep_typed(typed_path(root, agent_id), "What do you know of the harbour?")
    (root / "models.toml").write_text('[models."m"]\nwindow = 4096\n')
    save_probe(root, ProbeFindings(url="http://127.0.0.1:9/v1", model="m", at=1))

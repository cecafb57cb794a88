"""The search that a running agent gets in a process of its own: by meaning too, from the first question on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, says

ROOT = Path(__file__).resolve().parents[3]
SAID = ("My sister keeps bees behind the barn.", "The invoice for the roof is due on Friday.", "I had soup for lunch.")

SEND = """
import sys
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.front_end import CommandEnvironment
from tests.support.cli.command_line import Script, completion, says
searches = [completion(("conversation_search", {"query": query, "request_heartbeat": True})) for query in sys.argv[2:]]
world = CommandEnvironment(model=lambda *_: Script([*searches, says("I looked.")]))
code = main(["--store", sys.argv[1], "send", "sam", "look"], world=world)
print([name for name in ("lancedb", "wordllama") if name in sys.modules])
sys.exit(code)
"""

CHAT = """
import asyncio, sys
from everlog.actors.api import ServiceOptions, open_system
from tests.support.cli.command_line import Script, completion, says
searches = [completion(("conversation_search", {"query": query, "request_heartbeat": True})) for query in sys.argv[2:]]

async def talk():
    services = ServiceOptions(models=lambda *_: Script([*searches, says("I looked.")]))
    async with open_system(sys.argv[1], runtime="local", services=services) as system:
        print((await (await system.agent("sam")).ask("look")).text)

asyncio.run(talk())
print([name for name in ("lancedb", "wordllama") if name in sys.modules])
"""


def results(cli: Line) -> list[str]:
    """Return what the agent's searches gave."""
    logged = cli.lines("events", "sam")
    return [one["text"] for one in logged if one["type"] == "function_result" and "Showing" in (one["text"] or "")]


@pytest.mark.parametrize("script", [SEND, CHAT], ids=["send", "program"])
def test_the_first_search_of_a_process_is_by_meaning_too(cli: Line, script: str) -> None:
    """In a fresh process the first turn that searches finds a message that shares no word with the query; no page says
    that words alone found it, and LanceDB is not loaded.
    """
    for text in SAID:
        cli.ok("send", "sam", text)
    queries = ["honey insects", "bill for shingles"]
    run = subprocess.run(
        [sys.executable, "-c", script, str(cli.root), *queries], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "EVERLOG_RUNTIME": "local"}, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["I looked.", "[]"]
    found = results(cli)
    assert len(found) == len(queries)
    assert not [text for text in found if "by words alone" in text]
    assert SAID[0] in found[0] and found[0].index(SAID[0]) < found[0].index(SAID[2])
    assert SAID[1] in found[1] and found[1].index(SAID[1]) < found[1].index(SAID[2])


@pytest.mark.beside_store("the server has the index, and its own log of warnings")
def test_a_search_says_that_it_goes_by_words_alone_when_something_is_broken(cli: Line) -> None:
    """A damaged file of vectors is the case in which a page says so; the cure is named on stderr."""
    from tests.support.cli.command_line import completion

    cli.ok("send", "sam", SAID[0])
    (cli.root / "archive").mkdir(exist_ok=True)
    (cli.root / "archive" / "archive.sqlite").write_text("This is not a database. " * 100)
    cli.script.answers = [
        completion(("conversation_search", {"query": "bees", "request_heartbeat": True})),
        says("Ok."),
    ]
    code, out, err = cli("send", "sam", "look")
    assert (code, out) == (0, "Ok.\n")
    assert "messages cannot be compared by meaning" in err and "No memory is lost" in err
    assert "by words alone" in results(cli)[0]

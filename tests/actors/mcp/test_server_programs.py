"""Programs of servers: each misbehaves in its way, and the agent reads one clear sentence about it."""

import asyncio
from pathlib import Path

import pytest

from everlog.actors.mcp import accepted_tools
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import BadInput, FunctionResult, McpError
from tests.support.mcp.server_worlds import called, connections, functions, raw_entry, wait_for

pytest.importorskip("mcp", reason="the extra mcp is not installed")


def failed(result: FunctionResult | str) -> FunctionResult:
    assert isinstance(result, FunctionResult)
    assert not result.ok
    return result


def test_a_function_of_a_program_is_called() -> None:
    """A server of the revision with a handshake is asked, and its answer is text."""
    with connections() as made:
        assert called(functions(raw_entry("plain"), made)["act"], words="Hi") == "wrote Hi"


@pytest.mark.parametrize(("mode", "words"), [("refusing", "No such words."), ("failing", "It did not work.")])
def test_what_a_server_refuses_is_read_by_the_model(mode: str, words: str) -> None:
    """An error of the protocol and a failed result both become a failed call in the server's words; neither is
    "unknown".
    """
    with connections() as made:
        result = failed(called(functions(raw_entry(mode), made)["act"], words="Hi"))
        assert words in result.text
        assert not result.unknown


@pytest.mark.parametrize(("name", "calls", "unknown"), [("act", 1, True), ("put", 2, True), ("look", 2, False)])
def test_a_program_that_dies_in_its_answer(name: str, calls: int, unknown: bool, tmp_path: Path) -> None:
    """A call is repeated once in a new program if its effect class allows that; then its outcome is unknown, unless it
    only reads.
    """
    file = tmp_path / "effects"
    with connections() as made:
        result = failed(called(functions(raw_entry("dying", file), made)[name], words="Hi"))
    assert len(file.read_text().splitlines()) == calls
    assert result.unknown is unknown


def test_a_program_that_hangs_ends_the_call_by_its_limit(tmp_path: Path) -> None:
    """A call without an answer is unknown after `call_s`, and is not repeated."""
    file = tmp_path / "effects"
    with connections() as made:
        tools = functions(raw_entry("hanging", file, call_s=0.2), made)
        result = failed(called(tools["act"], words="Hi"))
    assert (result.unknown, file.read_text()) == (True, "act Hi\n")
    assert "may have been carried out" in result.text


def test_a_cancelled_call_ends_and_the_server_stays(tmp_path: Path) -> None:
    """An agent whose turn is cancelled leaves the call; others still use the program."""
    file = tmp_path / "effects"
    with connections() as made:
        tools = functions(raw_entry("hanging", file), made)

        async def cancel() -> None:
            task = asyncio.create_task(tools["act"].function(words="Hi"))
            await asyncio.to_thread(wait_for, file)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        assert asyncio.run(made.offer("raw", raw_entry("hanging", file))).tools


def test_a_program_that_floods_is_ended() -> None:
    """A program that writes without end loses its connection, and this process keeps its memory."""
    with connections() as made:
        result = failed(called(functions(raw_entry("flooding"), made)["act"], words="Hi"))
        assert result.unknown
        assert "Connection closed" in result.text


def test_a_program_that_left_is_started_again() -> None:
    """A program that ends after each answer is started for the next call."""
    with connections() as made:
        tool = functions(raw_entry("leaving"), made)["look"]
        assert [called(tool, words=words) for words in ("one", "two")] == ["wrote one", "wrote two"]


def test_signs_of_progress_are_no_answer() -> None:
    """A server that tells its progress is waited for."""
    with connections() as made:
        assert called(functions(raw_entry("progressing"), made)["act"], words="Hi") == "wrote Hi"


def test_a_server_that_asks_a_person_is_told_that_nobody_is_there() -> None:
    """An elicitation is declined, and the call continues."""
    with connections() as made:
        assert called(functions(raw_entry("asking"), made)["act"], words="Hi") == "wrote decline"


def test_an_answer_that_is_none_is_unknown() -> None:
    """A server that answers nonsense may have acted."""
    with connections() as made:
        result = failed(called(functions(raw_entry("babbling"), made)["act"], words="Hi"))
        assert result.unknown
        assert "cannot be read" in result.text


def test_a_changed_description_is_not_called_before_consent(tmp_path: Path) -> None:
    """After the server says that its functions changed, a call of one that reads otherwise is refused: nothing reaches
    the server.
    """
    file = tmp_path / "effects"
    with connections() as made:
        tools = functions(raw_entry("changing", file), made)
        assert called(tools["look"], words="one") == "wrote one"
        result = failed(called(tools["look"], words="two"))
    assert "everlog mcp refresh raw" in result.text
    assert (result.unknown, file.read_text()) == (False, "look one\n")


@pytest.mark.parametrize("mode", ["liar", "endless"])
def test_a_list_that_cannot_be_read_is_an_error(mode: str) -> None:
    """A server whose list is nonsense, or has no end, cannot be used, and says why."""
    with connections() as made, pytest.raises(McpError, match="cannot be used"):
        asyncio.run(made.offer("raw", raw_entry(mode)))


def test_five_hundred_functions_are_more_than_an_agent_gets() -> None:
    """All pages are read; accepting them all is refused with the cure, and a part of them is accepted."""
    with connections() as made:
        offer = asyncio.run(made.offer("raw", raw_entry("many")))
    assert len(offer.tools) == 500
    with pytest.raises(BadInput, match=r"offers 500 functions, .* --only PATTERN"):
        accepted_tools.accept("raw", raw_entry("many"), offer, 0)
    some = raw_entry("many", only=("tool_1?",))
    assert len(accepted_tools.accept("raw", some, offer, 0).tools) == 10


def test_odd_functions_get_names_that_models_accept_or_are_left_out() -> None:
    """Names are made of the characters that endpoints take, no two are the same, and a schema that would make an
    endpoint refuse every request is left out.
    """
    with connections() as made:
        offer = asyncio.run(made.offer("raw", raw_entry("odd")))
    faults = {tool.name: tool.fault() for tool in offer.tools}
    assert {name for name, fault in faults.items() if fault} == {"remote", "wrong", "heartbeat", "endless"}
    assert offer.doubled == ["a_b"]
    names = [tool.public_name("raw") for tool in offer.tools]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 64 and name.isascii() and name.replace("-", "_").isidentifier() for name in names)
    assert names[2] == "raw__a_b"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (ServerEntry(command="/nowhere/program"), "No such file"),
        (ServerEntry(command="sh", args=("-c", "echo I need a key >&2; exit 1")), "I need a key"),
        (ServerEntry(command="sh", args=("-c", "yes")), "nobody asked for"),
        (ServerEntry(command="sh", args=("-c", "head -c 9000000 /dev/zero")), "a line of more than"),
        (
            ServerEntry(command="sh", args=("-c", "read nothing; read nothing"), connect_s=0.2),
            "did not answer within 0.2",
        ),
        (ServerEntry(command="sh", env=("EVERLOG_NO_SUCH",)), "EVERLOG_NO_SUCH, which is not set"),
        (ServerEntry(url="http://127.0.0.1:9/mcp"), "cannot be used"),
    ],
)
def test_a_server_that_does_not_start_says_why(entry: ServerEntry, words: str) -> None:
    """The error names the server and has the last words of its program."""
    with connections() as made, pytest.raises(McpError, match=words):
        asyncio.run(made.offer("raw", entry))


def test_a_program_gets_no_variable_that_its_entry_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment of everlog are not those of a server."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("GIVEN", "yes")
    shown = ("-c", 'echo "key=$OPENAI_API_KEY given=$GIVEN" >&2')
    with connections() as made, pytest.raises(McpError, match="key= given=yes"):
        asyncio.run(made.offer("raw", ServerEntry(command="sh", args=shown, env=("GIVEN",))))

"""A function in a process of its own: its value arrives, and whatever it does to its process stays there."""

import asyncio
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.actors.functions.run_function import run_function
from everlog.actors.ports.function_threads import PROCESS_THREADS
from everlog.events import BadInput, FunctionResult, event_of
from everlog.testing import ScriptedModel, call, system

LIMITS = everlog.ProcessLimits(network=True)
CONFINES = everlog.ProcessLimits()


def made(function: Callable[..., Any], limits: everlog.ProcessLimits = LIMITS, **more: Any) -> everlog.Tool:
    function.__doc__ = "Do something."
    return everlog.tool(function, process=limits, **{"effect": "at_most_once", **more})


def run(one: everlog.Tool, **arguments: Any) -> Any:
    notes: list[str] = []
    return asyncio.run(run_function(one, arguments, PROCESS_THREADS, notes.append))


def text_of(result: Any) -> str:
    assert isinstance(result, FunctionResult)
    return result.text


def test_the_value_of_a_function_arrives() -> None:
    """Plain functions and coroutines, with values that JSON has and others; prints are not part of the value."""

    def add() -> Any:
        print("adding")
        return {"sum": 3, "pid": os.getpid() != parent}

    async def wait() -> Any:
        await asyncio.sleep(0)
        return ["ä", None, object]

    parent = os.getpid()
    assert run(made(add)) == {"sum": 3, "pid": True}
    assert run(made(wait)) == ["ä", None, "<type>"]


def test_an_error_is_told_in_words() -> None:
    """The model gets the type and the text of an exception, as from a function in this process."""

    def fail() -> None:
        raise KeyError("tea")

    result = run(made(fail))
    assert (text_of(result), result.unknown) == ("Error calling function fail: KeyError: 'tea'", False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('x' * 2_000_000)", "printed or returned 1,000,000 bytes or more"),
        ("return 'x' * 2_000_000", "printed or returned 1,000,000 bytes or more"),
        ("return len(bytearray(1 << 31))", "needed more than 512 MiB of memory"),
        ("import ctypes; ctypes.string_at(0)", "its process died with the code"),
        ("import os; os.write(2, b'so it is'); os._exit(3)", "died with the code 3: so it is"),
    ],
)
def test_a_process_that_takes_too_much_or_dies_is_told_in_words(body: str, words: str) -> None:
    """The result says what happened, and that the effect may or may not have happened."""
    scope: dict[str, Any] = {}
    exec(f"def act():\n    {body}\n", scope)
    result = run(made(scope["act"]))
    assert words in text_of(result)
    assert result.unknown
    assert not run(made(scope["act"], effect="read_only")).unknown


@pytest.mark.parametrize("limits", [LIMITS, CONFINES], ids=["network", "confined"])
def test_a_function_at_its_time_limit_is_killed_with_all_that_it_started(
    tmp_path: Path, limits: everlog.ProcessLimits
) -> None:
    """Neither it nor a fork of it survives, even one in a session of its own: the lock that both hold gets free."""
    if limits is CONFINES:
        _skip_unless_confined()
    lock = tmp_path / "lock"

    def fork(path: str) -> None:
        with Path(path).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fork() == 0 and confined:
                os.setsid()
            while True:
                signal.pause()

    confined = limits is CONFINES
    fork.__annotations__["path"] = "str"
    result = run(everlog.tool(_described(fork), process=limits, timeout_s=2), path=str(lock))
    assert "still running after 2 seconds" in text_of(result)
    assert result.unknown
    with lock.open() as file:
        signal.alarm(20)  # ends the run of the tests if a process that holds the lock survives
        fcntl.flock(file, fcntl.LOCK_EX)
        signal.alarm(0)


def _described(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__doc__ = "Do something.\n\nArgs:\n    path: A file.\n"
    return function


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def _skip_unless_confined() -> None:
    def nothing() -> str:
        return "ran"

    result = run(made(nothing, CONFINES))
    if isinstance(result, FunctionResult):
        assert "the network could not be taken away" in result.text
        pytest.skip(result.text)


def test_the_network_is_there_only_if_it_is_granted(port: int) -> None:
    """Without the grant no connection is possible, not even to this machine; a machine that cannot take it away does
    not run the function.
    """

    def reach(path: str) -> str:
        with socket.create_connection(("127.0.0.1", int(path)), timeout=5):
            return "reached"

    reach.__annotations__["path"] = "str"
    assert run(everlog.tool(_described(reach), process=LIMITS), path=str(port)) == "reached"
    _skip_unless_confined()
    assert "OSError" in text_of(run(everlog.tool(_described(reach), process=CONFINES), path=str(port)))


def test_only_named_variables_reach_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is given by its name; every other variable is kept from the process; a missing one is told in words."""
    monkeypatch.setenv("PRICE_KEY", "s3cret")
    monkeypatch.setenv("OTHER_KEY", "other")

    def look() -> Any:
        return [os.environ.get("PRICE_KEY"), os.environ.get("OTHER_KEY")]

    assert run(made(look, everlog.ProcessLimits(network=True, variables=["PRICE_KEY"]))) == ["s3cret", None]
    missing = run(made(look, everlog.ProcessLimits(network=True, variables=["NO_KEY"])))
    assert "the variable NO_KEY, which look needs, is not set here" in text_of(missing)


def test_a_function_of_a_file_needs_the_file_only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of its module come with it, and an agent calls it as any other function."""
    (tmp_path / "shop_of_test.py").write_text(
        "import everlog\n\nPRICE = 3\n\n\ndef double(x):\n    return 2 * x\n\n\n"
        "@everlog.tool(effect='read_only', process=everlog.ProcessLimits(network=True))\n"
        "def price(item: str) -> str:\n    'Tell a price.\\n\\n    Args:\\n        item: The thing.\\n    '\n"
        "    return f'{item}: {double(PRICE)}'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    price = __import__("shop_of_test").price
    monkeypatch.delitem(sys.modules, "shop_of_test", raising=False)
    with system(ScriptedModel([call("price", item="tea"), "Six."]), tools=[price]) as agents:
        assert agents.agent("sam").ask("The price?").text == "Six."
        results = [event for event in map(event_of, agents.log("sam")) if isinstance(event, FunctionResult)]
        assert "tea: 6" in [result.text for result in results]
        agents.assert_verified("sam")


def test_wrong_limits_are_refused_when_the_function_is_made() -> None:
    """Limits with which nothing could run, and a function whose effect is its edits of memory."""

    def act() -> None:
        """Do something."""

    def edit(memory: everlog.Memory) -> None:
        """Edit."""

    for limits in (everlog.ProcessLimits(memory_mb=1), everlog.ProcessLimits(output_bytes=0)):
        with pytest.raises(BadInput, match="The limits of the function 'act'"):
            everlog.tool(act, process=limits)
    with pytest.raises(BadInput, match="edits memory, so it runs in this process"):
        everlog.tool(edit, process=LIMITS)

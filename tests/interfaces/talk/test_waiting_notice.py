"""A user sees that a model is waited for."""

import asyncio
import io

import pytest

from everlog.actors.ports.effects import ModelResponse
from everlog.interfaces.talk.waiting_notice import NOTICE_S
from tests.support.cli.command_line import Line, Script, says


class Slow(Script):
    """A model that answers after the notice had its time, or at once."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__([])
        self.waits = waits
        self.asks = asyncio.Event()
        self.noticed = asyncio.Event()

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        self.asks.set()
        if self.waits:
            await self.noticed.wait()
        return ModelResponse(says("Here I am."), 5)


@pytest.mark.parametrize("command", ["send", "chat"])
def test_a_wait_is_noticed_once_on_stderr(command: str, cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """`send` and `chat` name the model, its address and the time on stderr, once; stdout has the answer only."""
    cli.script = slow = Slow(waits=True)
    waited: list[float] = []

    async def patience(seconds: float) -> None:
        waited.append(seconds)
        await slow.asks.wait()
        asyncio.get_running_loop().call_soon(slow.noticed.set)

    cli.patience = patience
    monkeypatch.setattr("sys.stdin", io.StringIO("Hi\n"))
    words = ("send", "sam", "Hi") if command == "send" else ("chat", "sam")
    code, out, err = cli(*words, "--model", "slow-1", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 0, err
    assert "Here I am." in out and "waiting" not in out
    where = "of the server" if hasattr(cli, "address") else "at http://127.0.0.1:9/v1"
    assert err.count(f"waiting for the model slow-1 {where}, {NOTICE_S} s") == 1
    assert set(waited) == {NOTICE_S}


def test_an_answer_in_time_is_not_commented(cli: Line) -> None:
    """A model that answers at once leaves stderr empty."""
    cli.script = Slow(waits=False)
    code, _, err = cli("send", "sam", "Hi", "--model", "slow-1", "--base-url", "http://127.0.0.1:9/v1")
    assert (code, err) == (0, "")

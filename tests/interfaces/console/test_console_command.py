"""`everlog console`: the address of the console, as a one-time link if the store has keys."""

import asyncio
from argparse import Namespace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.http import console_command, serve_command
from tests.support.http.served_store import served


def _args(root: Path, port: int) -> Namespace:
    return Namespace(store=str(root), port=port, json=False, no_browser=True)


def test_a_server_that_runs_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a server at the port no other is started. Without keys the address is plain; with keys it is a link whose
    form signs in.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            port = int(server.address.rpartition(":")[2])
            run = asyncio.to_thread(console_command.console, _args(tmp_path, port), CommandEnvironment())
            assert await run == 0
            assert f"The console: http://127.0.0.1:{port}/console\n" in capsys.readouterr().out
            server.key()
            await asyncio.to_thread(console_command.console, _args(tmp_path, port), CommandEnvironment())
            address = capsys.readouterr().out.partition("The console: ")[2].split("\n")[0]
            link = parse_qs(urlsplit(address).query)["link"][0]
            sent = {"Sec-Fetch-Site": "same-origin"}
            used = await server.client.post("/console/sign-in", data={"link": link}, headers=sent)
            assert used.status_code == 303

    asyncio.run(main())


def test_a_server_is_started_if_none_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server at the port one is started, and its address is announced."""

    def serve(args, world, announce):
        announce("http://127.0.0.1:9999")
        return 0

    monkeypatch.setattr(serve_command, "serve", serve)
    assert console_command.console(_args(tmp_path, 0), CommandEnvironment()) == 0
    assert "The console: http://127.0.0.1:9999/console\n" in capsys.readouterr().out

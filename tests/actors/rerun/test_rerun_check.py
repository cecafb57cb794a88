"""A rerun looks for the key and the endpoint of its model before it takes the name of its fork."""

import asyncio
from pathlib import Path

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.api import open_system
from everlog.actors.cluster.gateway_client import GatewayClient
from everlog.actors.gateway.gateway import Gateway, GatewayActor
from everlog.actors.hosting.agent_factory import models_through
from everlog.actors.ports.effects import CheckedModel
from everlog.actors.ports.ports import Ports
from everlog.actors.rerun.rerun import RerunOptions
from everlog.events import ModelError
from everlog.testing import CountingIds, ManualClock
from tests.support.models.loopback_server import serving

NOWHERE = "http://127.0.0.1:9/v1"
"""Address at which no server listens."""


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def what(model: str, fork: str = "tom") -> RerunOptions:
    return RerunOptions(agent_id="sam", from_seq=8, fork=fork, settings=Settings(model=model))


def test_a_rerun_whose_model_cannot_be_asked_leaves_no_fork(tmp_path: Path) -> None:
    """Without a key, with no server, or with a key that is refused, the rerun fails, no name is taken, and the same
    name serves the next rerun.
    """

    async def main() -> None:
        ports = Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        async with open_system(tmp_path, runtime="local", ports=ports, timers=False) as system:
            await (await system.agent("sam")).send("Hi, my name is Chad")
            with pytest.raises(ModelError, match=r"needs a key.*No fork was made"):
                await system.rerun(what("gpt-4o"))
        with serving((200, "{}")) as server:
            server.listing = (401, '{"error": {"message": "no such key"}}')
            for url, said in ((NOWHERE, "cannot be reached"), (server.url, "no such key")):
                async with open_system(tmp_path, runtime="local", ports=ports, timers=False, base_url=url) as system:
                    with pytest.raises(ModelError, match=f"{said}.*No fork was made"):
                        await system.rerun(what("small"))
                    assert system.store.agents() == ["sam"]
            assert server.asked_for == ["/v1/models"]
            assert server.bodies == [], "a check asks the model nothing"
        async with open_system(tmp_path, runtime="local", ports=ports, timers=False) as system:
            done = await system.rerun(what("offline"))
            assert done.error is None and len(done.comparison.turns) == 1

    asyncio.run(main())


def test_a_check_goes_to_the_gateway_that_would_ask(tmp_path: Path) -> None:
    """In a process and in a cluster it is the gateway that looks for the key; a server without a list is sound."""

    class Handle:
        def __init__(self, actor: GatewayActor) -> None:
            self.ask = type("Remote", (), {"remote": staticmethod(actor.ask)})

    async def main() -> None:
        gateway, actor, client = Gateway(root=tmp_path), GatewayActor(str(tmp_path)), GatewayClient(str(tmp_path))
        client._actor = Handle(actor)
        for ask in (gateway.ask, client.ask):
            with serving((200, "{}")) as server:
                model = models_through(ask, "sam", None, server.url)("small")
                assert isinstance(model, CheckedModel)
                await model.check()
                assert server.asked_for == ["/v1/models"]
            model = models_through(ask, "sam", None, "")("gpt-4o")
            assert isinstance(model, CheckedModel)
            with pytest.raises(ModelError, match="needs a key"):
                await model.check()
            model = models_through(ask, "sam", None, "")("offline")
            assert isinstance(model, CheckedModel)
            await model.check()
        await gateway.close()
        await actor._gateway.close()

    asyncio.run(main())

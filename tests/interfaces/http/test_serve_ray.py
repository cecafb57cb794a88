"""`everlog serve` in front of a Ray cluster: servers are killed and replaced; agents and their streams outlive them."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import openai
import pytest

from tests.cluster.test_command_line_ray import ROOT, Shell
from tests.support.cli.command_line import says
from tests.support.http.openai_client import assistant, user
from tests.support.http.served_store import SseEvent, sse

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.cluster]


class GatedModel:
    """Endpoint that answers each request while its gate is open, and holds it until then."""

    def __init__(self) -> None:
        self.url = ""
        self.gate = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
                await self.gate.wait()
                body = says("Ahoy").encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def gated_model() -> AsyncIterator[GatedModel]:
    """Run an endpoint while the block runs."""
    model = GatedModel()
    async with await asyncio.start_server(model.answer, "127.0.0.1", 0) as server:
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield model
        model.gate.set()


@contextmanager
def serving(everlog: Shell, model: GatedModel) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `everlog serve` over the cluster, and yield its process and its address. It is killed at the end."""
    words = ["serve", "--runtime", "ray", "--port", "0", "--base-url", model.url, "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "everlog.interfaces.cli.main", *words], cwd=ROOT, env=everlog.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, msgspec.json.decode(line)["address"]
    finally:
        process.kill()
        process.communicate()


class Caller:
    """Requests to one server."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def __call__(self, method: str, path: str, body: object = None) -> Any:
        """Send a request, which must succeed. Return its decoded answer."""
        answer = await self._client.request(method, f"/api/v1{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def page(self, path: str) -> str:
        """Read a page of the console."""
        answer = await self._client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def events(self, path: str, after: str = "") -> AsyncIterator[SseEvent]:
        """Yield the events of a stream, until it ends or its server does."""
        headers = {"Last-Event-ID": after} if after else {}
        try:
            async with self._client.stream("GET", f"/api/v1{path}", headers=headers) as answer:
                assert answer.status_code == 200
                async for one in sse(answer.aiter_bytes()):
                    yield one
        except httpx2.TransportError:
            return


@asynccontextmanager
async def calling(address: str) -> AsyncIterator[Caller]:
    """Connect to a server while the block runs."""
    async with httpx2.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
        yield Caller(client)


async def shows_the_cluster(call: Caller) -> None:
    """Read the console's page of the cluster: its machine, and the host of the agent that talked."""
    shown = await call.page("/console/cluster")
    rows = re.findall(r"<tr>(<th scope=.row.*?)</tr>", shown, re.DOTALL)
    machine, host = (" ".join(re.sub("<[^>]+>", " ", row).split()) for row in rows)
    assert re.search(r" runs \d+ ", machine), machine
    assert re.match("sam dedicated idle 1 of 1 ", host), host
    assert "No cluster runs" not in shown and 'role="alert"' not in shown


async def through_openai(address: str) -> None:
    """Talk to the same agent through OpenAI's client: resend, repeat, stream, edit, and in the background."""
    async with openai.AsyncOpenAI(
        base_url=f"{address}/openai/v1", api_key="none", max_retries=0,
        http_client=httpx2.AsyncClient(trust_env=False, timeout=60),
    ) as client:  # fmt: skip
        said: list[Any] = [user("Hello again")]
        first = await client.chat.completions.create(model="sam", messages=said)
        assert await client.chat.completions.create(model="sam", messages=said) == first
        said.append(assistant(first.choices[0].message.content or ""))
        parts = await client.chat.completions.create(model="sam", messages=[*said, user("More")], stream=True)
        assert "".join([part.choices[0].delta.content or "" async for part in parts]) == "Ahoy"
        edited = await client.chat.completions.with_raw_response.create(model="sam", messages=[*said, user("Less")])
        assert edited.headers["x-everlog-agent"].startswith("sam.chat-")
        later = await client.responses.create(model="sam", input="Think", background=True)
        events = [one.type async for one in await client.responses.retrieve(later.id, stream=True)]
        assert events[-1] == "response.completed"
        assert (await client.responses.retrieve(later.id)).output_text == "Ahoy"


async def conversation(everlog: Shell) -> None:
    """Talk to an agent of the cluster over two servers."""
    seen: list[SseEvent] = []
    async with gated_model() as model:
        with serving(everlog, model) as (first, address):
            async with calling(address) as call:
                settings = {"model": "house", "window": 16_000}
                assert (await call("POST", "/agents", {"name": "sam", "settings": settings}))["created"]
                run = (await call("POST", "/agents/sam/messages", {"text": "Hello", "wait": False}))["run"]
                async for one in call.events(f"/agents/sam/runs/{run}/stream"):
                    seen.append(one)
                    first.kill()  # the model holds its answer: the turn is at work in its host
        assert [one.data["type"] for one in seen if one.kind == "record"][:1] == ["user_message"]
        model.gate.set()
        with serving(everlog, model) as (_, address):
            async with calling(address) as call:
                rest = [one async for one in call.events(f"/agents/sam/runs/{run}/stream", seen[-1].id)]
                assert (rest[-1].kind, rest[-1].data["status"]) == ("end", "done")
                records = [one.data for one in (*seen, *rest) if one.kind == "record"]
                seqs = [record["seq"] for record in records]
                assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), "each record once, none lost"
                assert (await call("GET", f"/agents/sam/runs/{run}"))["text"] == "Ahoy"

                model.gate.clear()
                run = (await call("POST", "/agents/sam/messages", {"text": "Wait", "wait": False}))["run"]
                assert len((await call("POST", f"/agents/sam/runs/{run}/cancel"))["turns"]) == 1
                assert (await call("GET", f"/agents/sam/runs/{run}"))["status"] == "cancelled"
                model.gate.set()

                fed: list[tuple[str, int]] = []
                head = (await call("GET", "/agents/sam"))["head"]
                async for one in call.events("/feed?after=start&agent=sam"):
                    fed += [(record["agent"], record["seq"]) for record in one.data.get("records", ())]
                    if ("sam", head) in fed:
                        break
                assert fed == [("sam", seq) for seq in range(1, head + 1)]
                assert (await call("GET", "/cluster"))["running"]
                await shows_the_cluster(call)
            await through_openai(address)
            server = ("--server", address)
            aside = asyncio.to_thread
            assert "Ahoy" in await aside(everlog, *server, "send", "sam", "And you?")
            assert "sam" in await aside(everlog, *server, "agents")
            assert "no difference" in await aside(everlog, *server, "verify", "sam")


def test_servers_in_front_of_a_cluster_replace_each_other(tmp_path: Path) -> None:
    """A turn outlives the server that began it; another one resumes its stream, cancels, feeds, serves commands and the
    console's page of the cluster.
    """
    everlog = Shell(tmp_path / "store")
    everlog("up")
    try:
        asyncio.run(conversation(everlog))
    finally:
        everlog("down")

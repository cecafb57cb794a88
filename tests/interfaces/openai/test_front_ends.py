"""Published programs that speak OpenAI's API, as they are: each message of a conversation reaches the agent once."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx2
import pytest

from tests.support.http.killable_server import KillableServer
from tests.support.published_programs import installed, installed_for_node

pytestmark = [pytest.mark.long, pytest.mark.clients]
SAID = ("I fish", "What do I do?")

LITELLM = """
import litellm, sys
said = []
for text in sys.argv[2:]:
    said.append({"role": "user", "content": text})
    parts = litellm.completion(model="openai/sam", api_base=sys.argv[1], api_key="none", messages=said, stream=True)
    said.append({"role": "assistant", "content": "".join(part.choices[0].delta.content or "" for part in parts)})
"""
AGENTS_SDK = """
import asyncio, sys
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
async def main():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="none")
    model = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[sys.argv[2]]
    agent, said = Agent(name="x", instructions="Be brief.", model=model(model="sam", openai_client=client)), []
    for text in sys.argv[3:]:
        said = (await Runner.run(agent, [*said, {"role": "user", "content": text}])).to_input_list()
asyncio.run(main())
"""
AI_SDK = """
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';
const [, , baseURL, ...texts] = process.argv;
const everlog = createOpenAICompatible({ name: 'everlog', baseURL, apiKey: 'none' });
const messages = [];
for (const content of texts) {
  messages.push({ role: 'user', content });
  messages.push({ role: 'assistant', content: await streamText({ model: everlog('sam'), messages }).text });
}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KillableServer]:
    """Serve a store with the agent sam, in a process of its own."""
    served = KillableServer(tmp_path / "store")
    served.start()
    httpx2.post(f"{served.address}/api/v1/agents", json={"name": "sam"}, trust_env=False).raise_for_status()
    yield served
    served.kill()


def ran(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] = {}, keys: str = "") -> None:
    """Run a program in a folder. `keys`: what is typed into it."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, input=keys, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def check_said(server: KillableServer, ends: str = "") -> None:
    """Check that the agent alone, and no fork of it, has the conversation, once a message."""
    listed = httpx2.get(f"{server.address}/api/v1/agents", trust_env=False).json()
    assert [row["agent"] for row in listed["agents"]] == ["sam"]
    page = httpx2.get(f"{server.address}/api/v1/agents/sam/records?limit=1000", trust_env=False).json()
    asked = [r for r in page["records"] if r["type"] == "user_message" and not r["payload"].get("imported")]
    assert [r["text"].strip() for r in asked] == [f"{text}{ends}" for text in SAID]
    assert len({r["payload"]["conversation"] for r in asked}) == 1


def test_llm(server: KillableServer, tmp_path: Path) -> None:
    """The command `llm` continues a conversation of its own."""
    programs = installed(tmp_path / "env", "llm")
    user = tmp_path / "user"
    user.mkdir()
    model = f'- model_id: sam\n  model_name: sam\n  api_base: "{server.address}/openai/v1"\n'
    (user / "extra-openai-models.yaml").write_text(model)
    more = {"LLM_USER_PATH": str(user), "OPENAI_API_KEY": "none"}
    ran([programs / "llm", "-m", "sam", SAID[0]], tmp_path, more)
    ran([programs / "llm", "-c", SAID[1]], tmp_path, more)
    check_said(server)


def test_litellm(server: KillableServer, tmp_path: Path) -> None:
    """LiteLLM streams a conversation that it resends."""
    programs = installed(tmp_path / "env", "litellm")
    local = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    ran([programs / "python", "-c", LITELLM, f"{server.address}/openai/v1", *SAID], tmp_path, local)
    check_said(server)


@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_agents_sdk(server: KillableServer, tmp_path: Path, kind: str) -> None:
    """The Agents SDK resends its items, as chat completions and as responses."""
    programs = installed(tmp_path / "env", "openai-agents")
    ran([programs / "python", "-c", AGENTS_SDK, f"{server.address}/openai/v1", kind, *SAID], tmp_path)
    check_said(server)


def test_aider(server: KillableServer, tmp_path: Path) -> None:
    """Aider talks in its ask mode, with a reminder behind each message that it leaves out later."""
    programs = installed(tmp_path / "env", "aider-chat")
    options = ["--model", "openai/sam", "--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings",
               "--no-analytics", "--no-pretty", "--no-fancy-input"]  # fmt: skip
    address = {"OPENAI_API_BASE": f"{server.address}/openai/v1", "OPENAI_API_KEY": "none"}
    keys = "".join(f"/ask {text}\n" for text in SAID) + "/exit\n"
    ran([programs / "aider", *options], tmp_path / "work", address, keys)
    check_said(server, ends="\n\nReply in English.")


def test_vercel_ai_sdk(server: KillableServer, tmp_path: Path) -> None:
    """The AI SDK streams a conversation from Node."""
    work = tmp_path / "js"
    installed_for_node(work, "ai@6", "@ai-sdk/openai-compatible@2", "zod@4")
    (work / "talk.mjs").write_text(AI_SDK)
    ran(["node", "talk.mjs", f"{server.address}/openai/v1", *SAID], work)
    check_said(server)

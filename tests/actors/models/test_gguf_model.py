"""A real model in llama.cpp, in this process: any reply is recorded, and no reply causes a crash."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.api import open_system
from everlog.events import AgentConfigured, ModelError, ModelReply, Record, ReplyRejected, Sampling, decode
from everlog.interfaces.cli.main import main
from tests.support.models.gguf_test_file import gemma, real, written
from tests.support.seeds import split

WAYS = ("native", "schema", "text")

TEMPLATE = """\
{%- if tools %}<|im_start|>system
You can call:{% for tool in tools %} {{ tool.function.name }}{% endfor %}.<|im_end|>
{% endif %}{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def talk(store: Path, settings: Settings, messages: Sequence[str]) -> tuple[list[Record], list[ModelError]]:
    """Return the log's records of a conversation, and the errors of failed turns."""

    async def talked() -> tuple[list[Record], list[ModelError]]:
        failed = []
        async with open_system(store, runtime="local", timers=False) as system:
            agent = await system.agent("sam", settings)
            for words in messages:
                try:
                    await agent.send(words)
                except ModelError as error:
                    failed.append(error)
            reader = system.store.reader("sam")
            return list(reader.read("sam", 1, reader.head("sam").seq)), failed

    return asyncio.run(talked())


def settings(way: str, **more: object) -> Settings:
    short = Sampling(temperature=0.0, seed=1, max_tokens=48 if way == "schema" else 6)
    asked = Settings(
        model=str(gemma()), calling=way, window=8192, system="You are Sam.", sampling=short, monologue_chars_max=24
    )
    return msgspec.structs.replace(asked, **more)


def holds(store: Path, records: Sequence[Record], failed: Sequence[ModelError], turns: int) -> list[ModelReply]:
    """Check a log after a conversation, and return the model's replies."""
    kinds = [record.type for record in records]
    assert kinds.count("user_message") == turns
    assert kinds.count("model_failed") == len(failed)
    assert main(["--store", str(store), "verify", "sam"]) == 0
    assert main(["--store", str(store), "log", "check", "sam", "--deep"]) == 0
    events = [decode(record.type, record.version, record.text, record.payload) for record in records]
    answered = [event for event in events if isinstance(event, ModelReply | ReplyRejected) and event.context_sha256]
    assert len(answered) >= turns - len(failed) > 0
    assert all(event.usage.prompt and event.usage.completion for event in answered)
    assert sum(event.usage.cached for event in answered) > sum(event.usage.prompt for event in answered) / 2
    return [event for event in answered if isinstance(event, ModelReply)]


def tools_template(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model use a chat template that shows the functions."""
    (store.parent / "tools.jinja").write_text(TEMPLATE)
    described = store.parent / "models.toml"
    template = store.parent / "tools.jinja"
    described.write_text(f'[models."{gemma()}"]\nchat_template = "{template}"\nthreads = 1\n')
    monkeypatch.setenv("EVERLOG_MODELS", str(described))


@real
@pytest.mark.parametrize("way", split(WAYS, 1, label="ways", part="models"))
@pytest.mark.xdist_group("gguf")
def test_two_turns_in_each_calling_format_verify(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn is answered or its failure is an event; the tokens are counted by the server, which takes most of each
    prompt from its cache.
    """
    store = tmp_path / "store"
    tools_template(store, monkeypatch)
    records, failed = talk(store, settings(way), [f"Message {n}: I sail to Bergen." for n in range(2)])
    replies = holds(store, records, failed, 2)
    if way == "schema":  # a reply that is not truncated follows the schema
        assert any(reply.calls and not reply.lossy for reply in replies)


@real
@pytest.mark.long
@pytest.mark.models
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.xdist_group("gguf")
def test_thirty_turns_in_each_calling_format_verify(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty turns with longer replies fill the window: summaries are made, or the turn ends with an event."""
    store = tmp_path / "store"
    tools_template(store, monkeypatch)
    asked = settings(way, sampling=Sampling(temperature=0.7, seed=1, max_tokens=64))
    said = [f"Message {n}: {'I sail to Bergen and back with my dog. ' * 12}" for n in range(30)]
    records, failed = talk(store, asked, said)
    holds(store, records, failed, 30)


@real
@pytest.mark.long
@pytest.mark.models
@pytest.mark.xdist_group("gguf")
def test_an_overflow_reported_by_the_server_leads_to_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with a smaller window than the agent's refuses a long request; the oldest part is then summarized, and
    the turn continues.
    """
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path, wanted.hostnames, wanted.port, wanted.verbosity = str(gemma()), ["127.0.0.1"], 0, -1
    wanted.n_ctx, wanted.n_parallel, wanted.cpuparams.n_threads = 512, 1, 1
    server = xllamacpp.Server(wanted)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.listening_address}/v1")
    asked = settings("native", model="gemma", sampling=Sampling(temperature=0.0, seed=1, max_tokens=4))
    records, failed = talk(tmp_path / "store", asked, [f"{n} {'I sail to Bergen. ' * 20}" for n in range(2)])
    kinds = [record.type for record in records]
    assert not failed
    assert any("exceeds" in (record.text or "") for record in records if record.type == "reply_rejected")
    assert "summary" in kinds
    assert kinds[-1] in ("message_sent", "function_result", "model_reply", "turn_abandoned")
    assert main(["--store", str(tmp_path / "store"), "verify", "sam"]) == 0


@real
@pytest.mark.xdist_group("gguf")
def test_a_file_that_llama_cpp_cannot_load_ends_the_turn(tmp_path: Path) -> None:
    """A file with a valid header but no model ends the turn with an event that says what may help."""
    path = tmp_path / "none.gguf"
    path.write_bytes(written({"general.architecture": "llama", "llama.context_length": 4096}))
    records, failed = talk(tmp_path / "store", Settings(model=str(path)), ["Hello."])
    assert len(failed) == 1
    assert f"llama.cpp cannot run {path} with a window of 4,096 tokens" in str(failed[0])
    assert [record.type for record in records][-1] == "model_failed"


@real
@pytest.mark.xdist_group("gguf")
def test_a_file_is_set_up_by_what_its_header_says(tmp_path: Path) -> None:
    """The window is that of the file, up to 8,192; because its template shows no functions, replies follow a schema."""
    records, _ = talk(tmp_path / "store", Settings(model=str(gemma())), [])
    events = [decode(record.type, record.version, record.text, record.payload) for record in records]
    configured = next(event for event in events if isinstance(event, AgentConfigured))
    assert (configured.model, configured.window, configured.calling) == (str(gemma()), 8192, "schema")

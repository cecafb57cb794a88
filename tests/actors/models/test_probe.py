"""The abilities of an endpoint are found with small requests; every answer is a finding."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.gateway.model_factory import real_models
from everlog.actors.models import probe as probing
from everlog.actors.models import probe_http
from everlog.actors.models.model_types import Abilities, ProbeFindings
from everlog.actors.models.probe import REPLY_TOKENS, THINKING_TOKENS, probe
from everlog.actors.models.probe_http import ProbeResponse, sender
from everlog.events import ModelError
from tests.support.models.loopback_server import serving
from tests.support.models.probe_endpoints import Server, message, reply, streamed

URL = "http://127.0.0.1:9/v1"
ALL = Abilities(
    tools=True, json_schema=True, parallel_calls=True, streaming=True, usage=True, stream_usage=True
)  # fmt: skip
PROSE = message("Hello there!")


def found(server: Server) -> ProbeFindings:
    return probe(URL, "tiny", server, at=5)


def test_a_server_that_can_do_everything_is_known_to() -> None:
    """With the answers of vLLM, every ability and the window are found, and each request is small."""
    server = Server("vllm", row={"max_model_len": 32768})
    told = found(server)
    assert told.abilities == ALL
    assert (told.server, told.window, list(told.models), told.fault, told.at) == ("vLLM", 32768, ["tiny"], "", 5)
    assert len(server.bodies) == 5  # two answers settle the calling of functions, and two the schema
    assert all(body["max_tokens"] == REPLY_TOKENS and len(str(body)) < 700 for body in server.bodies)


def test_a_model_whose_template_knows_no_tools_answers_in_prose() -> None:
    """llama.cpp with a model without tool support: no tools, but schemas and grammars; the window is read from
    /props.
    """
    props = {"default_generation_settings": {"n_ctx": 4096}}
    told = found(Server("llamacpp", tools=PROSE, paths={"/props": props}))
    assert (told.server, told.window) == ("llama.cpp", 4096)
    assert told.abilities == msgspec.structs.replace(ALL, tools=False, grammar=True, parallel_calls=None)
    assert told.abilities.preferred_format == "schema"
    assert "Hello there!" in told.said["tools"]


@pytest.mark.parametrize(("answers", "tools"), [("wcc", True), ("cwc", True), ("cww", False), ("ww", False)])
def test_one_answer_does_not_settle_the_way_of_calling(answers: str, tools: bool) -> None:
    """A model that errs once (w) and calls twice (c) calls functions; two answers that agree settle it."""
    server = Server("vllm")
    said = iter(answers)

    def send(method: str, url: str, body: bytes | None) -> ProbeResponse:
        answer = server(method, url, body)
        return PROSE if body and b'"tools"' in body and next(said) == "w" else answer

    assert probe(URL, "tiny", send, at=5).abilities.tools is tools
    assert next(said, None) is None


def test_a_call_with_wrong_arguments_is_reported_as_a_call() -> None:
    """A model that calls the function with a number for the word has not answered in words: the call is quoted."""
    call = {"id": "c", "type": "function", "function": {"name": "report", "arguments": '{"word":7}'}}
    wrong = reply({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]})
    told = found(Server("vllm", tools=wrong))
    assert told.abilities.tools is False
    assert told.said["tools"] == "it called a function, but not as asked: 'report({\"word\":7})'"


def test_a_server_that_refuses_tools_has_none() -> None:
    """VLLM without a tool parser answers with status 400: the model has no tools, and the reason is kept."""
    said = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    told = found(Server("vllm", tools=reply({"error": {"message": said}}, 400)))
    assert told.abilities.tools is False
    assert "--enable-auto-tool-choice" in told.said["tools"]


def test_a_server_that_ignores_parameters_is_detected() -> None:
    """Prose instead of a call or JSON, a whole reply instead of a stream, and no usage: only the text format is
    left.
    """
    plain = message("Hello there!", usage=False)
    told = found(Server(tools=plain, schema=plain, stream=plain))
    assert told.abilities == Abilities(tools=False, json_schema=False, streaming=False, usage=False)
    assert told.abilities.preferred_format == "text"


@pytest.mark.parametrize("thought", [None, "<think>Let me see: the user"])
def test_a_model_that_thinks_before_it_answers_is_given_the_time(thought: str | None) -> None:
    """A model that is still thinking at the limit of tokens is called again with a higher limit, and that answer
    counts.
    """
    server = Server()

    def send(method: str, url: str, body: bytes | None) -> ProbeResponse:
        answer = server(method, url, body)
        thinks = server.bodies and server.bodies[-1].get("max_tokens") == REPLY_TOKENS
        return message(thought, finish="length") if thinks else answer

    told = probe(URL, "tiny", send, at=5)
    assert told.abilities == ALL
    assert [body["max_tokens"] for body in server.bodies] == [REPLY_TOKENS, *[THINKING_TOKENS] * 5]


@pytest.mark.parametrize("said", [None, "Okay, so the user wants me to"])
def test_a_truncated_reply_leaves_abilities_unknown(said: str | None) -> None:
    """Abilities are unknown, not absent, if the model's reply never ends."""
    cut = message(said, finish="length")
    told = found(Server("llamacpp", tools=cut, schema=cut, grammar=cut))
    assert told.abilities == msgspec.structs.replace(ALL, tools=None, json_schema=None, parallel_calls=None)
    assert told.abilities.preferred_format is None
    assert "did not end within" in told.said["tools"]


def test_streams_with_and_without_counts_are_distinguished() -> None:
    """A stream without usage is reported, so that an agent is not configured to stream from such a server."""
    assert found(Server(stream=streamed(usage=False))).abilities.stream_usage is False


@pytest.mark.parametrize(
    ("owner", "paths", "server", "window"),
    [
        ("library", {"/api/ps": {"models": [{"name": "tiny", "context_length": 8192}]}}, "Ollama", 8192),
        ("library", {"/api/show": {"parameters": "stop x\nnum_ctx    16384"}}, "Ollama", 16384),
        ("library", {"/api/ps": {"models": []}}, "Ollama", None),
        ("organization_owner", {"/api/v0/models": {"data": [{"id": "tiny", "loaded_context_length": 4096}]}},
         "LM Studio", 4096),
        ("koboldcpp", {"/api/extra/true_max_context_length": {"value": 6144}}, "KoboldCpp", 6144),
        ("", {"/props": {"default_generation_settings": {"n_ctx": 2048}}}, "llama.cpp", 2048),
        ("", {"/props": "<html>", "/api/ps": [1, 2]}, "", None),
    ],
)  # fmt: skip
def test_the_window_is_found_for_each_kind_of_server(
    owner: str, paths: dict[str, object], server: str, window: int | None
) -> None:
    """The window is that of the loaded model; a server that does not report it has none, and unexpected answers raise
    no error.
    """
    told = found(Server(owner, paths=paths))
    assert (told.server, told.window, told.fault) == (server, window, "")


def test_newer_models_get_max_completion_tokens() -> None:
    """Newer models of OpenAI refuse max_tokens; the probe then uses max_completion_tokens for all further requests."""
    server = Server("system")
    refusal = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}

    def send(method: str, url: str, body: bytes | None) -> ProbeResponse:
        answer = server(method, url, body)
        return reply(refusal, 400) if body and b'"max_tokens"' in body else answer

    assert probe(URL, "tiny", send, at=5).abilities == ALL
    assert len(server.bodies) == 6


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Server(paths={"/v1/models": reply("<!doctype html><title>Router</title>")}), "web page"),
        (Server(paths={"/v1/models": reply({"error": {"message": "bad key"}}, 401)}), "refused the key .*OPENAI_API"),
        (Server(tools=reply({"error": "model 'tiny' not found"}, 404)), "does not know 'tiny' .*It serves 'tiny'"),
        (Server(tools=reply({"error": {"message": "CUDA out of memory"}}, 500)), "failed with status 500"),
        (Server(tools=reply("[1]")), "no chat completion"),
        (Server(tools=reply("\x00\xff{")), "no chat completion"),
        (Server(paths={"/v1/models": ProbeResponse(0, "Connection refused")}), "cannot be reached"),
    ],
)  # fmt: skip
def test_a_failed_probe_names_the_reason(server: Server, said: str) -> None:
    """A web page, a wrong key, a missing model, a broken server and a dead port each have their own error."""
    told = found(server)
    assert told.abilities == Abilities()
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(told.fault)


def test_a_server_without_a_list_of_models_can_still_be_asked() -> None:
    """The probe works without /v1/models."""
    told = found(Server(paths={"/v1/models": reply({"detail": "Not Found"}, 404)}))
    assert told.abilities == ALL
    assert "does not say" in told.said["models"]


@pytest.mark.parametrize(
    "broken", ["", "null", "[]", '{"choices": []}', '{"choices": [null]}', '{"choices": 7}', "\xff"]
)
def test_no_answer_crashes_the_probe(broken: str) -> None:
    """With invalid content as any of the replies, the probe completes."""
    for question in ("tools", "schema", "stream", "grammar"):
        found(Server("llamacpp", **{question: ProbeResponse(200, broken)}, paths={"/props": broken}))  # type: ignore[arg-type]
    found(Server(paths={"/v1/models": broken}))


def test_the_key_is_sent_and_removed_from_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is read from the named variable and removed from the endpoint's answer; without a name, no key is
    sent.
    """
    key = "a-secret-that-is-long-enough"
    monkeypatch.setenv("OFFICE_KEY", key)
    with serving((400, f'{{"error": {{"message": "{key} is wrong"}}}}')) as server:
        answer = sender("OFFICE_KEY")("POST", f"{server.url}/chat/completions", b"{}")
        sender("")("POST", f"{server.url}/chat/completions", b"{}")
    assert answer == ProbeResponse(400, '{"error": {"message": "[key] is wrong"}}')
    assert [headers.get("authorization") for headers in server.headers] == [f"Bearer {key}", None]


def test_a_dead_port_is_reported_as_status_0() -> None:
    """Without a server the answer is status 0 with the reason."""
    with serving((200, "{}")) as server:
        pass
    assert sender("")("GET", f"{server.url}/models", None).status == 0


def test_an_error_names_the_variable_that_the_key_is_taken_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway sends the key that models.toml names for an address, and the error names the variable of that key."""
    monkeypatch.setenv("OPENAI_API_KEY", "one-that-is-for-somebody-else")
    monkeypatch.setenv("OFFICE_KEY", "one-that-is-for-the-office")
    with serving((401, '{"error": {"message": "no"}}')) as server:
        (tmp_path / "models.toml").write_text(f'[endpoints.office]\nurl = "{server.url}"\nkey = "OFFICE_KEY"\n')
        model = real_models(GatewayLimits(), tmp_path)("tiny", server.url)

        async def ask() -> None:
            try:
                await model.ask(b"{}")
            finally:
                await model.close()

        with pytest.raises(ModelError, match="OFFICE_KEY") as told:
            asyncio.run(ask())
    assert "OPENAI" not in str(told.value)
    assert server.headers[0]["authorization"] == "Bearer one-that-is-for-the-office"


def test_a_probe_follows_no_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect is an answer and is not followed, because the key is for one address."""
    monkeypatch.setenv("OFFICE_KEY", "a-secret-that-is-long-enough")
    with serving((200, "{}")) as elsewhere, serving((307, ""), location=f"{elsewhere.url}/models") as here:
        answer = sender("OFFICE_KEY")("POST", f"{here.url}/chat/completions", b"{}")
    assert (answer.status, elsewhere.bodies) == (307, [])


def test_a_long_probe_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer beyond the limit is cut at the limit."""
    monkeypatch.setattr(probe_http, "BODY_BYTES_MAX", 1000)
    with serving((200, "x" * 2000)) as server:
        assert sender("")("POST", server.url, b"{}") == ProbeResponse(200, "x" * 1000)


@pytest.mark.parametrize("url", ["http://[", "http://[::1", "//", "", "http://api.openai.com.example/v1"])
def test_an_address_that_is_none_is_not_openais(url: str) -> None:
    """Garbage in OPENAI_BASE_URL is no address of OpenAI's, and no traceback."""
    assert not probing.is_openai(url)
    assert probing.is_openai("https://api.openai.com/v1")

"""Failures in the words of real servers: their class, their message, and no key in it."""

import asyncio
import re
from pathlib import Path

import pytest

from everlog.actors.formats import parse_reply
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.models.classify_failure import refusal
from everlog.actors.models.failure_classes import FAILURES
from everlog.actors.models.openai_client import ChatEndpoint
from everlog.events import BadReply, ContextOverflow, ModelError
from tests.support.models.endpoint_server import KEY, Act, plain, serving
from tests.support.models.server_replies import DIALECTS, error

LLAMA = '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing it",'
LLAMA += '"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}'
MAX = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"

OVERFLOWS = [
    (400, error(MAX, "context_length_exceeded")),  # OpenAI
    (400, f'{{"object":"error","message":"{MAX}","type":"BadRequestError","param":null,"code":400}}'),  # vLLM
    (400, error("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 400)),
    (400, error("The decoder prompt (length 99) is too long to fit into the model", 400)),
    (400, LLAMA),
    (500, error("context size has been exceeded", 500, "server_error")),
    (400, ('{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded '
          'with context length of only 4096 tokens"}')),  # LM Studio
    (422, ('{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",'
          '"error_type":"validation"}')),  # TGI, Together
    (400, error("Please reduce the length of the messages or completion.", "context_length_exceeded")),  # Groq
    (413, error("Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000")),
    (429, error("Request too large for gpt-x on tokens per min (TPM): Limit 10000, Requested 12000", "rate_limit")),
    (400, ('{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context '
          'length","type":"invalid_request_error"}')),  # Mistral
    (400, ('{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > '
          '200000 maximum"}}')),  # Anthropic
    (400, '{"message":"Input is too long for requested model."}'),  # Bedrock
    (400, ('[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens '
          'allowed (1048575).","status":"INVALID_ARGUMENT"}}]')),  # Google
    (400, error("litellm.ContextWindowExceededError: litellm.BadRequestError: too long", 400)),
    (400, error("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 400)),  # SGLang
    (400, error("This model's maximum prompt length is 131072 but the request contains 140000 tokens.")),  # xAI
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),  # a proxy
]  # fmt: skip

FAILED: list[tuple[int, str, str]] = [
    (401, error("Incorrect API key provided", "invalid_api_key"), "key"),
    (400, error("API key not valid. Please pass a valid API key.", "API_KEY_INVALID"), "key"),
    (401, "Unauthorized", "key"),
    (403, error("You are not allowed to sample from this model"), "forbidden"),
    (402, error("Insufficient Balance"), "credit"),
    (429, error("You exceeded your current quota, please check your plan", "insufficient_quota"), "credit"),
    (400, error("Your credit balance is too low to access the API"), "credit"),
    (429, error("Rate limit reached for gpt-x. Please try again in 1.2s."), "rate_limited"),
    (429, '{"message":"Too many tokens, please wait before trying again."}', "rate_limited"),
    (503, error("The engine is currently overloaded, please try again later"), "overloaded"),
    (529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "overloaded"),
    (500, error("The server is overloaded"), "overloaded"),
    (503, error("Loading model", 503, "unavailable_error"), "loading"),
    (503, '{"error":"Model x/y is currently loading","estimated_time":20}', "loading"),
    (500, "oops", "server"), (408, "", "server"), (409, "{}", "server"),
    (502, "<html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>", "server"),
    (504, "<html><head><title>504 Gateway Time-out</title></head></html>", "server"),
    (400, error("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
                "content_filter"), "filtered"),
    (403, error("Your chosen model requires moderation and your input was flagged for \"x\""), "filtered"),
    (404, error("The model `gpt-z` does not exist or you do not have access to it.", "model_not_found"), "missing"),
    (404, '{"error":{"message":"model \\"x\\" not found, try pulling it first","type":"api_error"}}', "missing"),
    (400, error("The model `x` does not exist."), "missing"),
    (404, '{"detail":"Not Found"}', "missing"),
    (400, '{"error":{"message":"registry.ollama.ai/gemma3 does not support tools","type":"api_error"}}', "tools"),
    (400, error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'), "tools"),
    (500, error("tools param requires --jinja flag", 500), "tools"),
    (404, error("No endpoints found that support tool use.", 404), "tools"),
    (400, error("Unrecognized request argument supplied: tools"), "tools"),
    (400, "Client sent an HTTP request to an HTTPS server.\n", "address"),
    (400, "<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>", "address"),
    (301, "", "address"), (307, "<html>moved</html>", "address"),
    (400, error("bad tools"), "rejected"), (418, "tea", "rejected"),
    (422, '{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}', "rejected"),
]  # fmt: skip
FAILED += [(status, body, "overflow") for status, body in OVERFLOWS]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize(("status", "body", "kind"), FAILED)
def test_each_refusal_has_its_class(status: int, body: str, kind: str) -> None:
    """The error is one line that says what was found and what to do; only a failure that a shorter context can mend is
    an overflow.
    """
    failed = refusal(status, {"location": "https://elsewhere/v1"}, body, name="m", url="http://x/v1/")
    assert failed.kind == kind and "\n" not in str(failed)
    assert isinstance(failed, ContextOverflow) == (kind == "overflow")
    if kind != "overflow":
        assert re.sub(r"\{model\}", "'m'", FAILURES[kind].cure)[:20] in str(failed) or kind == "address"
    assert "<html" not in str(failed)


def test_each_refusal_has_its_class_over_a_connection() -> None:
    """Over a real connection, each body gives its class; the key, which is in each body, is in no message and is sent
    to no other host.
    """

    async def main() -> None:
        acts = [
            Act([f"{body} {KEY}".encode()], status, [("location", f"http://127.0.0.1:1/{KEY}")])
            for status, body, _ in FAILED
        ]
        async with serving(*acts) as wire:
            model = ChatEndpoint("m", wire.url)
            for status, body, kind in FAILED:
                with pytest.raises(ModelError) as caught:
                    await model.ask(b"{}")
                assert caught.value.kind == kind, (status, body)
                assert KEY not in f"{caught.value} {vars(caught.value)}"
            await model.close()
        assert len(wire.bodies) == len(FAILED)

    asyncio.run(main())


@pytest.mark.parametrize(("body", "kind"), [
    ("<!doctype html><html><title>Welcome</title></html>", "garbage"), ("", "garbage"), ("null", "garbage"),
    ('{"choices": []}', "garbage"), ('{"object": "list", "data": []}', "garbage"), ("{", "cut"),
    (error("Provider returned error", 502), "server"), ('{"error": "overloaded"}', "overloaded"),
    (error(MAX, 400), "overflow"),
])  # fmt: skip
def test_invalid_completions_keep_their_raw_body(body: str, kind: str) -> None:
    """With a success status, HTML, other JSON and a reply without choices are `garbage`, half of a JSON text `cut`; an
    error in the body has its own class.
    """

    async def main() -> None:
        async with serving(plain(body)) as wire:
            model = ChatEndpoint("m", wire.url)
            with pytest.raises(ModelError) as caught:
                parse_reply.reply((await model.ask(b"{}")).raw, 8192)
            await model.close()
        assert caught.value.kind == kind
        if kind != "overflow":
            assert isinstance(caught.value, BadReply) and caught.value.raw == body

    asyncio.run(main())


def test_the_retry_time_is_read_from_the_body() -> None:
    """The time to retry is read from the body if no header has it; a header takes precedence."""
    words = error("Rate limit reached. Please try again in 250ms.")
    assert refusal(429, {}, words, name="m", url="u").retry_after_s == 0.25
    assert refusal(429, {"retry-after": "3"}, words, name="m", url="u").retry_after_s == 3
    google = '{"error":{"code":429,"details":[{"retryDelay": "17s"}]}}'
    assert refusal(429, {}, google, name="m", url="u").retry_after_s == 17


def test_tls_to_a_plain_server_fails_at_once() -> None:
    """A TLS failure is not retried, because a retry cannot help; the message names the address."""

    async def main() -> None:
        async with serving(plain("{}")) as wire:
            one = Gateway()
            with pytest.raises(ModelError) as caught:
                await one.ask("m", wire.url.replace("http:", "https:"), b"{}")
            await one.close()
        assert (caught.value.kind, caught.value.attempts) == ("address", 1) and "--base-url" in str(caught.value)

    asyncio.run(main())


def test_a_failure_leaves_the_connection_of_use() -> None:
    """After any failure the next request is answered over the same connection."""

    async def main() -> None:
        async with serving(*(plain(body, status) for status, body, _ in FAILED), plain(DIALECTS[0].whole)) as wire:
            model = ChatEndpoint("m", wire.url)
            for _ in FAILED:
                with pytest.raises(ModelError):
                    await model.ask(b"{}")
            assert parse_reply.reply((await model.ask(b"{}")).raw, 8192).calls
            assert wire.open == 1
            await model.close()

    asyncio.run(main())


def test_the_table_of_the_guide_is_that_of_the_code() -> None:
    """Each class, in order, with what it is and what is done."""
    guide = (Path(__file__).parents[3] / "docs" / "reference" / "gateway.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+?) \| (.+?) \|$", guide, re.MULTILINE)
    expected = []
    for kind, failure in FAILURES.items():
        done = ["tried again"] * failure.retried + ["counted by the breaker"] * failure.trips
        done += ["the endpoint is shut"] * failure.shuts + ["the fallback model"] * failure.falls_back
        expected.append((kind, failure.what, ", ".join(done) or "told"))
    assert rows == expected

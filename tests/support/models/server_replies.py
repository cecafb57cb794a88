"""The same reply as OpenAI, vLLM, Ollama and llama.cpp send it, whole and as a stream, each with its peculiarities."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TEXT = "Grüß ☺ sie."
ARGUMENTS = '{"message": "Hällo, \\"Sam\\" 😀", "request_heartbeat": true}'
TEXTS = ["Grü", "ß ☺", " sie."]
PARTS = ['{"message"', ': "Hällo, \\"Sa', 'm\\" 😀", "request_', 'heartbeat": true}']
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Dialect:
    """One server's response, whole and as a stream of events."""

    name: str
    whole: str
    events: Sequence[bytes]


def event(data: Any, end: str = "\n") -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}{end}{end}".encode()


def _chunks(head: dict[str, Any], deltas: Sequence[tuple[dict[str, Any], str | None]], **more: Any) -> list[bytes]:
    return [
        event({**head, "object": "chat.completion.chunk",
               "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]})
        for delta, finish in deltas
    ]  # fmt: skip


def _call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "send_message", "arguments": ARGUMENTS}, **more}


def _whole(head: dict[str, Any], message: dict[str, Any], usage: dict[str, Any], **more: Any) -> str:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    return json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage, **more})


def _said(first: dict[str, Any], begun: dict[str, Any], part: Any) -> list[tuple[dict[str, Any], str | None]]:
    """Return deltas for a text and for a call whose arguments come in parts."""
    texts = [({"content": text}, None) for text in TEXTS]
    return [
        (first, None),
        *texts,
        (begun, None),
        *(({"tool_calls": [part(a)]}, None) for a in PARTS),
        ({}, "tool_calls"),
    ]


def _openai() -> Dialect:
    head = {"id": "chatcmpl-9", "created": 1, "model": "gpt-x", "system_fingerprint": "fp_1", "service_tier": "default"}
    usage = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99,
             "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {}}  # fmt: skip
    message = {"content": TEXT, "refusal": None, "annotations": [], "tool_calls": [_call("call_a")]}
    begun = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "send_message", "arguments": ""}}
    deltas = _said(
        {"role": "assistant", "content": "", "refusal": None}, {"tool_calls": [begun]},
        lambda part: {"index": 0, "function": {"arguments": part}},
    )  # fmt: skip
    chunks = _chunks({**head, "usage": None, "obfuscation": "Xy"}, deltas, logprobs=None)
    last = event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Dialect("openai", _whole(head, message, usage), [*chunks, last, DONE])


def _vllm() -> Dialect:
    head = {"id": "chatcmpl-0a1b", "created": 1, "model": "Qwen/Qwen3-8B"}
    usage = {"prompt_tokens": 90, "total_tokens": 99, "completion_tokens": 9, "prompt_tokens_details": None}
    message = {"content": TEXT, "reasoning_content": "Hm.", "tool_calls": [_call("chatcmpl-tool-1")]}
    begun = {"index": 0, "id": "chatcmpl-tool-1", "type": "function", "function": {"name": "send_message"}}
    deltas = _said(
        {"role": "assistant", "content": ""}, {"tool_calls": [begun]},
        lambda part: {"index": 0, "function": {"arguments": part}},
    )  # fmt: skip
    deltas.insert(1, ({"reasoning_content": "Hm."}, None))
    chunks = _chunks(head, deltas, logprobs=None, stop_reason=None, token_ids=None)
    last = event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Dialect("vllm", _whole(head, message, usage, prompt_logprobs=None), [*chunks, last, DONE])


def _ollama() -> Dialect:
    """Return Ollama's dialect: whole calls next to empty content, and comments that keep the connection open."""
    head = {"id": "chatcmpl-123", "created": 1, "model": "qwen3:8b", "system_fingerprint": "fp_ollama"}
    usage = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}
    message = {"content": TEXT, "tool_calls": [_call("call_x1", index=0)]}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": text}, None) for text in TEXTS]
    deltas += [
        ({"role": "assistant", "content": "", "tool_calls": [_call("call_x1", index=0)]}, None),
        ({"role": "assistant", "content": ""}, "tool_calls"),
    ]
    last = event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Dialect("ollama", _whole(head, message, usage), [b": ping\n\n", *_chunks(head, deltas), last, DONE])


def _llamacpp() -> Dialect:
    """Return llama.cpp's dialect: content begins as null, and the last chunk has the timings."""
    head = {"id": "chatcmpl-Zz", "created": 1, "model": "gemma-3", "system_fingerprint": "b6000-abc"}
    usage = {"completion_tokens": 9, "prompt_tokens": 90, "total_tokens": 99}
    timings = {"prompt_n": 90, "prompt_ms": 1.5, "predicted_n": 9, "predicted_ms": 2.5, "cache_n": 0}
    message = {"content": TEXT, "tool_calls": [_call("R4nd0m")]}
    begun = {"index": 0, "id": "R4nd0m", "type": "function", "function": {"name": "send_message", "arguments": ""}}
    deltas = _said(
        {"role": "assistant", "content": None}, {"tool_calls": [begun]},
        lambda part: {"index": 0, "function": {"arguments": part}},
    )  # fmt: skip
    last = {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage, "timings": timings}
    return Dialect(
        "llama.cpp", _whole(head, message, usage, timings=timings), [*_chunks(head, deltas), event(last), DONE]
    )


DIALECTS = [_openai(), _vllm(), _ollama(), _llamacpp()]


def error(message: str, status: int | str | None = None, kind: str = "invalid_request_error") -> str:
    """Return the body of an error as most servers send it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": status}})

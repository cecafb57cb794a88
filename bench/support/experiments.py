"""Run one of the MemGPT paper's experiments: pose questions to agents, and read from the records what they found.

Used by the files of `bench/paper`. Outcomes are read from the records alone, so a script, the offline model and a real
model are scored in the same way.

A scripted model decides by the request and nothing else: it tests the agent, its search and its pages, and not how well
a model reads. `--model` replaces it.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system
from everlog.actors.ports.effects import ModelResponse
from everlog.events import Event, ModelError
from everlog.store.embedding.best_passage import MARK

Call = tuple[str, dict[str, Any]]
"""Name of a function, and its arguments."""
SCRIPT = "script"
UNKNOWN = "I do not know."
AT_ONCE = 8
"""Number of agents at work at once."""
STEPS_MAX = 1000
"""Large, because a question takes a step for each page."""

_SHOWN = re.compile(r"Showing \d+ of \d+ results \(page (\d+)/(\d+)[^)]*\): (\[.*\])", re.DOTALL)


class Chosen(msgspec.Struct, frozen=True):
    """Model that an experiment asks."""

    model: str = SCRIPT
    base_url: str = ""

    @property
    def scripted(self) -> bool:
        """True for the experiment's own script."""
        return self.model == SCRIPT


class Outcome(msgspec.Struct):
    """Outcome of one question."""

    answer: str = ""
    """Everything that the agent said to the user."""
    pages: list[str] = []
    """Results of the searches, in order."""
    failed: bool = False
    """True if the model failed."""

    @property
    def by_words(self) -> int:
        """Number of pages for which the archive did not answer."""
        return sum("by words alone" in page for page in self.pages)

    def pages_until(self, gold: Sequence[str]) -> int | None:
        """Return the number of pages after which all of `gold` has been shown; None if it never was."""
        missing = set(gold)
        for number, page in enumerate(self.pages, 1):
            lines = shown(page)[1]
            missing = {text for text in missing if not any(shows(line, text) for line in lines)}
            if not missing:
                return number
        return None


class ScriptedModel:
    """Model whose next call is a function of the chat messages of a request. It keeps no state."""

    name = SCRIPT

    def __init__(self, next_call: Callable[[Sequence[dict[str, Any]]], Call]) -> None:
        self._next_call = next_call

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        """Return one call. A request without functions asks for a summary and gets a sentence."""
        body = json.loads(request)
        message: dict[str, Any] = {"role": "assistant", "content": "They talked about many things."}
        if body.get("tools"):
            name, arguments = self._next_call(body["messages"])
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls = [{"id": "call_0", "type": "function", "function": function}]
            message = {"role": "assistant", "content": "I do the next step.", "tool_calls": calls}
        usage = {"prompt_tokens": len(request) // 4, "completion_tokens": 20, "total_tokens": len(request) // 4 + 20}
        answer = {"model": self.name, "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        return ModelResponse(json.dumps(answer), 1000)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


class Reader:
    """Script that reads the pages of one search until they show what it looks for.

    It stands for a model that recognizes the gold when it sees it, and never stops early: an answer that it misses was
    on none of the pages.
    """

    def __init__(self, function: str, gold: Mapping[str, Sequence[str]], pages_max: int = STEPS_MAX) -> None:
        """`gold`: by question, the texts that together answer it. `pages_max`: pages after which it stops."""
        self._function = function
        self._gold = gold
        self._pages_max = pages_max

    def next_call(self, messages: Sequence[dict[str, Any]]) -> Call:
        """Return the next page of the search for the question as it stands, or the answer."""
        question, later = since_input(messages)
        pages = [shown(result) for result in results(later)]
        lines = [line for _, page in pages for line in page]
        gold = self._gold[question]
        if all(any(shows(line, text) for line in lines) for text in gold):
            return "send_message", {"message": " ".join(gold)}
        if pages and (len(pages) > pages[-1][0] or len(pages) >= self._pages_max):
            return "send_message", {"message": UNKNOWN}
        return self._function, {"query": question, "page": len(pages), "request_heartbeat": True}


def since_input(messages: Sequence[dict[str, Any]], kind: str = "user_message") -> tuple[str, Sequence[dict[str, Any]]]:
    """Return the text of the newest input of a kind, and the chat messages after it. Raises ValueError if there is
    none.
    """
    for number in reversed(range(len(messages))):
        if messages[number]["role"] == "user":
            said = json.loads(messages[number]["content"])
            if said["type"] == kind:
                return said.get("message", ""), messages[number + 1 :]
    raise ValueError(f"expected a {kind}, found none among {len(messages)} messages")


def results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the results of the functions among chat messages."""
    return [json.loads(message["content"])["message"] for message in messages if message["role"] == "tool"]


def shown(result: str) -> tuple[int, list[str]]:
    """Return the number of the last page, and the lines that a page of results shows; 0 and none if it has none."""
    found = _SHOWN.match(result)
    return (int(found[2]), json.loads(found[3])) if found else (0, [])


def shows(line: str, text: str) -> bool:
    """Return True if a line of a page of results shows a text, whole or its best passage."""
    if text in line:
        return True
    passage = re.split(r" - |memory: ", line, maxsplit=1)[-1].strip(f"{MARK} ") if MARK in line else ""
    return bool(passage) and passage in text


async def pose(agent: AgentRef, question: str | Event) -> Outcome:
    """Ask the agent, and read the outcome from the records of its turn."""
    found = Outcome()
    said = []
    try:
        async for record in agent.send(question):
            if record.type == "message_sent":
                said.append(record.text or "")
            elif record.type == "function_result" and "_search" in record.payload:
                found.pages.append(record.text or "")
    except ModelError:  # an answer that is missing; the other questions are still worth asking
        found.failed = True
    found.answer = " ".join(said)
    return found


def agents(
    folder: Path, chosen: Chosen, next_call: Callable[[Sequence[dict[str, Any]]], Call]
) -> AbstractAsyncContextManager[AgentSystem]:
    """Open a store in `folder`, whose agents ask the chosen model; `next_call` is the script."""
    services = ServiceOptions(models=lambda *_: ScriptedModel(next_call)) if chosen.scripted else None
    return open_system(folder, runtime="local", base_url=chosen.base_url, services=services, timers=False)


def model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the model."""
    parser.add_argument("--model", metavar="MODEL", default=SCRIPT, help="ask this model (default: a script)")
    parser.add_argument("--base-url", metavar="URL", default="", help="OpenAI-compatible endpoint that serves it")


def share(values: Sequence[bool]) -> float:
    """Return the part that is true, 0 to 1; 0 of nothing."""
    return sum(values) / max(len(values), 1)


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return sum(values) / max(len(values), 1)

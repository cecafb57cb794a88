"""Probe an endpoint: find out what it can do with a model, by a few small requests.

No answer of an endpoint is a failure of the probe: what the endpoint cannot do is a finding. `everlog models test`
probes, and so does the command line when it sets an agent up; agents never do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from everlog.actors.models.model_types import OPENAI_KEY, Abilities, ProbeFindings
from everlog.actors.models.probe_http import ProbeResponse, ProbeTransport
from everlog.actors.models.probe_windows import WINDOWS, list_in, tokens_in

REPLY_TOKENS = 200
"""Maximum tokens of an answer."""
THINKING_TOKENS = 4000
"""Maximum tokens of an answer, for a model that was still thinking at REPLY_TOKENS."""
SAID_CHARS = 160
"""Maximum characters of an endpoint's answer that are stored in the findings."""

ANSWERS_MAX = 3
"""Most answers of a model to one question; two that agree settle it. A model that errs once would otherwise be used in
the wrong way for good.
"""

WORDS = ("ready", "steady")


_REPORT = {
    "type": "function",
    "function": {
        "name": "report",
        "description": "Reports one word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "enum": list(WORDS)}},
            "required": ["word"],
        },
    },
}
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": list(WORDS)}},
    "required": ["word"],
    "additionalProperties": False,
}


def probe(url: str, model: str, send: ProbeTransport, *, at: int, key: str = OPENAI_KEY) -> ProbeFindings:
    """Return the findings about `model` at `url`. `at` is the time now; `key` names the variable whose key `send` uses.

    If nothing can be found out, `fault` of the findings says why, and what to do.
    """
    return _Probe(url.rstrip("/"), model, send, key).found(at)


class _Answer(NamedTuple):
    """One answer to the question if a model can do something."""

    able: bool | None
    """None: the answer does not tell."""
    sure: bool = False
    """True if the server decided, which answers the same again, and not the model."""
    calls: int = 0
    """Number of functions that the model called as it was asked to."""
    fault: str = ""


class _Probe:
    """Conversation with one endpoint."""

    def __init__(self, url: str, model: str, send: ProbeTransport, key: str) -> None:
        self._url, self._model, self._send, self._key = url, model, send, key
        self._root = url.removesuffix("/v1")
        self._said: dict[str, str] = {}
        self._limit, self._tokens = "max_tokens", REPLY_TOKENS
        self._server = ""
        self._served: Sequence[str] = ()
        self._window: int | None = None
        self._usage: bool | None = None

    def found(self, at: int) -> ProbeFindings:
        fault = self._list()
        abilities = Abilities()
        if not fault:
            fault, abilities = self._asked()
        if not fault:
            self._find_window()
        return ProbeFindings(
            url=self._url, model=self._model, at=at, server=self._server, models=self._served, window=self._window,
            abilities=abilities, said=self._said, fault=fault,
        )  # fmt: skip

    def _list(self) -> str:
        """Ask what is served. Return a fault in words if the endpoint cannot be asked anything."""
        reply = self._send("GET", f"{self._url}/models", None)
        fault = self._fault(reply)
        if fault:
            return fault
        rows = [row for row in list_in(_json(reply.body), "data") if isinstance(row, dict)]
        self._served = [row["id"] for row in rows if isinstance(row.get("id"), str)]
        own = next((row for row in rows if row.get("id") == self._model), rows[0] if len(rows) == 1 else {})
        self._server = _SERVERS.get(str(own.get("owned_by", "")), "")
        self._window = tokens_in(own.get("max_model_len")) or tokens_in(own.get("context_length"))
        self._said["models"] = f"it serves {_some(self._served)}" if self._served else "it does not say what it serves"
        return ""

    def _asked(self) -> tuple[str, Abilities]:
        """Ask the questions that the model answers. Return a fault in words if there is no such model."""
        tools, parallel, fault = self._tools()
        if fault:
            return fault, Abilities()
        schema = self._schema()
        streaming, stream_usage = self._stream()
        grammar = self._grammar() if self._server == "llama.cpp" else None
        return "", Abilities(tools, schema, grammar, parallel, streaming, self._usage, stream_usage)

    def _tools(self) -> tuple[bool | None, bool | None, str]:
        """Return whether it calls functions, and several at once, with a fault if the model does not exist."""
        answers: list[_Answer] = []
        able = _settled(self._called(), answers)
        parallel = True if able and any(answer.calls > 1 for answer in answers) else None
        return able, parallel, answers[-1].fault

    def _called(self) -> Iterator[_Answer]:
        """Ask for two calls, again and again. A model that does not exist is the answer with a fault."""
        words = f"Call the function `report` twice: with the word {WORDS[0]}, and with the word {WORDS[1]}."
        while True:
            reply = self._chat("tools", words, tools=[_REPORT])
            fault = self._fault(reply, of_model=True)
            message = self._message(reply)
            if fault or message is None:
                refused = not fault and 400 <= reply.status < 500 and "tool" in reply.body.lower()
                yield _Answer(False if refused else None, sure=True, fault=fault)
                continue
            calls = len([call for call in list_in(message, "tool_calls") if _word_of(call)])
            if calls:
                self._said["tools"] = f"it called the function{' twice' if calls > 1 else ''}"
                yield _Answer(able=True, calls=calls)
                continue
            if self._was_cut("tools", reply):
                yield _Answer(None)
                continue
            others = list_in(message, "tool_calls")
            if others:
                self._said["tools"] = f"it called a function, but not as asked: {self._cut(_words_of_call(others[0]))}"
            else:
                self._said["tools"] = f"it answered in words: {self._cut(_words(message))}"
            yield _Answer(able=False)

    def _schema(self) -> bool | None:
        return _settled(self._kept_to_schema(), [])

    def _kept_to_schema(self) -> Iterator[_Answer]:
        """Ask for a reply in a schema, again and again."""
        form = {"type": "json_schema", "json_schema": {"name": "report", "strict": True, "schema": _SCHEMA}}
        while True:
            reply = self._chat("json_schema", "Say hello.", response_format=form)
            message = self._message(reply)
            if message is None:
                yield _Answer(False if 400 <= reply.status < 500 else None, sure=True)
                continue
            value = _json(_words(message))
            kept = isinstance(value, dict) and list(value) == ["word"] and value["word"] in WORDS
            if not kept and self._was_cut("json_schema", reply):
                yield _Answer(None)
                continue
            self._said["json_schema"] = "the reply kept to it" if kept else f"it answered {self._cut(_words(message))}"
            yield _Answer(kept)

    def _grammar(self) -> bool | None:
        reply = self._chat("grammar", "Say hello.", grammar=f'root ::= "{WORDS[0]}"')
        message = self._message(reply)
        if message is None:
            return None
        kept = _words(message) == WORDS[0]
        if not kept and self._was_cut("grammar", reply):
            return None
        self._said["grammar"] = "the reply kept to it" if kept else f"it answered {self._cut(_words(message))}"
        return kept

    def _stream(self) -> tuple[bool | None, bool | None]:
        """Return whether it streams, and whether it reports the usage of a streamed reply."""
        reply = self._chat("streaming", "Say hello.", stream=True, stream_options={"include_usage": True})
        if reply.status != 200:
            return (False if 400 <= reply.status < 500 else None), None
        chunks = list(_chunks(reply.body))
        is_stream = any(isinstance(chunk.get("choices"), list) for chunk in chunks)
        usage = any(_usage_in(chunk) for chunk in chunks)
        self._said["streaming"] = f"{len(chunks)} chunks arrived" if is_stream else "the reply came whole"
        return is_stream, usage if is_stream else None

    def _chat(self, question: str, words: str, **fields: Any) -> ProbeResponse:
        """Ask one question. Ask again if the model wants the token limit under its newer name,
        or was still thinking at the limit.
        """
        body = {"model": self._model, "messages": [{"role": "user", "content": words}], **fields}
        while True:
            limited = msgspec.json.encode({**body, self._limit: self._tokens})
            reply = self._send("POST", f"{self._url}/chat/completions", limited)
            if reply.status == 400 and self._limit == "max_tokens" and "max_completion_tokens" in reply.body:
                self._limit = "max_completion_tokens"
            elif self._tokens == REPLY_TOKENS and _still_thinking(_choice(reply)):
                self._tokens = THINKING_TOKENS
            else:
                break
        if reply.status == 200:
            answer = _json(reply.body)
            self._usage = self._usage or (_usage_in(answer) if isinstance(answer, dict) else None)
        else:
            what = f"refused with status {reply.status}" if reply.status else "no answer"
            self._said[question] = f"{what}: {self._cut(_error_in(reply.body))}"
        return reply

    def _message(self, reply: ProbeResponse) -> Mapping[str, Any] | None:
        """Return the message of a reply; None if there is none."""
        message = _choice(reply).get("message")
        return message if isinstance(message, dict) else None

    def _was_cut(self, question: str, reply: ProbeResponse) -> bool:
        """Return True if a reply ended at the token limit: anything missing in it then proves nothing."""
        cut = _choice(reply).get("finish_reason") == "length"
        if cut:
            self._said[question] = f"not known: its reply did not end within {self._tokens:,} tokens"
        return cut

    def _fault(self, reply: ProbeResponse, *, of_model: bool = False) -> str:
        """Return why nothing can be found out, and what to do; empty if something can."""
        said = self._cut(_error_in(reply.body))
        if reply.status == 0:
            return f"{self._url} cannot be reached ({said}). Is the server running, and is the address right?"
        if reply.status in (401, 403):
            cure = f"Set {self._key} to a key that is right for it." if self._key else "Name a variable as its `key`."
            return f"{self._url} refused the key ({said}). {cure}"
        if reply.body.lstrip()[:1] == "<":
            return f"{self._url} answers with a web page and not as an endpoint does. Its address often ends in /v1."
        if of_model and reply.status == 404:
            return f"{self._url} does not know {self._model!r} ({said}). It serves {_some(self._served)}."
        if of_model and reply.status >= 500:
            return f"{self._url} failed with status {reply.status} ({said}). Try again later."
        if of_model and reply.status == 200 and self._message(reply) is None:
            return f"{self._url} answers {said}, which is no chat completion. Is the address right?"
        return ""

    def _find_window(self) -> None:
        """Ask for the context window with the server's own requests.
        Called last: the server has the model loaded by then.
        """
        for looks in WINDOWS:
            if self._window:
                return
            server, method, path, read = looks
            if server and self._server and server != self._server:
                continue
            body = msgspec.json.encode({"model": self._model}) if method == "POST" else None
            reply = self._send(method, f"{self._root}{path}", body)
            value = _json(reply.body) if reply.status == 200 else None
            self._window = read(value, self._model) if isinstance(value, dict) else None
            if self._window:
                self._server = self._server or server

    def _cut(self, text: str) -> str:
        text = " ".join(text.split())
        return repr(text if len(text) <= SAID_CHARS else f"{text[:SAID_CHARS]}...")


def _settled(answers: Iterable[_Answer], seen: list[_Answer]) -> bool | None:
    """Return what the server says, or two answers of the model agree on; None if no two of ANSWERS_MAX do. `seen` gets
    the answers.
    """
    for answer in islice(answers, ANSWERS_MAX):
        agrees = any(other.able is answer.able for other in seen)
        seen.append(answer)
        if answer.sure or agrees:
            return answer.able
    return None


_SERVERS = {
    "llamacpp": "llama.cpp", "library": "Ollama", "vllm": "vLLM", "sglang": "SGLang", "organization_owner": "LM Studio",
    "koboldcpp": "KoboldCpp", "system": "OpenAI", "openai": "OpenAI",
}  # fmt: skip
"""Kinds of servers, by the owner that they give their models."""


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _choice(reply: ProbeResponse) -> Mapping[str, Any]:
    """Return the choice in a whole reply; empty if there is none."""
    choices = list_in(_json(reply.body), "choices") if reply.status == 200 else []
    return choices[0] if choices and isinstance(choices[0], dict) else {}


def _still_thinking(choice: Mapping[str, Any]) -> bool:
    """Return True if a reply ended at its limit before it said anything, or inside of visible thoughts."""
    message = choice.get("message")
    if choice.get("finish_reason") != "length" or not isinstance(message, dict):
        return False
    words = _words(message)
    return (not words and not message.get("tool_calls")) or words.rfind("<think>") > words.rfind("</think>")


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content.strip() if isinstance(content, str) else ""


def _word_of(call: Any) -> str:
    """Return the word that a call reports; empty if it is no call of the described function."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or function.get("name") != "report":
        return ""
    arguments = function.get("arguments")
    value = _json(arguments) if isinstance(arguments, str) else arguments
    word = value.get("word") if isinstance(value, dict) else None
    return word if isinstance(word, str) else ""


def _words_of_call(call: Any) -> str:
    """Return a call as text: the name of the function, and its arguments as they came."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return msgspec.json.encode(call).decode()
    return f"{function.get('name')}({function.get('arguments')})"


def _usage_in(answer: Mapping[str, Any]) -> bool:
    usage = answer.get("usage")
    return isinstance(usage, dict) and bool(tokens_in(usage.get("prompt_tokens")))


def _chunks(body: str) -> Iterator[Mapping[str, Any]]:
    """Yield the chunks of a streamed reply."""
    for line in body.splitlines():
        if line.startswith("data:"):
            value = _json(line[5:].strip())
            if isinstance(value, dict):
                yield value


def _error_in(body: str) -> str:
    """Return the message of an error, whatever its shape."""
    value = _json(body)
    error = value.get("error", value) if isinstance(value, dict) else None
    said = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return said if isinstance(said, str) else body


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown or "nothing that it names"


def is_openai(url: str) -> bool:
    """Return True if an address is OpenAI's own, whose abilities are known."""
    try:
        return urlsplit(url).hostname == "api.openai.com"
    except ValueError:  # no address at all; connecting to it is refused in words
        return False

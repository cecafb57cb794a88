"""Describe where models are served and what they can do, and find the endpoint for a name. Pure.

A description comes from the user's file (`models.toml`), from a probe, or from the shipped `endpoints.toml`; an earlier
one in this list wins. `model_catalogue.py` reads them, `probe.py` makes the findings. Used by the gateway, by agents,
and by the commands for models. The fields are the format of `models.toml` and of the stored findings of probes.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from everlog.actors.ports.agent_constants import CALL_S_MAX, GATEWAY_TIMEOUT_S, OFFLINE, WINDOW_TOKENS, WINDOWS_TOKENS
from everlog.events import BadInput, CallingName, Sampling

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
GGUF = ".gguf"
"""Ending of the name of a model that is a file. Such a model runs in the gateway's process."""


GROUP = "group/"
"""Beginning of the names of the rules of groups, which stand in the place of a model's name."""


class Abilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Abilities of an endpoint with a model; None: unknown."""

    tools: bool | None = None
    """True if it calls functions that the request describes (`tools`)."""
    json_schema: bool | None = None
    """True if it constrains replies to a JSON schema (`response_format`)."""
    grammar: bool | None = None
    """True if it constrains replies to a grammar (llama.cpp's)."""
    parallel_calls: bool | None = None
    """True if it called several functions in one reply."""
    streaming: bool | None = None
    usage: bool | None = None
    """True if it reports the tokens of a call."""
    stream_usage: bool | None = None
    """True if it reports the tokens at the end of a stream too."""

    def over(self, other: "Abilities") -> "Abilities":
        """Return these abilities, with the unknown ones filled in from `other`."""
        mine = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(other, **mine)

    @property
    def preferred_format(self) -> CallingName | None:
        """Best calling format for these abilities; None if too little is known."""
        if self.tools:
            return "native"
        if self.json_schema:
            return "schema"
        return "text" if self.tools is False else None


class EndpointEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Endpoint as the user described it: a table `[endpoints.NAME]`."""

    url: str
    key: str = ""
    """Name of the environment variable that holds its key, never the key itself; empty: no key is sent."""
    models: Sequence[str] = ()
    """Names of the models that it serves, or patterns with * and ?."""
    window: int | None = None
    silence_s: float | None = None
    """Seconds without a piece of the reply after which a try of a call is given up; None: GATEWAY_TIMEOUT_S."""
    call_s: float | None = None
    """Seconds after which a call is given up, with all its tries; None: CALL_S_MAX."""
    reranker: str = ""
    """Name of its model that puts the best results of searches in order; empty: it is asked for none."""
    abilities: Abilities = Abilities()
    note: str = ""


class CallLimits(NamedTuple):
    """Seconds that calls of an endpoint may take."""

    silence_s: float = GATEWAY_TIMEOUT_S
    """Seconds without a piece of the reply; for a reply that is not streamed, those until its end."""
    call_s: float = CALL_S_MAX
    """Seconds of a call, with all its tries and the pauses between them."""


DEFAULT_LIMITS = CallLimits()


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Model as the user described it: a table `[models."NAME"]`. None: taken from other sources."""

    endpoint: str | None = None
    """Name of the endpoint that serves it."""
    window: int | None = None
    """Tokens."""
    calling: CallingName | None = None
    stream: bool | None = None
    sampling: Sampling | None = None
    fallback: str | None = None
    summarizer: str | None = None
    abilities: Abilities = Abilities()
    price_in: float | None = None
    """Price of a million tokens of requests."""
    price_out: float | None = None
    price_cached: float | None = None
    """Price of a million tokens of requests that the endpoint had in its cache."""
    chat_template: str | None = None
    """For a GGUF file: path of a template that replaces the file's own; `~` is the home folder."""
    threads: int | None = None
    """For a GGUF file: number of threads; None: llama.cpp chooses."""


class ProbeFindings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Findings of a probe about one model at one address."""

    url: str
    model: str
    at: int
    """Time of the probe, microseconds UTC; 0 if the address was given with --no-probe and never tested."""
    server: str = ""
    """Kind of server, as far as its answers show it; empty: unknown."""
    models: Sequence[str] = ()
    """Names of all models that it lists."""
    window: int | None = None
    abilities: Abilities = Abilities()
    said: Mapping[str, str] = {}
    """Result of each question of the probe, in words."""
    fault: str = ""
    """Reason for which nothing was found out; empty if something was."""

    @property
    def served(self) -> Sequence[str]:
        """Names of the models that are known to be served at the address; none if the probe failed."""
        return () if self.fault else (self.model, *self.models)


class ModelAddress(msgspec.Struct, frozen=True):
    """Name and address under which a model is called."""

    name: str
    """Name of the model in requests."""
    url: str
    """Base address; empty: OPENAI_BASE_URL of the calling process, else OpenAI's."""
    endpoint: str = ""
    """Name of the endpoint, if it has one."""


class ModelDefaults(msgspec.Struct, frozen=True):
    """Default settings of an agent that uses this model. None: no default is known."""

    window: int | None = None
    calling: CallingName | None = None
    stream: bool | None = None
    sampling: Sampling | None = None
    fallback: str | None = None
    summarizer: str | None = None
    takes_functions: bool = False
    """True if the model is known to call functions that a request describes."""


class Catalogue(msgspec.Struct, frozen=True):
    """Everything that is known of endpoints and models."""

    endpoints: Mapping[str, EndpointEntry] = {}
    """Endpoints that the user described, by name."""
    models: Mapping[str, ModelEntry] = {}
    found: Sequence[ProbeFindings] = ()
    shipped: Mapping[str, EndpointEntry] = {}

    def place(self, name: str, base_url: str = "") -> ModelAddress:
        """Return the address at which a model is called; `base_url` is the address for models without a description."""
        entry = self.models.get(name)
        endpoint = entry.endpoint if entry and entry.endpoint else self._serving(name)
        if endpoint:
            return self._at(endpoint, name)
        prefix, _, rest = name.partition("/")
        if rest and (prefix in self.endpoints or (prefix in self.shipped and not base_url)):
            return self._at(prefix, rest)
        if not base_url:
            base_url = next((found.url for found in reversed(self.found) if name in found.served), "")
        return ModelAddress(name, base_url)

    def key_of(self, url: str) -> str:
        """Return the name of the environment variable with the key for an address:
        that of its endpoint, else OpenAI's.
        """
        described = (*self.endpoints.values(), *self.shipped.values())
        return next((each.key for each in described if same_url(each.url, url)), OPENAI_KEY)

    @property
    def reranking(self) -> EndpointEntry | None:
        """Endpoint that puts the best results of searches in order; None if the user described none."""
        return next((each for each in self.endpoints.values() if each.reranker), None)

    def limits_of(self, url: str) -> CallLimits:
        """Return the limits of calls to an address: those that the user described, else the defaults."""
        described = self._described(url)
        if described is None:
            return DEFAULT_LIMITS
        return CallLimits(described.silence_s or GATEWAY_TIMEOUT_S, described.call_s or CALL_S_MAX)

    def known(self, name: str, url: str) -> ModelDefaults:
        """Return the settings of an agent for a model at an address."""
        entry = self.models.get(name) or ModelEntry()
        found = self.found_of(name, url)
        endpoint = self._described(url)
        abilities = self.abilities(name, url)
        window = entry.window or (endpoint.window if endpoint else None) or (found.window if found else None)
        # Token estimates and budgets need usage figures. A stream without them is therefore not the default.
        stream = None if abilities.streaming is None else abilities.streaming and abilities.stream_usage is not False
        return ModelDefaults(
            window=window,
            calling=entry.calling or _for_family(name, abilities.preferred_format),
            stream=stream if entry.stream is None else entry.stream,
            sampling=entry.sampling,
            fallback=entry.fallback,
            summarizer=entry.summarizer,
            takes_functions=bool(abilities.tools) and (not same_url(url, OPENAI_URL) or name.startswith(_OPENAI_NAMES)),
        )

    def abilities(self, name: str, url: str) -> Abilities:
        """Return the abilities of the endpoint at an address with a model, as far as they are known."""
        entry, endpoint, found = self.models.get(name), self._described(url), self.found_of(name, url)
        known = (found.abilities if found else Abilities()).over(
            next((each.abilities for each in self.shipped.values() if same_url(each.url, url)), Abilities())
        )
        if endpoint:
            known = endpoint.abilities.over(known)
        return entry.abilities.over(known) if entry else known

    def found_of(self, name: str, url: str) -> ProbeFindings | None:
        """Return the findings about a model at an address; None if there are none."""
        found = (each for each in self.found if each.model == name and same_url(each.url, url) and not each.fault)
        return next(found, None)

    def _described(self, url: str) -> EndpointEntry | None:
        return next((each for each in self.endpoints.values() if same_url(each.url, url)), None)

    def _serving(self, name: str) -> str:
        """Return the name of the user's endpoint that lists the model; empty if there is none."""
        serving = (
            each
            for each, endpoint in self.endpoints.items()
            if any(fnmatchcase(name, pattern) for pattern in endpoint.models)
        )
        return next(serving, "")

    def _at(self, endpoint: str, name: str) -> ModelAddress:
        described = self.endpoints.get(endpoint) or self.shipped.get(endpoint)
        if described is None:
            known = ", ".join(sorted({*self.endpoints, *self.shipped}))
            raise BadInput(
                f"The model {name!r} is said to be served by the endpoint {endpoint!r}, which is described nowhere. "
                f"Add a table [endpoints.{endpoint}] to models.toml, or name one of: {known}."
            )
        return ModelAddress(name, described.url.rstrip("/"), endpoint)


_OPENAI_NAMES = ("gpt-", "chatgpt-", "o1", "o3", "o4")
"""Beginnings of the names of OpenAI's models: of another name at its address nothing is known."""

_FAMILIES: Sequence[tuple[str, CallingName]] = (
    ("llama-3", "llama3"), ("llama3", "llama3"), ("zephyr", "zephyr"), ("airoboros", "airoboros"),
    ("neural-chat", "neural-chat"),
)  # fmt: skip
"""Families of models whose turns are not those of ChatML, by a part of the model's name in lower case."""


def _for_family(name: str, preferred: CallingName | None) -> CallingName | None:
    """Return the calling format of text with the turns of the model's family; any other format unchanged."""
    if preferred != "text":
        return preferred
    return next((calling for part, calling in _FAMILIES if part in name.lower()), preferred)


def same_url(one: str, other: str) -> bool:
    """Return True if two addresses are equal. A final slash is ignored, and `localhost` equals `127.0.0.1`."""
    return plain_url(one) == plain_url(other)


def plain_url(url: str) -> str:
    """Normalize an address for comparing."""
    return (url or OPENAI_URL).rstrip("/").replace("://localhost", "://127.0.0.1")


def is_gguf(name: str) -> bool:
    """Return True if the name is that of a GGUF file."""
    return name.endswith(GGUF)


_WINDOW = "?window="


def served_name(name: str, window: int) -> str:
    """Return the name under which a model is requested: for a file, with the window that its server must have."""
    return f"{name}{_WINDOW}{window}" if window and is_gguf(name) else name


def file_of(served: str) -> tuple[str, int]:
    """Split the name under which a file is requested into path and window;
    ("", 0) if it is no file. Window 0: the default.
    """
    path, mark, window = served.rpartition(_WINDOW)
    if mark and window.isdecimal() and is_gguf(path):
        return path, int(window)
    return (served, 0) if is_gguf(served) else ("", 0)


def window_of(model: str) -> int:
    """Return the context window of a known model in tokens; a cautious value for any other."""
    found = [tokens for prefix, tokens in WINDOWS_TOKENS.items() if model.startswith(prefix)]
    return max(found, default=WINDOW_TOKENS)


def is_rule_based(model: str) -> bool:
    """Return True for a name that stands for rules of everlog in this process: the offline model, a group's rule."""
    return model == OFFLINE or model.startswith(GROUP)

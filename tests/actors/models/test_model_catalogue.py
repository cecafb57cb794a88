"""Names of models and their endpoints, an agent's settings for a model, and the file models.toml."""

from pathlib import Path

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings, configuration
from everlog.actors.models.model_catalogue import FOUND, catalogue_of, defaults_at, save_probe, shipped
from everlog.actors.models.model_types import (
    OPENAI_KEY,
    Abilities,
    Catalogue,
    ModelDefaults,
    ProbeFindings,
    file_of,
    served_name,
)
from everlog.actors.models.models_toml import parse_models
from everlog.events import BadInput

TOML = """\
[endpoints.office]
url = "http://10.0.0.5:8000/v1"
key = "OFFICE_KEY"
models = ["qwen*", "mistral-?"]
window = 32768
abilities = { tools = false, json_schema = true, streaming = true }

[models."gpt-4o"]
endpoint = "openai"
price_in = 2.5
fallback = "qwen3"

[models."qwen3-coder"]
calling = "text"
window = 16384
sampling = { temperature = 0.2 }
"""


def catalogue(text: str = TOML, *found: ProbeFindings) -> Catalogue:
    return Catalogue(*parse_models(text, "models.toml"), found, shipped())


FOUND_HERE = ProbeFindings(
    url="http://127.0.0.1:8080/v1", model="tiny", at=1, models=("tiny", "small"), window=4096,
    abilities=Abilities(tools=False, json_schema=False),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "base_url", "asked", "url", "key"),
    [
        ("gpt-4o", "http://127.0.0.1:1/v1", "gpt-4o", "https://api.openai.com/v1", OPENAI_KEY),
        ("qwen3", "http://127.0.0.1:1/v1", "qwen3", "http://10.0.0.5:8000/v1", "OFFICE_KEY"),
        ("office/llama", "", "llama", "http://10.0.0.5:8000/v1", "OFFICE_KEY"),
        ("ollama/llama3", "", "llama3", "http://127.0.0.1:11434/v1", ""),
        ("ollama/llama3", "http://127.0.0.1:4000/v1", "ollama/llama3", "http://127.0.0.1:4000/v1", ""),
        ("meta/llama3", "", "meta/llama3", "", OPENAI_KEY),
        ("small", "", "small", "http://127.0.0.1:8080/v1", ""),
        ("other", "http://127.0.0.1:1/v1", "other", "http://127.0.0.1:1/v1", OPENAI_KEY),
        ("other", "", "other", "", OPENAI_KEY),
    ],
)
def test_a_model_name_resolves_to_one_endpoint(name: str, base_url: str, asked: str, url: str, key: str) -> None:
    """A model's own entry comes first, then patterns of endpoints, then ENDPOINT/MODEL, then --base-url, then the
    probed endpoint that serves the model. The key is that of the address.
    """
    place = catalogue(TOML, FOUND_HERE).place(name, base_url)
    assert (place.name, place.url) == (asked, url)
    assert catalogue().key_of(place.url) == key


def test_models_toml_precedes_findings_and_findings_precede_defaults() -> None:
    """models.toml takes precedence over probe findings, and these over the shipped defaults; each fills in what the
    earlier ones leave open.
    """
    office = "http://10.0.0.5:8000/v1"
    found = ProbeFindings(
        url=office, model="qwen3", at=1, window=9000, abilities=Abilities(tools=True, stream_usage=False)
    )
    known = catalogue(TOML, found).known("qwen3", office)
    assert known == ModelDefaults(window=32768, calling="schema", stream=False)
    coder = catalogue().known("qwen3-coder", office)
    assert (coder.window, coder.calling, coder.stream) == (16384, "text", True)
    assert coder.sampling is not None
    assert coder.sampling.temperature == 0.2
    assert catalogue().known("gpt-4o", "https://api.openai.com/v1/").fallback == "qwen3"
    assert catalogue().known("gpt-5", "").calling == "native"
    assert catalogue().known("x", "http://127.0.0.1:1/v1") == ModelDefaults()


@pytest.mark.parametrize(
    ("abilities", "way"),
    [
        (Abilities(tools=True, json_schema=True), "native"),
        (Abilities(tools=False, json_schema=True), "schema"),
        (Abilities(tools=False, json_schema=False), "text"),
        (Abilities(tools=False), "text"),
        (Abilities(json_schema=True), "schema"),
        (Abilities(), None),
    ],
)
def test_the_calling_format_follows_from_abilities(abilities: Abilities, way: str | None) -> None:
    """Tools are preferred, then a schema, then text; without known abilities there is no preference."""
    assert abilities.preferred_format == way


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[endpoints.a\n", "no TOML: .*line 1"),
        ("[servers.a]\nurl = 'x'\n", "line 1: servers: there are tables"),
        ("\n[endpoints.a]\nkey = 'A_KEY'\n", "line 2: endpoints.a: the field url is missing"),
        ("[endpoints.a]\nurl = 'ftp://x'\n", "line 2: endpoints.a.url: an address such as"),
        ("[endpoints.a]\nurl = 'http://x/v1'\nwindow = 'big'\n", "line 3: endpoints.a.window: expected `int"),
        ("[endpoints.a]\nurl = 'http://x/v1'\nabilities = { tool = true }\n", "line 3: endpoints.a.abilities"),
        ('[models."a.b"]\nwindow = 0\n', 'line 2: models."a.b".window: a number above 0'),
        ("[models.a]\ncalling = 'native'\n[models.b]\ncalling = 'magic'\n", "line 4: models.b.calling"),
        ("[models.a]\nprice_in = -1.0\n", "line 2: models.a.price_in"),
        ("[endpoints.a]\nurl = 'http://x/v1'\n[endpoints.b]\nurl = 'http://x/v1/'\n", "line 4: .*'a' has this address"),
        (
            "[endpoints.a]\nurl = 'http://x/v1'\nreranker = 'm'\n[endpoints.b]\nurl = 'http://y/v1'\nreranker = 'm'\n",
            "line 6: endpoints.b.reranker: the endpoint 'a' reranks already",
        ),
    ],
)
def test_an_invalid_description_is_refused_with_line_and_field(text: str, said: str) -> None:
    """The error names the file, the line, the field and what was expected."""
    with pytest.raises(BadInput, match=f"models.toml.*{said}"):
        parse_models(text, "models.toml")


SECRETS = (
    "sk-proj-abcdefghijklmnop1234",
    "gsk_abcdefghijklmnop1234",
    "hf_abcdefghijklmnop1234",
    "0123456789abcdef0123456789abcdef",
    "AIzaSyabcdefghijklmnopqrstuv",
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("field", ["key", "note", "url"])
def test_a_text_like_a_key_is_refused_and_not_repeated(secret: str, field: str) -> None:
    """A text that looks like a key is refused in any field, and the error does not repeat it."""
    fields = {"url": "http://127.0.0.1:8000/v1", field: f"http://x/{secret}" if field == "url" else secret}
    text = "[endpoints.a]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())
    with pytest.raises(BadInput, match=f"endpoints.a.{field}") as told:
        parse_models(text, "models.toml")
    assert secret not in str(told.value)


@pytest.mark.parametrize("url", ["http://me:secretword@x/v1", "http://x/v1?api_key=secretword"])
def test_an_address_holds_no_password(url: str) -> None:
    """A password or key in an address is refused, because addresses are shown in messages."""
    with pytest.raises(BadInput, match="without a name, password or query") as told:
        parse_models(f'[endpoints.a]\nurl = "{url}"\n', "models.toml")
    assert "secretword" not in str(told.value)


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of the probe findings and of models.toml take effect without a restart; EVERLOG_MODELS names another
    models.toml.
    """
    assert defaults_at(tmp_path, "tiny", "http://127.0.0.1:8080/v1") == ModelDefaults()
    save_probe(tmp_path, FOUND_HERE)
    assert defaults_at(tmp_path, "tiny", "http://localhost:8080/v1/").calling == "text"
    (tmp_path / "models.toml").write_text('[models.tiny]\ncalling = "schema"\n')
    assert defaults_at(tmp_path, "tiny", "").calling == "schema"
    (tmp_path / FOUND).write_text('{"half of it')
    assert catalogue_of(tmp_path).found == ()
    monkeypatch.setenv("EVERLOG_MODELS", str(tmp_path / "other.toml"))
    with pytest.raises(BadInput, match=r"EVERLOG_MODELS names .*other\.toml"):
        catalogue_of(tmp_path)


def test_a_newer_finding_replaces_an_older_one(tmp_path: Path) -> None:
    """There is one finding for each model at each address, the newest."""
    for at in (1, 2):
        save_probe(tmp_path, ProbeFindings(url="http://x/v1", model="a", at=at))
        save_probe(tmp_path, ProbeFindings(url="http://y/v1", model="a", at=at))
    assert [(each.url, each.at) for each in catalogue_of(tmp_path).found] == [("http://x/v1", 2), ("http://y/v1", 2)]


def test_a_changed_model_brings_its_defaults() -> None:
    """A changed model brings its window, calling format and streaming; the caller's settings take precedence. The same
    model again changes nothing.
    """
    found = ModelDefaults(window=5000, calling="text", stream=True)

    def known_of(name: str) -> ModelDefaults:
        return found if name == "tiny" else ModelDefaults()

    first = configuration(Settings(model="tiny"), None, {}, {}, known_of)
    assert (first.window, first.calling, first.stream) == (5000, "text", True)
    asked = configuration(Settings(model="tiny", calling="schema", window=6000), None, {}, {}, known_of)
    assert (asked.window, asked.calling) == (6000, "schema")
    assert configuration(Settings(model="tiny"), asked, {}, {}, known_of) == asked
    other = configuration(Settings(model="other"), asked, {}, {}, known_of)
    assert (other.calling, other.stream) == ("native", False)


def test_a_file_is_asked_for_with_its_window_and_by_its_whole_path() -> None:
    """The file's path and its window are in the name that the server gets; a relative path is refused."""
    assert file_of(served_name("/m/a.gguf", 4096)) == ("/m/a.gguf", 4096)
    assert file_of("/m/a.gguf") == ("/m/a.gguf", 0)
    assert file_of(served_name("gpt-4o", 4096)) == ("", 0)
    with pytest.raises(BadInput, match="absolute path"):
        configuration(Settings(model="a.gguf"), None, {}, {})


@pytest.mark.parametrize(
    "settings",
    [
        Settings(calling="schema"),
        Settings(calling="text"),
        Settings(model="tiny", calling="schema", fallback="offline"),
        Settings(model="tiny", calling="text", summarizer="offline"),
    ],
)
def test_the_offline_model_refuses_other_calling_formats(settings: Settings) -> None:
    """The offline model supports tool calls only: another calling format is refused when it is configured."""
    with pytest.raises(BadInput, match="`native` only"):
        configuration(settings, None, {}, {})


def test_the_offline_model_can_be_the_summarizer_in_any_calling_format() -> None:
    """The offline model can be the summarizer in any calling format, because summaries are plain text."""
    asked = Settings(model="tiny", calling="schema", summarizer="offline")
    assert configuration(asked, None, {}, {}).summarizer == "offline"


@pytest.mark.parametrize(
    ("name", "calling"),
    [
        ("Meta-Llama-3-8B-Instruct", "llama3"),
        ("zephyr-7b-beta", "zephyr"),
        ("airoboros-l2-70b-2.1", "airoboros"),
        ("neural-chat-7b-v3", "neural-chat"),
        ("dolphin-2.5-mixtral-8x7b", "text"),
    ],
)
def test_a_model_without_tools_gets_the_turns_of_its_family(name: str, calling: str) -> None:
    """If only text is left, the prompt has the turns that models of that name were trained with; else ChatML."""
    found = ProbeFindings(url="http://x/v1", model=name, at=1, abilities=Abilities(tools=False, json_schema=False))
    assert Catalogue(found=[found]).known(name, "http://x/v1").calling == calling
    able = msgspec.structs.replace(found, abilities=Abilities(tools=True))
    assert Catalogue(found=[able]).known(name, "http://x/v1").calling == "native"

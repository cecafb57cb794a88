"""`everlog models`, and the model settings of a new agent at the command line."""

from pathlib import Path

import msgspec
import pytest

from everlog.actors.models.model_catalogue import place_at
from everlog.actors.models.model_types import Abilities, ProbeFindings
from tests.support.cli.command_line import Line
from tests.support.models.gguf_test_file import written

URL = "http://127.0.0.1:9/v1"


class Probes:
    """A probe that returns prepared answers and records the probed endpoints."""

    def __init__(self, abilities: Abilities | None = None, fault: str = "") -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._abilities, self._fault = abilities or Abilities(tools=False, json_schema=True, streaming=True), fault

    def __call__(self, url: str, model: str, key_name: str) -> ProbeFindings:
        self.asked.append((url, model, key_name))
        if self._fault:
            return ProbeFindings(url=url, model=model, at=1, fault=self._fault)
        return ProbeFindings(
            url=url, model=model, at=1, window=6000, abilities=self._abilities, models=(model, "other")
        )


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Line:
    for name in ("OPENAI_BASE_URL", "EVERLOG_MODELS"):
        monkeypatch.delenv(name, raising=False)
    made = Line(tmp_path / "store", capsys)
    made.probe = Probes()
    return made


def configured(line: Line, name: str = "sam") -> dict[str, object]:
    rows = line.lines("events", name, "--type", "agent_configured")
    payload = rows[-1]["payload"]
    return msgspec.json.decode(payload) if isinstance(payload, str) else payload  # type: ignore[no-any-return]


def refused(line: Line, *argv: str) -> str:
    """Return the error of a command that fails after the notice that it probes."""
    code, _, err = line(*argv)
    assert code == 1
    return " ".join(err.splitlines()[1:])


def test_an_unknown_endpoint_is_probed_once(line: Line) -> None:
    """The first agent at an endpoint is set up by a probe of the endpoint's abilities; the second agent needs no second
    probe.
    """
    _, _, err = line("create", "sam", "--model", "tiny", "--base-url", URL)
    assert f"probing {URL}: what can 'tiny' do?" in err
    assert {"window": 6000, "calling": "schema", "stream": True}.items() <= configured(line).items()
    line.ok("create", "ann", "--model", "tiny", "--base-url", URL)
    assert configured(line, "ann")["calling"] == "schema"
    assert isinstance(line.probe, Probes)
    assert line.probe.asked == [(URL, "tiny", "OPENAI_API_KEY")]


@pytest.mark.parametrize(
    "argv",
    [
        ("--model", "tiny", "--base-url", URL, "--no-probe"),
        ("--model", "offline"),
        ("--model", "gpt-4o", "--base-url", "https://api.openai.com/v1"),
        ("--model", "gpt-4o"),
        (),
    ],
)
def test_no_endpoint_is_probed_if_not_wanted_or_known_already(line: Line, argv: tuple[str, ...]) -> None:
    """--no-probe, the offline model, OpenAI's own address, and commands that name no model cause no probe."""
    line.ok("create", "sam", *argv)
    assert isinstance(line.probe, Probes)
    assert not line.probe.asked


def test_what_is_asked_for_goes_before_what_was_found(line: Line) -> None:
    """--calling and --window take precedence over the result of a probe."""
    line.ok("create", "sam", "--model", "tiny", "--base-url", URL, "--calling", "text", "--window", "5000")
    assert {"window": 5000, "calling": "text"}.items() <= configured(line).items()


def test_a_failed_probe_changes_nothing(line: Line) -> None:
    """The reason is the error, neither store nor agent is made, and `models test` fails with the same reason."""
    line.probe = Probes(fault="It is asleep.")
    said = refused(line, "create", "sam", "--model", "tiny", "--base-url", URL)
    assert "Probing 'tiny' failed: It is asleep. Nothing was changed." in said and "--no-probe" in said
    assert not line.root.exists()
    assert [row["model"] for row in line.json("models")] == ["offline"]
    code, _, err = line("models", "test", "tiny", "--base-url", URL)
    assert code == 1
    assert "It is asleep." in err


def test_a_mistyped_model_never_gets_into_a_log(line: Line) -> None:
    """`send --model TYPO` to an agent that exists fails before anything is written; the next `send` works as before."""
    line.ok("create", "sam")
    before = line.lines("events", "sam")
    line.probe = Probes(fault="It serves no model 'nosuch'.")
    refused(line, "send", "sam", "Hi", "--model", "nosuch", "--base-url", URL)
    assert line.lines("events", "sam") == before
    assert line.ok("send", "sam", "Hi")


def test_the_address_is_remembered_as_long_as_the_model(line: Line) -> None:
    """After --base-url was given once, with a probe or with --no-probe, later commands find the model there."""
    line.ok("create", "sam", "--model", "tiny", "--base-url", URL)
    line.ok("create", "ann", "--model", "other", "--base-url", "http://127.0.0.1:9999/v1", "--no-probe")
    assert place_at(line.root, "tiny", "").url == URL
    assert place_at(line.root, "other", "").url == "http://127.0.0.1:9999/v1"
    rows = {row["model"]: row["tested"] for row in line.json("models")}
    assert rows["tiny"] == "1970-01-01T00:00:00.000001Z"
    assert rows["other"] is None


def test_a_described_endpoint_is_found_by_the_models_name(line: Line) -> None:
    """ENDPOINT/MODEL is resolved to the endpoint's address and the name that it knows; --base-url must not
    contradict.
    """
    line.ok("create", "sam")
    (line.root / "models.toml").write_text(
        f'[endpoints.desk]\nurl = "{URL}"\nkey = "DESK_KEY"\nmodels = ["tin*"]\n[models.tiny]\nprice_in = 0.5\n'
        "price_out = 1.0\n"
    )
    line.ok("create", "ann", "--model", "desk/big")
    line.ok("create", "bob", "--model", "tiny")
    assert configured(line, "ann")["model"] == "big"
    assert isinstance(line.probe, Probes)
    assert line.probe.asked == [(URL, "big", "DESK_KEY"), (URL, "tiny", "DESK_KEY")]
    assert "Leave --base-url out" in line.fails("create", "eve", "--model", "tiny", "--base-url", "http://x/v1")
    rows = {row["model"]: row for row in line.json("models")}
    assert rows["tiny"]["endpoint"] == "desk"
    assert (rows["tiny"]["price_in"], rows["tiny"]["window"], rows["tiny"]["calling"]) == (0.5, 6000, "schema")
    assert rows["other"]["url"] == URL


def test_models_are_listed_for_people(line: Line) -> None:
    """Without endpoints the list has the offline model and how to add another; a tested model shows its abilities."""
    assert "everlog models test MODEL" in line.ok("models")
    line.ok("models", "test", "tiny", "--base-url", URL)
    shown = line.ok("models")
    for words in ("offline", "tiny", "6,000", "schema", "no tools", "1970-01-01"):
        assert words in shown
    tested = line.json("models", "test", "tiny", "--base-url", URL)
    assert (tested["calling"], tested["window"], tested["abilities"]["tools"]) == ("schema", 6000, False)


def test_control_characters_in_model_names_do_not_reach_the_terminal(line: Line) -> None:
    """Control characters in names of models and in replies reach the terminal neither from the list nor from a test."""
    evil = "tiny\x1b]0;owned\x07\x1b[2J"
    line.probe = lambda url, model, _: ProbeFindings(url=url, model=model, at=1, models=(evil,), said={"models": evil})
    for shown in (line.ok("models", "test", "tiny", "--base-url", URL), line.ok("models")):
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown
        assert "owned" in shown


def test_a_file_is_tested_and_refused_before_an_agent_begins(line: Line, tmp_path: Path) -> None:
    """A relative path is made absolute; for a truncated or missing file no agent is created."""
    pytest.importorskip("xllamacpp")
    path = tmp_path / "small.gguf"
    content = written({"general.architecture": "llama", "llama.context_length": 4096})
    path.write_bytes(content)
    assert line.json("models", "test", str(path))["window"] == 4096
    line.ok("create", "sam", "--model", str(path))
    assert {"model": str(path), "window": 4096, "calling": "schema"}.items() <= configured(line).items()
    path.write_bytes(content[:-100])
    assert "is cut off" in line.fails("create", "ann", "--model", str(path))
    assert "There is no file" in line.fails("create", "ann", "--model", str(tmp_path / "none.gguf"))
    assert len(line.json("agents")) == 1


def test_without_llama_cpp_the_error_says_what_to_install(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra `local`, which installs llama.cpp."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'everlog[local]'" in line.fails("create", "sam", "--model", "small.gguf")


def test_descriptions_that_cannot_be_read_end_a_turn_and_not_the_agent(line: Line) -> None:
    """The failure is an event that names file and line; after the file is repaired, the message is answered."""
    line.ok("create", "sam", "--model", "tiny", "--base-url", URL)
    (line.root / "models.toml").write_text("[models.tiny]\nwindow = 'wide'\n")
    _, _, err = line("send", "sam", "Hello.")
    assert "models.toml, line 2: models.tiny.window: expected `int" in err
    kinds = [row["type"] for row in line.lines("events", "sam")]
    assert kinds[-2:] == ["user_message", "model_failed"]
    (line.root / "models.toml").write_text("[models.tiny]\nwindow = 8000\n")
    line.ok("send", "sam", "Are you there?")
    assert line.lines("events", "sam")[-1]["type"] == "function_result"


def test_the_offline_model_has_the_price_zero(line: Line) -> None:
    """It is free, in the table and in JSON; a model without a known price is not."""
    assert "free" in line.ok("models")
    (row,) = line.json("models")
    assert (row["price_in"], row["price_out"], row["price_cached"]) == (0, 0, 0)

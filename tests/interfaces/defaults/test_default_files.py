"""Files of defaults: which value counts, what is refused, and what a default may never do."""

import asyncio
import io
import json
from argparse import Namespace
from pathlib import Path

import pytest

from everlog.interfaces.common.agent_defaults import settings_of_new_agents
from everlog.interfaces.defaults.default_files import STORE_FILE, read_defaults, user_file
from everlog.interfaces.defaults.default_keys import KEYS
from everlog.interfaces.http.core.service import HttpOptions
from everlog.store import FileStore
from tests.support.cli.command_line import Line
from tests.support.http.served_store import Served, served


class Files:
    """The two files of defaults of a command line."""

    def __init__(self, cli: Line, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cli, self.user = cli, folder / "config.toml"
        self.user.touch()
        monkeypatch.setenv("EVERLOG_CONFIG", str(self.user))

    def write(self, *, user: str = "", store: str = "") -> None:
        self.user.write_text(user)
        self._cli.root.mkdir(exist_ok=True)
        (self._cli.root / STORE_FILE).write_text(store)


OF_STORE = pytest.mark.beside_store("a client does not read the file of a store")
OF_USER = "which only the file of the user may have"


@pytest.fixture
def files(cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(cli, tmp_path, monkeypatch)


def configured(cli: Line, name: str) -> dict[str, object]:
    """Return the configuration of an agent, as its log has it."""
    payload = cli.lines("events", name, "--type", "agent_configured")[-1]["payload"]
    return json.loads(payload) if isinstance(payload, str) else payload


def origin(cli: Line, key: str, *argv: str) -> tuple[object, str]:
    """Return the value of a key and where `everlog config` says that it comes from."""
    found = {one["key"]: one for one in cli.json("config", *argv)["defaults"]}[key]
    return found["value"], found["origin"]


def test_the_first_of_option_variable_store_and_user_counts(
    cli: Line, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is shown with its place, and taking one away brings the next one out."""
    monkeypatch.setenv("EVERLOG_LOG", "error")
    files.write(user='log = "info"\nzone = "Europe/Oslo"', store='log = "warning"\nzone = "Asia/Tokyo"')
    assert origin(cli, "log", "--log", "debug") == ("debug", "option --log")
    assert origin(cli, "log") == ("error", "variable EVERLOG_LOG")
    monkeypatch.delenv("EVERLOG_LOG")
    assert origin(cli, "log") == ("warning", str(cli.root / STORE_FILE))
    assert origin(cli, "zone") == ("Asia/Tokyo", str(cli.root / STORE_FILE))
    files.write(user='log = "info"')
    assert origin(cli, "log") == ("info", str(files.user))
    files.write()
    assert origin(cli, "log") == (None, "built-in")


@pytest.mark.beside_store("a server reads the files of defaults of its own machine, when it starts")
def test_a_new_agent_gets_the_defaults_and_an_existing_one_keeps_its_own(cli: Line, files: Files) -> None:
    """The settings of a file are those of agents that are created; an agent that exists gets no event of them."""
    cli.ok("create", "old")
    before = cli.lines("events", "old")
    files.write(user='zone = "Europe/Oslo"\nplacement = "shared"', store='preset = "docs"')
    cli.ok("create", "new")
    cli.ok("create", "own", "--zone", "Asia/Tokyo", "--placement", "dedicated")
    assert (configured(cli, "new")["zone"], configured(cli, "new")["preset"]) == ("Europe/Oslo", "docs")
    assert configured(cli, "own")["zone"] == "Asia/Tokyo"
    store = FileStore(cli.root, cli.clock.now)
    assert store.partition_of("new").startswith("shard-") and not store.partition_of("own").startswith("shard-")
    cli.ok("send", "old", "Hello")
    after = cli.lines("events", "old")
    assert after[: len(before)] == before
    assert "agent_configured" not in [record["type"] for record in after[len(before) :]]


@pytest.mark.beside_store("a server reads the files of defaults of its own machine, when it starts")
def test_a_deleted_name_is_a_new_agent_again(cli: Line, files: Files) -> None:
    """The defaults count when the name is created again."""
    cli.ok("create", "sam")
    cli.ok("delete", "sam", "--yes")
    files.write(user='zone = "Europe/Oslo"')
    cli.ok("create", "sam")
    assert configured(cli, "sam")["zone"] == "Europe/Oslo"


def test_the_default_agent_is_the_one_of_chat_and_of_a_text_alone(
    cli: Line, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`send TEXT` goes to the default agent, unless TEXT names an agent: then the text is missing."""
    files.write(user='agent = "ann"')
    cli.ok("create", "bob")
    cli.ok("send", "How are you?")
    assert [r["text"] for r in cli.lines("events", "ann", "--type", "user_message")] == ["How are you?"]
    code, _, err = cli("send", "bob")
    assert code == 2 and "TEXT is missing" in err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "How are you?" in cli.ok("chat")
    files.write()
    assert cli("send", "How are you?")[0] == 2


@pytest.mark.beside_store("a server reads the files of defaults of its own machine, when it starts")
def test_functions_of_the_users_file_are_loaded(cli: Line, files: Files) -> None:
    """`tools` names files relative to the file of defaults; --tools replaces them."""
    files.user.with_name("mine.py").write_text(
        'from everlog import tool\n\n\n@tool(effect="read")\ndef flip() -> str:\n    """Flip a coin."""\n'
        '    return "heads"\n'
    )
    files.write(user='tools = ["mine.py"]')
    cli.ok("create", "sam")
    assert "flip" in [function["name"] for function in configured(cli, "sam")["functions"]]  # type: ignore[attr-defined]


def test_the_users_file_names_store_and_runtime(
    cli: Line, files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --store and variables, commands use the store of the file, and its own file of defaults."""
    from everlog.interfaces.cli.main import main

    cli.ok("create", "sam")
    monkeypatch.delenv("EVERLOG_RUNTIME")
    files.write(user=f'store = "{cli.root}"\nruntime = "nowhere"'.replace("nowhere", "local"))
    capsys.readouterr()
    assert main(["agents", "--json"], world=cli.world) == 0
    assert json.loads(capsys.readouterr().out)[0]["agent"] == "sam"


@pytest.mark.parametrize(
    ("user", "store", "said"),
    [
        ('modle = "x"', "", "has an unknown key 'modle'. Did you mean 'model'?"),
        ('base-url = "x"', "", "has an unknown key 'base-url'. Did you mean 'base_url'?"),
        ('nonsense = "x"', "", "has an unknown key 'nonsense'. Keys: store, runtime,"),
        ("zone = 7", "", "zone is not a text"),
        ('tools = "x.py"', "", "tools is not a list of texts"),
        ('runtime = "moon"', "", "runtime is 'moon'; expected auto or local or ray"),
        ("[agent]\nname = 1", "", "agent is not a text"),
        ('api_key = "sk-12345678"', "", "looks like a secret"),
        ('OPENAI_API_KEY = "abc"', "", "looks like a secret"),
        ('model = "sk-12345678"', "", "the value of model looks like a secret"),
        ('base_url = "https://me:word@host/v1"', "", "the value of base_url looks like a secret"),
        ("model =", "", "is not TOML"),
        pytest.param("", 'tools = ["x.py"]', OF_USER, marks=OF_STORE),
        pytest.param("", 'store = "/elsewhere"', OF_USER, marks=OF_STORE),
        pytest.param("", 'base_url = "http://127.0.0.1:9/v1"', OF_USER, marks=OF_STORE),
    ],
)
def test_a_mistake_in_a_file_is_an_error_of_every_command(
    cli: Line, files: Files, user: str, store: str, said: str
) -> None:
    """The error names the file and the cure, and never repeats what may be a secret."""
    cli.ok("create", "sam")
    files.write(user=user, store=store)
    for argv in (("agents",), ("send", "sam", "Hi"), ("config",)):
        error = cli.fails(*argv)
        assert said in error
        assert str(files.user if user else cli.root / STORE_FILE) in error
        assert "12345678" not in error and "word@" not in error


def test_the_users_file_is_where_the_platform_has_it(tmp_path: Path) -> None:
    """EVERLOG_CONFIG, else XDG_CONFIG_HOME, else ~/.config; an empty EVERLOG_CONFIG means no file."""
    assert user_file({"EVERLOG_CONFIG": ""}) is None
    assert user_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/everlog/config.toml")
    assert user_file({}) == Path("~/.config/everlog/config.toml").expanduser()
    own = tmp_path / "own.toml"
    own.touch()
    assert user_file({"EVERLOG_CONFIG": str(own)}) == own


def test_a_named_file_that_is_missing_is_an_error(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """EVERLOG_CONFIG that names no file is not silently ignored."""
    monkeypatch.setenv("EVERLOG_CONFIG", "/nowhere/config.toml")
    assert "EVERLOG_CONFIG names /nowhere/config.toml, and there is no such file" in cli.fails("agents")


def test_the_store_file_is_that_of_the_store_in_use(tmp_path: Path) -> None:
    """--store, else EVERLOG_STORE, else the user's file decide whose everlog.toml is read."""
    config = tmp_path / "config.toml"
    config.write_text(f'store = "{tmp_path}/c"')
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / STORE_FILE).write_text(f'agent = "{name}"')
    environment = {"EVERLOG_CONFIG": str(config)}
    assert read_defaults(None, environment).of("agent") == "c"
    assert read_defaults(None, {**environment, "EVERLOG_STORE": str(tmp_path / "b")}).of("agent") == "b"
    assert read_defaults(str(tmp_path / "a"), {**environment, "EVERLOG_STORE": str(tmp_path / "b")}).of("agent") == "a"


def test_config_shows_every_key_and_both_files(cli: Line, files: Files) -> None:
    """For people a line for each key, and whether each file is there."""
    out = cli.ok("config")
    assert [line.split()[0] for line in out.splitlines()[: len(KEYS)]] == [key.name for key in KEYS]
    assert f"not there: {cli.root / STORE_FILE}" in out
    assert f"read: {files.user}" in out


def test_a_server_gives_its_defaults_to_new_agents(tmp_path: Path) -> None:
    """Zone, model and preset of the files are those of an agent that is created over HTTP without them, also of a name
    that was deleted; an agent that exists keeps its own.
    """
    (tmp_path / "config.toml").write_text('zone = "Europe/Oslo"\npreset = "docs"\npersona = "sam"\n')
    defaults = read_defaults(str(tmp_path / "store"), {"EVERLOG_CONFIG": str(tmp_path / "config.toml")})
    found = settings_of_new_agents(Namespace(defaults=defaults))
    assert found == {"zone": "Europe/Oslo", "preset": "docs"}

    async def main() -> None:
        async def zone_and_preset(server: Served, name: str) -> tuple[str, str]:
            settings = (await server.call("GET", f"/agents/{name}", status=200))["settings"]
            return settings["zone"], settings["preset"]

        async with served(tmp_path / "store", options=HttpOptions(new_agents=found)) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents", {"name": "own", "settings": {"zone": "Asia/Tokyo"}}, status=201)
            assert await zone_and_preset(server, "sam") == ("Europe/Oslo", "docs")
            assert await zone_and_preset(server, "own") == ("Asia/Tokyo", "docs")
        async with served(tmp_path / "store", options=HttpOptions(new_agents={"zone": "Asia/Tokyo"})) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=200)
            assert await zone_and_preset(server, "sam") == ("Europe/Oslo", "docs")
            await server.call("DELETE", "/agents/sam", status=200)
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            assert (await zone_and_preset(server, "sam"))[0] == "Asia/Tokyo"

    asyncio.run(main())

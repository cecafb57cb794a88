"""`everlog send` and `create`: inputs, ids, answers, errors."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError, uuid7
from everlog.interfaces.cli.main import main
from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion, says

ROOT = Path(__file__).resolve().parents[3]
STEPS_MAX, ID = 20, "018bcfe5-6800-7000-8000-000000000001"


def failure() -> ModelError:
    return ModelError("The endpoint is down.\nTry again.", kind="unreachable")


def types(records) -> list[str]:
    return [record["type"] for record in records]


def test_the_answer_is_printed(cli: Line):
    """`send` creates the agent, and prints only the agent's answer."""
    cli.script.answers = [says("Hello, Chad!")]
    assert cli.ok("send", "sam", "I am Chad") == "Hello, Chad!\n"


def test_verbose_shows_thoughts_and_functions(cli: Line):
    """With -v the thoughts and the calls with their results are printed too."""
    edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
    cli.script.answers = [completion(edit, thought="He sails."), says("Ahoy")]
    out = cli.ok("send", "sam", "I sail", "-v")
    assert "He sails." in out
    assert 'ƒ core_memory_append(name="human", content="Sails") ♥ → ok' in out
    assert out.splitlines()[-1] == "sam  Ahoy"


def test_json_lines_are_the_log(cli: Line):
    """`send --json` prints the records from the input on, as `events --json` does."""
    sent = cli.lines("send", "sam", "hello")
    logged = cli.lines("events", "sam", "--from", str(sent[0]["seq"]))
    assert sent == logged
    assert types(sent)[0] == "user_message"
    assert sent[0]["text"] == "hello"
    assert sent[0]["recorded_at"].endswith("Z")
    assert sent[1]["payload"]["model"] == "script"


@pytest.mark.parametrize(
    ("argv", "kind", "payload"),
    [
        (["Careful."], "system_alert", {}),
        (["The user liked your message."], "system_alert", {"source": "user_event"}),
        ([], "heartbeat", {"reason": "manual"}),
    ],
    ids=["system", "event", "heartbeat"],
)
def test_other_inputs(argv, kind, payload, cli: Line, request):
    """--role sends inputs other than a user's message."""
    records = cli.lines("send", "sam", *argv, "--role", request.node.callspec.id)
    assert (records[0]["type"], records[0]["payload"]) == (kind, payload)
    assert len(cli.script.asked) == 1


def test_a_login_knows_the_one_before(cli: Line):
    """A login carries the time of the previous login, and may be sent again with its id."""
    cli.ok("create", "sam")
    born = next(r for r in cli.lines("events", "sam") if r["type"] == "user_login")
    first = cli.lines("send", "sam", "--role", "login", "--id", ID)[0]
    again = cli.lines("send", "sam", "--role", "login", "--id", ID)[0]
    assert first["payload"]["last_login"] > 0
    assert born["recorded_at"] < first["recorded_at"]
    assert again == first


def test_the_same_id_counts_once(cli: Line):
    """A repeated id prints the recorded answer, and calls no model."""
    cli.script.answers = [says("One answer.")]
    first = cli.lines("send", "sam", "hello", "--id", ID)
    head = cli.json("memory", "sam")["as_of"]
    cli.ok("send", "sam", "something else")
    assert cli.ok("send", "sam", "hello", "--id", ID) == "One answer.\n"
    assert cli.lines("send", "sam", "hello", "--id", ID) == first
    assert len(cli.script.asked) == 2
    assert first[-1]["seq"] == head


def test_the_same_id_with_other_words_is_refused(cli: Line):
    """A known id with other content is an error, and nothing is recorded."""
    cli.ok("send", "sam", "hello", "--id", ID)
    assert "other content" in cli.fails("send", "sam", "goodbye", "--id", ID)


def test_an_old_id_is_refused(cli: Line):
    """A very old id is refused, because it cannot be distinguished from a new id."""
    assert "hours" in cli.fails("send", "sam", "hello", "--id", uuid7(1_000_000_000, 7))


def test_a_model_error_keeps_the_message(cli: Line):
    """A failed model call is one paragraph and exit code 1; the message is in the log, and in the next context."""
    cli.script.answers = [failure()]
    assert cli.fails("send", "sam", "Do you hear me?") == "everlog: The endpoint is down. Try again.\n"
    assert types(cli.lines("events", "sam"))[-2:] == ["user_message", "model_failed"]
    cli.ok("send", "sam", "And now?")
    assert b"Do you hear me?" in cli.script.asked[-1]


@pytest.mark.beside_store("Ctrl-C is raised by the model, which runs in the server")
def test_an_unfinished_turn_is_finished_first(cli: Line):
    """A turn that a crash left open is finished before the new message is answered."""
    cli.script.answers = [KeyboardInterrupt()]  # type: ignore[list-item]
    cli.script.ask = interrupted  # type: ignore[method-assign]
    code, _, err = cli("send", "sam", "first")
    assert (code, len(err.splitlines())) == (130, 1)
    del cli.script.ask
    cli.script.answers = [says("To the first."), says("To the second.")]
    assert cli.ok("send", "sam", "second") == "To the first.\nTo the second.\n"


async def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_speaker_names_one_of_several_users(cli: Line):
    """--speaker names the user who speaks."""
    assert cli.lines("send", "sam", "hello", "--speaker", "Eve")[0]["payload"] == {"name": "Eve"}


def endless(cli: Line, turns: int = 1) -> None:
    """Return a model that requests one heartbeat after another, until its turn is abandoned."""
    again = ("core_memory_append", {"name": "human", "content": "x", "request_heartbeat": True})
    cli.script.answers = [completion(again)] * (STEPS_MAX * turns)


def test_a_turn_that_was_given_up_is_a_failure(cli: Line):
    """A turn abandoned at its last step is one paragraph and exit code 1, also when the id is sent again."""
    endless(cli)
    code, out, err = cli("send", "sam", "Go on", "-v", "--id", ID)
    assert (code, len(err.splitlines())) == (1, 1)
    assert err.startswith("everlog: The turn was stopped after")
    assert "stopped" not in out
    assert cli("send", "sam", "Go on", "--id", ID)[::2] == (1, err)


def test_json_has_the_records_of_a_turn_that_was_given_up(cli: Line):
    """With --json stdout has every record of the turn, including the last; the exit code is 1 nevertheless."""
    endless(cli)
    code, out, err = cli("send", "sam", "Go on", "--json")
    assert (code, len(err.splitlines())) == (1, 1)
    assert '"turn_abandoned"' in out.splitlines()[-1]


def test_a_repeated_id_of_a_failed_turn_fails_again(cli: Line):
    """An input whose turn failed at the model fails again when it is sent again, because it has no answer."""
    cli.script.answers = [failure()]
    told = cli.fails("send", "sam", "hello", "--id", ID)
    assert cli.fails("send", "sam", "hello", "--id", ID) == told


def test_an_id_of_the_future_is_refused(cli: Line):
    """An id whose time is more than a day ahead is bad usage: the log would have to remember it for too long."""
    cli.ok("create", "sam")
    code, _, err = cli("send", "sam", "hello", "--id", uuid7(cli.clock.at + 90_000_000_000, 1))
    assert code == 2
    assert "ahead of the clock" in err
    cli.ok("send", "sam", "hello", "--id", uuid7(cli.clock.at + 80_000_000_000, 1))


@pytest.mark.beside_store("a log is taken over where it is")
def test_a_fenced_command_names_the_agent(cli: Line):
    """The error names the agent, not only its partition."""
    cli.ok("create", "sam")

    async def overtaken(*_: object, **__: object):
        FileStore(cli.root, cli.clock.now).open("sam", "other", take_over=True).close()
        return ModelResponse(says("Too late."), 5)

    cli.script.ask = overtaken  # type: ignore[method-assign]
    assert "took over the agent 'sam'" in cli.fails("send", "sam", "hello")


@pytest.mark.beside_store("the server has its own log of warnings")
def test_a_tail_that_was_cut_is_reported(cli: Line):
    """The next owner after a torn write reports the number of cut bytes, and keeps these bytes in the named file."""
    cli.ok("create", "sam")
    (path,) = cli.root.glob("log/*/*.open")
    with path.open("ab") as file:
        file.write(b"nonsense")
    code, out, err = cli("send", "sam", "hello")
    assert (code, out) == (0, "Indeed.\n")
    assert "8 damaged bytes" in err
    assert Path(err.split("kept in ")[1].strip().rstrip(".")).read_bytes() == b"nonsense"
    assert cli("send", "sam", "hello")[2] == ""


@pytest.mark.beside_store("the server of the tests has the model of the script only")
def test_a_model_without_a_key_is_reported(cli: Line, monkeypatch):
    """If the agent's recorded model needs an endpoint, and neither key nor URL is set, the error names both."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    cli.ok("create", "sam", "--model", "gpt-x")
    cli.real = True
    told = cli.fails("send", "sam", "hello")
    assert "OPENAI_API_KEY" in told
    assert "OPENAI_BASE_URL" in told


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        ("x = 1\ndef (:\n", 2, "SyntaxError"),
        ("\nimport nowhere_at_all\n", 2, "nowhere_at_all"),
        ("import sys\n\nsys.exit(3)\n", 3, "SystemExit: 3"),
        ("x = 1\ny = z\n", 2, "'z' is not defined"),
        ("from everlog import tool\n@tool\ndef f(a):\n    'Do.'\n", 2, "type hint"),
    ],
    ids=["syntax", "import", "exit", "name", "hint"],
)
def test_functions_that_cannot_be_loaded(code, line, told, cli: Line, tmp_path):
    """A faulty file of functions is one paragraph that names the file and the line, and no agent is created."""
    path = tmp_path / "tools.py"
    path.write_text(code)
    err = cli.fails("send", "sam", "hi", "--tools", str(path))
    assert f"{path}, line {line}: " in err
    assert told in err
    assert not cli.root.exists()


def test_text_from_stdin(cli: Line, monkeypatch):
    """`-` reads the text from stdin."""
    monkeypatch.setattr("sys.stdin", io.StringIO("long\ntext\n"))
    assert cli.lines("send", "sam", "-")[0]["text"] == "long\ntext"


def test_bytes_from_stdin_that_are_no_text(cli: Line, monkeypatch):
    """The error names the first byte that is not text, and nothing is recorded."""
    cli.ok("create", "sam")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\xffc"), encoding="utf-8"))
    assert "is the byte 0xff" in cli.fails("send", "sam", "-")
    assert "user_message" not in [record["type"] for record in cli.lines("events", "sam")]


def test_half_a_character_is_refused(cli: Line):
    """Text that is not Unicode is an error without a traceback; if one byte is the cause, the error names it."""
    assert "not UTF-8: character 3 is the byte 0xff" in cli.fails("send", "sam", "ab\udcff")
    assert "half of a character" in cli.fails("send", "sam", "\ud800")
    assert "not UTF-8" in cli.fails("search", "sam", "\udcff")
    assert "lone surrogate" in cli.fails("create", "\udcff")
    assert "The name of an agent is empty." in cli.fails("create", "")


def test_control_characters_do_not_reach_the_terminal(cli: Line):
    """An agent's message cannot move the cursor or change colours."""
    cli.script.answers = [says("a\x1b[31mb\x07c")]
    assert cli.ok("send", "sam", "hello") == "a\\x1b[31mb\\x07c\n"


def test_create_with_blocks_and_files(cli: Line, tmp_path):
    """Blocks come from files, with or without a limit; a persona is a file or a preset."""
    (tmp_path / "notes").write_text("Buy milk.\n")
    (tmp_path / "me").write_text("I am Max.")
    shape = cli.json(
        "create", "max", "--persona", str(tmp_path / "me"), "--human", "guest",
        "--block", f"notes={tmp_path / 'notes'}:30", "--window", "4096", "--zone", "Europe/Oslo",
    )  # fmt: skip
    assert (shape["agent"], shape["events"], shape["window"], shape["preset"]) == ("max", 8, 4096, "small")
    memory = cli.json("memory", "max")
    assert [(b["label"], b["limit"]) for b in memory["blocks"]] == [("persona", 2000), ("human", 2000), ("notes", 30)]
    assert [b["value"] for b in memory["blocks"]][::2] == ["I am Max.", "Buy milk."]
    assert cli.json("context", "max")["window"] == 4096
    assert not cli.script.asked


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--persona", "nobody"], "presets"),
        (["--system", "/no/such/file"], "cannot be read"),
        (["--block", "notes=/no/such/file"], "cannot be read"),
        (["--zone", "Mars"], "no time zone"),
        (["--window", "10"], "4096"),
        (["--tools", "/no/such/file.py"], "no Python file"),
    ],
)
def test_bad_settings_make_no_agent(argv, told, cli: Line):
    """A bad setting is one paragraph, and no agent is created."""
    assert told in cli.fails("create", "sam", *argv)
    code, out, _ = cli("agents", "--json")
    assert code == 1 or out == "[]\n"


def test_create_twice_is_refused(cli: Line):
    """A name that is taken is an error, so that settings for a new agent are not silently ignored."""
    cli.ok("create", "sam")
    assert "already" in cli.fails("create", "sam")
    code, _, err = cli("send", "sam", "hello", "--persona", "plain")
    assert code == 0
    assert "--persona has an effect on a new agent only" in err


def test_own_functions(cli: Line, tmp_path):
    """--tools loads every function of a Python file that is marked as a tool."""
    (tmp_path / "tools.py").write_text(
        "from everlog import tool\n\n\n@tool(effect='read_only')\ndef weather(city: str) -> str:\n"
        "    '''Tell the weather.\n\n    Args:\n        city: The city.\n    '''\n    return f'rain in {city}'\n"
    )
    cli.script.answers = [completion(("weather", {"city": "Oslo", "request_heartbeat": True})), says("It rains.")]
    out = cli.ok("send", "sam", "weather?", "-v", "--tools", str(tmp_path / "tools.py"))
    assert 'weather(city="Oslo") ♥ → rain in Oslo' in out
    (tmp_path / "none.py").write_text("x = 1\n")
    assert "@tool" in cli.fails("send", "sam", "hi", "--tools", str(tmp_path / "none.py"))


@pytest.mark.beside_store("a log is taken over where it is")
def test_an_agent_that_is_open_elsewhere(cli: Line):
    """A command names the process of a live owner and does not fence it. Reading works; --take-over fences."""
    cli.ok("create", "sam")
    log = FileStore(cli.root, cli.clock.now).open("sam", "everlog chat")
    assert f"open in process {os.getpid()} (everlog chat)" in cli.fails("send", "sam", "hello")
    assert cli.json("memory", "sam")["as_of"] == 7
    assert cli.ok("send", "sam", "hello", "--take-over") == "Indeed.\n"
    log.close()


def test_a_newer_store_is_refused(cli: Line):
    """A store of a newer format is refused and not changed."""
    cli.root.mkdir()
    (cli.root / "everlog.json").write_text('{"format": 99}')
    assert "newer" in cli.fails("send", "sam", "hello")
    assert [path.name for path in cli.root.iterdir()] == ["everlog.json"]


def test_an_unread_output_ends_the_command(cli: Line):
    """A closed output ends the command without a message, with the exit code that shells use."""
    cli.ok("create", "sam")
    probe = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(cli.root), "events", "sam", "--json"]
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(probe, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (run.returncode, run.stderr) == (141, b"")


def test_a_bug_propagates(cli: Line, monkeypatch):
    """An exception that is not an EverlogError is raised unchanged."""
    monkeypatch.setattr("everlog.interfaces.show.agents_command.list_agents", lambda *_, **__: 1 / 0)
    cli.ok("create", "sam")
    with pytest.raises(ZeroDivisionError):
        main(["--store", str(cli.root), "agents"], world=cli.world)


def test_two_processes(cli: Line):
    """The embedded model answers in a new process, and a second process finds the first one's messages."""
    env = {**os.environ, "EVERLOG_STORE": str(cli.root)}

    def everlog(*argv: str) -> str:
        command = [sys.executable, "-m", "everlog.interfaces.cli.main", *argv]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout

    assert everlog("send", "sam", "Hi, my name is Chad and I sail").strip()
    assert "Chad" in everlog("memory", "sam")
    assert "Chad" in everlog("send", "sam", "What is my name?")


@pytest.mark.beside_store("the runtime is that of the server")
def test_an_unknown_runtime_is_refused(cli: Line, monkeypatch):
    """An unknown value of EVERLOG_RUNTIME is refused by `up` and by `send`, and `up` makes no store first."""
    monkeypatch.setenv("EVERLOG_RUNTIME", "foo")
    assert "There is no runtime 'foo'" in cli.fails("up")
    assert not cli.root.exists()
    assert "There is no runtime 'foo'" in cli.fails("send", "sam", "hi")

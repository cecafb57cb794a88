"""Examples of the documents run, and do what the documents say."""

import io
import re
import shlex
from pathlib import Path

import pytest

from everlog.interfaces.cli.main import main

ROOT = Path(__file__).parents[2]


def test_the_example_functions_are_functions_of_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of docs/how_to/write_a_function.md loads, and the agent's configuration names its functions."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "how_to" / "write_a_function.md").read_text(), re.DOTALL)
    assert code is not None
    sailor = tmp_path / "sailor.py"
    sailor.write_text(code[1])
    store = ["--store", str(tmp_path / "store")]
    assert main(["send", "sam", "Hello", "--tools", str(sailor), *store]) == 0
    assert main(["events", "sam", "--type", "agent_configured", "--json", *store]) == 0
    shown = capsys.readouterr().out
    assert '"wind"' in shown
    assert '"set_plan"' in shown


def test_every_decision_is_numbered_and_said_to_be_decided() -> None:
    """docs/explanation/decisions/ holds 0001, 0002 and so on, without a gap."""
    names = sorted(path.name for path in (ROOT / "docs" / "explanation" / "decisions").glob("[0-9]*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_the_tour_of_the_readme_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the README's tour exits 0, one after the other, on a store that only its first screen made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERLOG_STORE", str(tmp_path / "store"))
    readme = (ROOT / "README.md").read_text()
    first = re.search(r"\.venv/bin/(everlog send .*)", readme)
    tour = re.findall(r"^(everlog .*?)(?:  +#.*)?$", readme.split("## The next five minutes")[1], re.MULTILINE)
    assert first is not None
    assert len(tour) >= 9
    for command in [first[1], *tour]:
        monkeypatch.setattr("sys.stdin", io.StringIO("hello\n/exit\n"))
        assert main(shlex.split(command)[1:]) == 0, command
    shown = capsys.readouterr().out
    assert readme.split("```text\n")[1].split("\n```")[0] in shown
    assert "Your name is Chad." in shown


def test_the_memory_of_the_page_is_found_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of the README exit 0, and a query finds the stored memory without sharing a word with it."""
    monkeypatch.chdir(ROOT)  # its documents are loaded
    monkeypatch.setenv("EVERLOG_STORE", str(tmp_path / "store"))
    section = (ROOT / "docs" / "how_to" / "search_memory.md").read_text().split("```")[1]
    commands = re.findall(r"^(everlog .*?)(?:  +#.*)?$", section, re.MULTILINE)
    assert len(commands) >= 6
    for command in ("everlog send sam 'Hi, I sail to Bergen'", "everlog create ann", *commands):
        assert main(shlex.split(command)[1:]) == 0, command
    assert "The dog is called Rex" in capsys.readouterr().out

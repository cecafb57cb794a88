"""Examples of the documents run, and do what the documents say."""

import io
import re
import shlex
from pathlib import Path

import pytest

from everlog.actors.ports import agent_constants
from everlog.interfaces.cli.main import main

ROOT = Path(__file__).parents[2]


def test_the_example_functions_are_functions_of_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of docs/how_to/write_a_function.md loads, and the agent's configuration names its functions."""
    codes = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "how_to" / "write_a_function.md").read_text(), re.DOTALL
    )
    sailor = tmp_path / "sailor.py"
    sailor.write_text("\n".join(codes[:2]))
    store = ["--store", str(tmp_path / "store")]
    assert main(["send", "sam", "Hello", "--tools", str(sailor), *store]) == 0
    assert main(["events", "sam", "--type", "agent_configured", "--json", *store]) == 0
    shown = capsys.readouterr().out
    assert '"wind"' in shown
    assert '"set_plan"' in shown
    assert '"count_ships"' in shown


def test_the_limits_of_functions_are_those_of_the_page() -> None:
    """docs/reference/functions.md names the numbers of threads and seconds that the code has."""
    page = " ".join((ROOT / "docs" / "reference" / "functions.md").read_text().split())
    for words in (
        f"the default is {agent_constants.FUNCTION_LIMIT_S}, and None is no limit",
        f"has {agent_constants.FUNCTION_GRACE_S} seconds to clean up",
        f"In each process {agent_constants.FUNCTION_THREADS_MAX} functions run at a time",
        f"stops counting after {agent_constants.FUNCTION_PLACE_S} seconds",
        f"At most {agent_constants.FUNCTION_THREADS_OVERDUE_MAX} functions run without counting",
        f"has waited {agent_constants.FUNCTION_WAIT_S} seconds for a thread",
    ):
        assert words in page, words
    how_to = (ROOT / "docs" / "how_to" / "write_a_function.md").read_text()
    assert f"A call may take {agent_constants.FUNCTION_LIMIT_S} seconds" in how_to


def test_every_decision_is_numbered_and_said_to_be_decided() -> None:
    """docs/explanation/decisions/ holds 0001, 0002 and so on, without a gap."""
    names = sorted(path.name for path in (ROOT / "docs" / "explanation" / "decisions").glob("[0-9]*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_the_tour_of_the_readme_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the README's tour exits 0, one after the other, on a store that only its first screen made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERLOG_STORE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
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
    exec(readme.split("```python\n")[1].split("\n```")[0], {})
    assert capsys.readouterr().out == "Your name is Chad.\n"


def test_every_line_of_the_readme_is_run() -> None:
    """A command of the README is one of its two first ones, the activation, or part of the tour, which a test runs."""
    readme = (ROOT / "README.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) for line in block.splitlines()]
    assert [line.split(" ")[0] for line in lines[:3]] == ["python3", ".venv/bin/pip", "source"]
    assert lines[2].split("#")[0].strip() == "source .venv/bin/activate"
    assert all(line.startswith("everlog ") for line in lines[3:])
    tour = readme.split("## The next five minutes")[1]
    assert lines[3:] == re.findall(r"^everlog .*$", tour, re.MULTILINE)


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

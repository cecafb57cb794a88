"""Completion in a real bash: the script of `everlog completion bash` completes commands, options, values and agents."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.interfaces.cli.completion_command import NAMES, script_of
from tests.support.cli.command_line import Line

ROOT = Path(__file__).resolve().parents[3]

BASH = """\
source "$1"
everlog() { "$PYTHON" -m everlog.interfaces.cli.main "$@"; }
while read -r -a COMP_WORDS; do
  [[ ${COMP_WORDS[-1]} == _ ]] && COMP_WORDS[-1]=
  COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
  "$(complete -p everlog | sed 's/.*-F \\([^ ]*\\).*/\\1/')" everlog \
      "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD-1]}"
  echo "${COMPREPLY[*]}"
done
"""
"""Complete each line of stdin as bash does when Tab is pressed at its end; `_` stands for an empty last word."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
def test_bash_completes_what_is_typed(cli: Line, tmp_path: Path) -> None:
    """Each line that a person may begin is completed with what the parser and the store know."""
    for name in ("sam", "sandra", "tom"):
        cli.ok("create", name)
    script, driver = tmp_path / "completion", tmp_path / "driver"
    script.write_text(cli.ok("completion", "bash"))
    driver.write_text(BASH)
    typed = {
        "everlog se": ["send", "search", "serve"],
        "everlog archive se": ["search"],
        "everlog send sa": ["sam", "sandra"],
        "everlog log check t": ["tom"],
        "everlog send sam --mo": ["--model", "--monologue-chars"],
        "everlog send sam --runtime _": ["auto", "local", "ray"],
        "everlog completion f": ["fish"],
    }
    env = {**os.environ, "EVERLOG_STORE": str(cli.root), "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    run = subprocess.run(
        ["bash", str(driver), str(script)], input="".join(f"{line}\n" for line in typed), env=env, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert run.stderr == ""
    assert [sorted(line.split()) for line in run.stdout.splitlines()] == [sorted(words) for words in typed.values()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_asks_for_names_when_tab_is_pressed(shell: str) -> None:
    """No name is in the script itself: an agent that is created later is completed too."""
    script = script_of(shell)
    assert NAMES in script
    assert "repair-register" in script


def test_the_names_are_those_of_the_register(cli: Line) -> None:
    """One name a line, with control characters escaped; nothing for a store that does not exist, which is not made."""
    assert cli.ok("completion", "--names") == ""
    assert not cli.root.exists()
    for name in ("zoe", "a b"):
        cli.ok("create", name)
    assert cli.ok("completion", "--names") == "a b\nzoe\n"


def test_names_come_without_the_heavy_parts(cli: Line) -> None:
    """The call of a script imports neither the agents nor the terminal's library: Tab must answer at once."""
    cli.ok("create", "sam")
    heavy = ("duckdb", "rich", "openai", "lancedb", "ray", "shtab", "everlog.interfaces.common.bootstrap")
    probe = "import sys; from everlog.interfaces.cli.main import main; main(['completion', '--names'])"
    probe += f"; print(*(name for name in {heavy} if name in sys.modules))"
    env = {**os.environ, "EVERLOG_STORE": str(cli.root), "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, text=True, check=True)
    assert run.stdout == "sam\n\n"

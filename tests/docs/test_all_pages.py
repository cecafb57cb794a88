"""Rules for every page: links lead somewhere, commands exist, snippets parse, made parts are up to date."""

import argparse
import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.make import blocks, consoles, from_catalogue, from_parser, makers
from everlog.interfaces.cli.command_parser import COMMANDS, GROUPS
from tests.support.cli.command_line import whole_parser

ROOT = Path(__file__).parents[2]
PAGES = [*blocks.pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
OURS = [page for page in PAGES if "decisions" not in page.parts and page.name != "CONTRIBUTING.md"]
MADE = re.compile(r"<!-- made from .*?<!-- end -->", re.DOTALL)
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
LINE_MAX = 120


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page without code blocks."""
    return FENCED.sub("", text(page))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them; a repeated one gets a number."""
    found: dict[str, int] = {}
    result = set()
    for title in re.findall(r"^#+ +(.*?) *$", prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w -]", "", plain.lower()).strip().replace(" ", "-")
        number = found.get(slug, 0)
        result.add(slug if not number else f"{slug}-{number}")
        found[slug] = number + 1
    return result


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every file and heading that the page links to exists."""
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        file, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == [], "write the link again: the file or its heading has another name"


def typed(page: Path) -> Iterator[str]:
    """The `everlog` commands of a page: lines of shells and consoles, and code between backticks."""
    for kind, body in FENCED.findall(text(page)):
        if kind in ("sh", "console"):
            for line in body.replace("\\\n", " ").splitlines():
                yield from re.findall(r"(?:^|[|=] ?)\s*(?:\$ )?(?:\w+=\S+ )*(everlog .*?)(?:  +#.*)?$", line)
    if page.name != "README.md":
        yield from re.findall(r"`(everlog [^`\n]+)`", MADE.sub("", prose(page)))


@pytest.mark.parametrize("page", [page for page in OURS if "errors" not in page.parts], ids=name)
def test_every_command_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser takes each command of the page as it is written; a command that is only named has to be one."""
    names = {command.name for command in COMMANDS} | set(GROUPS)
    wrong = []
    for command in typed(page):
        words = [word for word in shlex.split(command)[1:] if word != "..."]
        if " ".join(words) in names or words[:1] in (["COMMAND"], ["tour"], ["explain"]) or "--version" in words:
            continue
        try:
            whole_parser().parse_args(words)
        except (SystemExit, argparse.ArgumentError):
            wrong.append(command)
    capsys.readouterr()
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_snippets_parse(page: Path) -> None:
    """Python, TOML and JSON on a page is valid."""
    for kind, body in FENCED.findall(MADE.sub("", text(page))):
        if kind == "python":
            compile(body, name(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif kind == "toml":
            tomllib.loads(body)
        elif kind == "json":
            for line in body.splitlines():
                json.loads(line)


@pytest.mark.parametrize("page", blocks.pages(), ids=name)
def test_made_parts_are_up_to_date(page: Path) -> None:
    """Each block that is made from code says what the code says today."""
    assert makers.made(page) == text(page), f"run `{blocks.COMMAND}` and look at what changed in {name(page)}"


def test_the_references_are_complete() -> None:
    """Every command has a section, every view a table, and every column a meaning."""
    cli, views = (text(ROOT / "docs" / "reference" / page) for page in ("cli.md", "sql.md"))
    assert [command for command in from_parser.missing(cli) if command not in GROUPS] == []
    assert sorted(blocks.names(cli, "the parser")) == sorted(command.name for command in COMMANDS)
    assert sorted(blocks.names(views, "the catalogue")) == sorted(from_catalogue.NAMED_VIEWS)
    assert from_catalogue.unexplained(views) == [], (
        "write the meaning of the column into its row of docs/reference/sql.md"
    )


def test_every_page_is_in_the_navigation() -> None:
    """zensical.toml lists each page of docs/, but for those of decisions and errors, whose indexes list them."""
    listed = set(re.findall(r'"([\w/.-]+\.md)"', text(ROOT / "zensical.toml")))
    pages = {str(page.relative_to(ROOT / "docs")) for page in blocks.pages()}
    apart = {page for page in pages if re.match(r"explanation/decisions/0|reference/errors/(?!index)", page)}
    assert listed == pages - apart


def test_the_readme_is_short() -> None:
    """README.md fits on a few screens."""
    assert len(text(ROOT / "README.md").splitlines()) <= LINE_MAX


RUN = [page for page in PAGES if page.parent.name in ("tutorial", "how_to") and "```console" in text(page)]


@pytest.mark.long
@pytest.mark.commands
@pytest.mark.parametrize("page", RUN, ids=name)
def test_consoles_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Each command of the page, run in its order in an empty folder, prints what the page shows."""
    wrong = [(step.command, printed) for step, printed in consoles.differences(text(page), tmp_path)]
    assert wrong == [], f"run `{blocks.COMMAND} --run {name(page)}` and look at what changed"


def test_the_runner_of_consoles_sees_a_difference() -> None:
    """Times, ids and line breaks may differ between two runs, other words may not; `...` stands for any lines."""
    assert consoles.matches("at 2026-01-31 12:00:00, just now\n", "at 2026-02-01 09:30:11, 3 minutes ago\n")
    assert consoles.matches("first\n...\nlast\n", "first\na\nb\nlast\n")
    assert not consoles.matches("first\nlast\n", "first\na\nlast\n")
    assert not consoles.matches("1 page\n", "2 pages\n")


def test_the_site_is_made_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    """`zensical build --strict` ends well, and no page loads a script, a style or a font from elsewhere."""
    pytest.importorskip("zensical", reason="the site needs the extra `docs`: pip install -e '.[docs]'")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    made = "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "build" / "site").rglob("*.html"))
    assert re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="?https?:', made) == []

"""`everlog report`: the same figures in the terminal, as JSON, and as one self-contained page."""

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from everlog.actors.reports.fleet_figures import Chart, ChartPoint, FleetFigures
from everlog.events import ModelError
from everlog.interfaces.show import report_html, report_terminal
from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion, says

HOSTILE = ['<script>alert("x")</script>', "\x1b[31mred", "a&b'c\"d", "[bold]o", "\u202egnp", "' OR 1=1 --", "é" * 60]
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A parser of the page: an element that is not closed, or a reference to another resource, is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onclick", "xlink:href"}
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def busy(cli: Line) -> Line:
    """Create two agents; one of them fails in two ways, and changes its memory."""

    def make(line: Line) -> None:
        line.ok("create", "ann")
        line.ok("create", "bob", "--model", "script")
        line.script.answers += [
            completion(("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})),
            completion(("core_memory_replace", {"name": "human", "old_content": "no such words", "new_content": "x"})),
            says("Ahoy."),
        ]
        line.ok("send", "bob", "Hi")
        line.script.answers.append(ModelError("It is no key.", kind="key"))
        line("send", "bob", "Hello?")

    cli.begin("reported agents", make)
    return cli


def test_the_figures_are_those_of_the_logs(busy: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens, failures, edits and messages equal the counts by hand; costs use known prices."""
    found = busy.json("report")
    events = busy.lines("events", "bob")
    replies = [event["payload"]["usage"] for event in events if event["type"] == "model_reply" and event["turn"]]
    assert found["tokens"] == sum(usage["total"] for usage in replies) == 3060
    assert found["cost"] is None
    assert (found["agents"], found["edits"], found["messages"]) == (2, 1, 3)
    charts = {chart["key"]: chart for chart in found["charts"]}
    kinds = {point["label"]: point["value"] for point in charts["failures"]["points"]}
    assert kinds == {"core_memory_replace failed": 1, "model key": 1}
    assert found["failures"] == 2
    assert charts["memory"]["points"] == [{"label": "human", "value": 1, "note": "by 1 agent"}]
    assert charts["active"]["points"][0]["label"] == "bob"
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_IN", "10")
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_OUT", "100")
    busy.release()
    assert busy.json("report")["cost"] == pytest.approx((3000 * 10 + 60 * 100) / 1e6)


def test_every_chart_asks_and_answers(busy: Line) -> None:
    """Each chart has a question as its title, a sentence that answers the question, a unit, and the meaning of its
    labels.
    """
    charts = busy.json("report")["charts"]
    assert [chart["key"] for chart in charts] == [
        "messages", "cost", "latency", "failures", "failures_over_time", "memory", "pressure", "active",
    ]  # fmt: skip
    for chart in charts:
        assert chart["title"].endswith("?") and chart["answer"].endswith(".")
        assert chart["unit"] and chart["over"] and chart["points"]


def test_the_terminal_shows_every_question_with_its_bars(busy: Line) -> None:
    """The terminal shows titles, answers and bars, without control characters."""
    said = busy.ok("report")
    for chart in busy.json("report")["charts"]:
        assert chart["title"] in said
        assert " ".join(chart["answer"].split()[:4]) in said
    assert "█" in said and "\x1b" not in said


def test_the_page_is_whole_and_needs_nothing_else(busy: Line, tmp_path: Path) -> None:
    """The page parses, has a chart with title, unit and answer for each question, and loads nothing from a network."""
    out = tmp_path / "report.html"
    assert busy.ok("report", "--html", str(out)) == ""
    page = out.read_text()
    read = Page(page)
    assert "script" not in read.seen and "://" not in page and "@import" not in page
    charts = busy.json("report")["charts"]
    assert read.seen.count("svg") == len(charts)
    words = "\n".join(read.words)
    for chart in charts:
        assert chart["title"] in words and chart["answer"] in words
    for drawing, chart in zip(re.findall(r"<svg.*?</svg>", page, re.DOTALL), charts, strict=True):
        tree = ET.fromstring(drawing)
        texts = [element.text for element in tree.iter("text")]
        assert chart["unit"] in texts and chart["over"] in texts
        assert len(list(tree.iter("rect"))) == len(chart["points"])
        check_drawing(tree)
    assert "prefers-color-scheme: dark" in page


def check_drawing(tree: ET.Element) -> None:
    """Check that every bar and every word lies inside its drawing, and that no two words overlap."""
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    for rect in tree.iter("rect"):
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height
    boxes = [box(words) for words in tree.iter("text")]
    for left, top, right, bottom in boxes:
        assert 0 <= left <= right <= width and 0 <= top <= bottom <= height
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def box(words: ET.Element) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a text of 12 px."""
    x, y, wide = float(words.attrib["x"]), float(words.attrib["y"]), 6.6 * len(words.text or "")
    left = x - {"start": 0, "middle": wide / 2, "end": wide}[words.attrib["text-anchor"]]
    return left, y - 10, left + wide, y + 2


def test_the_same_logs_at_the_same_moment_give_the_same_page(busy: Line, tmp_path: Path) -> None:
    """The pages are equal byte for byte."""
    pages = []
    for number in (1, 2):
        out, at = tmp_path / f"{number}.html", busy.clock.at
        busy.ok("report", "--html", str(out))
        busy.clock.at = at
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]


def hostile() -> FleetFigures:
    points = [ChartPoint(name, number + 0.5, f"note {name}") for number, name in enumerate(HOSTILE)]
    chart = Chart("x", f"Who is {HOSTILE[0]}?", HOSTILE[1], HOSTILE[2], HOSTILE[0], "bars", points)
    zeros = Chart(
        "z", "None?", "None.", "messages", "day", "time", [ChartPoint(f"2026-01-{n:02}", 0) for n in range(1, 32)]
    )
    return FleetFigures("day", 1, 0, 0, 0, 0, 0, 0, 0, 0, None, {}, 0, 0, 0, [chart, zeros])


def test_no_name_is_taken_for_markup() -> None:
    """Any agent name is shown as text: on the page, in a drawing's titles, and in the terminal."""
    page = report_html.page(hostile(), of="now", records=1)
    read = Page(page)
    assert "script" not in read.seen
    assert HOSTILE[0] in "".join(read.words)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", page)
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        check_drawing(ET.fromstring(drawing))
    assert report_terminal.bar(0, 0) == "" and len(report_terminal.bar(1e-9, 5)) == 1


@pytest.mark.parametrize("count", [*range(1, 20), 31, 60, 90, 365])
def test_days_are_named_where_there_is_room(count: int) -> None:
    """With any number of agents the last day is named completely, and no label touches another."""
    days = [ChartPoint(f"{2026 + n // 372}-{n // 31 % 12 + 1:02}-{n % 31 + 1:02}", 1000 * n) for n in range(count)]
    chart = Chart("x", "How much?", "Much.", "messages", "day, UTC", "time", days)
    found = FleetFigures("day", 1, 0, 0, 0, 0, 0, 0, 0, 0, None, {}, 0, 0, 0, [chart])
    page = report_html.page(found, of="now", records=1)
    (drawing,) = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    tree = ET.fromstring(drawing)
    check_drawing(tree)
    named = [words.text for words in tree.iter("text") if words.text in {day.label for day in days}]
    assert named[-1] == days[-1].label
    assert count < 4 or named[0] == days[0].label


def test_hostile_agents_are_reported(cli: Line, tmp_path: Path) -> None:
    """Agents with hostile names are shown in the terminal and on the page."""
    store = FileStore.create(cli.root, cli.clock.now, "store")
    for name in HOSTILE[:4]:
        store.register(name)  # no command creates an agent whose name has control characters
        cli.ok("create", name)
        cli.ok("send", name, "Hello <b>there</b>")
    out = tmp_path / "r.html"
    cli.ok("report", "--html", str(out))
    assert "script" not in Page(out.read_text()).seen
    said = cli.ok("report")
    assert "\x1b" not in said and "[bold]o" in said


def test_an_empty_store_has_a_report_too(cli: Line, tmp_path: Path) -> None:
    """Nothing is drawn, and every question has an answer."""
    cli.ok("create", "sam")
    out = tmp_path / "r.html"
    cli.ok("report", "--html", str(out))
    assert "Nothing was said." in out.read_text()
    assert "No model was called." in cli.ok("report")
    assert "there is no store" in Line(tmp_path / "none", cli._capsys).fails("report")


@pytest.mark.parametrize(("most", "end"), [(0, 1), (3, 5), (7, 10), (10, 10), (101, 200), (0.02, 0.02), (2.4, 2.5)])
def test_an_axis_ends_at_a_round_number(most: float, end: float) -> None:
    """The axis ends at the next of 1, 2, 2.5 and 5 times a power of ten."""
    assert report_html.nice(most) == pytest.approx(end)


def test_no_bars_of_zero_money_are_drawn(cli: Line) -> None:
    """With the offline model alone the report says that it cost nothing, and the chart asks for tokens instead."""
    cli.script.answers = [says("Hello.").replace('"model":"script"', '"model":"offline (rule-based)"')]
    cli.ok("send", "sam", "Hi")
    (chart,) = [chart for chart in cli.json("report")["charts"] if chart["key"] == "cost"]
    assert chart["answer"].endswith(" tokens in 1 model call, which cost nothing.")
    assert chart["title"] == "Which models use the most tokens?"
    assert chart["unit"] == "tokens" and chart["points"][0]["value"] > 0
    assert "0.00 USD" not in cli.ok("report")

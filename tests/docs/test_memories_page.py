"""docs/explanation/memories.md answers a question about the past in SQL: the answers are those of a real log."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everlog import ImportedMessage, Ports, UserMessage, open_system
from everlog.actors.recollection.memory_ranking import MemoryMode
from everlog.testing import CountingIds, ManualClock

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "memories.md"
TEXT = PAGE.read_text(encoding="utf-8")
SAID = re.findall(r"^\| (\d+ \w+ \d{4}) \| (.+?) \|$", TEXT, re.MULTILINE)
ANSWERS = re.findall(r"^\| (\d{4}-\d\d-\d\d) \| (.+?) \| ([\d-]*) ?\|$", TEXT, re.MULTILINE)
"""Rows of the page's tables: the day and the words; the moment, the sentence and its beginning."""


async def answers(folder: Path) -> list[tuple[str, str, str]]:
    """Live the days of the page, and return what its query answers as of each moment of its table."""
    clock = ManualClock(datetime(2024, 2, 1, tzinfo=UTC))
    query = re.search(r"```sql\n(.*?)```", TEXT, re.DOTALL)[1]  # type: ignore[index]
    found = []
    async with open_system(folder, timers=False, ports=Ports(clock=clock, ids=CountingIds())) as system:
        sam = await system.agent("sam")
        for day, text in SAID:
            evening = datetime.strptime(day, "%d %B %Y").replace(tzinfo=UTC) + timedelta(hours=20)
            clock.skip((evening - clock.time).total_seconds())
            await sam.import_messages([ImportedMessage(UserMessage(text=text, name="Sam", imported=True), evening)])
            await sam.memories.derive("facts")
        for moment, *_ in ANSWERS:
            at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
            for row in (await system.sql(query, as_of=at)).to_pylist():
                found.append((moment, row["sentence"], str(row["since"] or "")))
    return found


def test_the_query_of_the_page_has_the_answers_of_the_page(tmp_path: Path) -> None:
    """The beliefs of 3 May about March differ from those of 7 May."""
    assert len(SAID) == len(ANSWERS) == 2
    assert asyncio.run(answers(tmp_path)) == ANSWERS


def test_the_page_names_every_mode() -> None:
    """Each way to rank memories is explained."""
    assert [mode for mode in MemoryMode.__args__ if f"| `{mode}` |" not in TEXT] == []  # type: ignore[attr-defined]

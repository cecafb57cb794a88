"""Long results: a page shows the best passage of each, and the whole is read page by page."""

import asyncio
import json
from typing import Any

import pytest

from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.models.offline.hits import hits
from everlog.actors.models.offline.request import CallResult
from everlog.actors.ports.agent_constants import PAGE_RESULTS, PASSAGE_CHARS, READ_CHARS
from everlog.actors.ports.effects import Hit, Page
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ArchivalInserted, Event, MessageSent, SourceAttached, UserMessage, event_of
from everlog.store import ArchiveQuery
from tests.actors.memory.test_agent_search import FakeArchive
from tests.support.agent_world import SECOND, START, World, completion, say

REPLY = "".join(f"Point {number}: a good garden needs patience, water and light. " for number in range(45)).strip()
"""Long reply of an assistant: 2,800 characters."""


def told(*events: Event, archive: FakeArchive | None = None) -> World:
    """Return a world whose agent has these events, a minute apart."""
    world = World(say("Hi."))
    world.system = LocalSystem(
        world.store,
        models=lambda _: world.model,
        ports=world.ports,
        services=AgentServices(archive=archive),  # type: ignore[arg-type]
    )
    asyncio.run(world.tell("Hello"))

    async def add() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            times = [START + 60 * SECOND * number for number in range(len(events))]
            if events:
                await agent.commit(list(events), turn=agent.turn, step=0, said_at=times)

    asyncio.run(add())
    return world


def call(world: World, name: str, **arguments: Any) -> tuple[str, bool]:
    """Return the result of one function call, and if it succeeded."""
    world.model.lines = [completion(calls=[(name, arguments)]), completion("Oh.")]
    left = asyncio.run(world.tell("go"))
    (result,) = [event_of(record) for record in left if record.type == "function_result"]
    assert not verify(world.system.view("sam"), world.system.tools).faults
    return result.text, result.ok


def replies(*facts: str) -> list[Event]:
    """Return twelve long replies of an assistant, with a fact in the middle of some."""
    middle = REPLY.index("Point 22")
    texts = [f"{REPLY[:middle]}{fact} {REPLY[middle:]}" for fact in (*facts, *[""] * (12 - len(facts)))]
    return [MessageSent(text=text, imported=True) for text in texts]


def test_a_page_of_ten_long_replies_is_short() -> None:
    """A page has ten results and at most 3,500 characters, and the fact that was asked for is in one of them."""
    world = told(*replies("Roses like the south wall."))
    text, _ = call(world, "conversation_search", query="where do roses grow in the garden")
    assert text.startswith(f"Showing {PAGE_RESULTS} of ")
    assert len(text) <= 3500
    listed = json.loads(text.split("): ", 1)[1])
    assert len(listed) == PAGE_RESULTS
    assert any("Roses like the south wall." in one for one in listed)
    assert all("…" in one for one in listed if len(one) > PASSAGE_CHARS)


def test_a_message_that_is_shown_in_part_is_read_whole() -> None:
    """The id that the page shows gives the whole message, page by page; a short message is shown whole, without id."""
    world = told(*replies("Roses like the south wall."), UserMessage(text="Roses are red.", imported=True))
    text, _ = call(world, "conversation_search", query="roses")
    listed = json.loads(text.split("): ", 1)[1])
    (long,) = [one for one in listed if "wall" in one]
    assert [one.partition(", ")[2] for one in listed if "red" in one] == ["user - Roses are red."]
    shown = long.partition(", id: ")[2].partition(", ")[0]
    whole, ok = call(world, "memory_read", memory_id=shown)
    assert ok and "Roses like the south wall." in whole and ", assistant - Point 0" in whole
    assert whole.endswith("water and light.")
    assert call(world, "memory_read", memory_id=f" message {shown[1:]} ")[0] == whole
    refused, ok = call(world, "memory_read", memory_id=shown, page=3)
    assert not ok and "The text has 1 pages, 0 to 0, so there is no page 3." in refused


def test_a_text_of_many_pages_is_read_in_order() -> None:
    """The pages of a long text have all of its words in order, and each is short enough for a small window."""
    words = " ".join(f"word{number}" for number in range(2000))
    world = told(UserMessage(text=words, imported=True), ArchivalInserted(text=f"{words} end"))
    (message,) = [r for r in world.log() if r.text == words]
    (memory,) = [r for r in world.log() if r.type == "archival_inserted"]
    for key, ending in ((f"m{message.seq}", ""), (memory.event_id, " end")):
        read, page, pages = "", 0, 1
        while page < pages:
            text, _ = call(world, "memory_read", memory_id=key, page=page)
            where = text.partition("page ")[2].partition(",")[0]
            pages = int(where.partition("/")[2]) + 1
            part = text.partition(" - " if key.startswith("m") else "memory: ")[2]
            assert len(part) <= READ_CHARS
            read, page = f"{read} {part}".strip(), page + 1
        assert pages == 6
        assert read == words + ending


def test_a_memory_is_read_as_earlier_calls_left_it() -> None:
    """A memory that was changed or deleted by a call of the same reply is read so."""
    world = told(ArchivalInserted(text="The gold is under the oak."))
    (known,) = [record.event_id for record in world.log() if record.type == "archival_inserted"]
    read = ("memory_read", {"memory_id": known})
    change = ("archival_memory_update", {"memory_id": known, "content": "It is under the elm."})
    world.model.lines = [completion(calls=[read, change, read]), completion("Oh.")]
    left = asyncio.run(world.tell("go"))
    first, _, last = [event_of(record).text for record in left if record.type == "function_result"]
    assert first.endswith(", memory: The gold is under the oak.")
    assert last.endswith(", memory: It is under the elm.")


@pytest.mark.parametrize(
    "wrong", ["m999999", "m1", "0", "", "nonsense", "01a2062e-4324-70e4-84e3-cf5ebaa9da33", "m" * 99]
)
def test_an_unknown_id_is_refused_with_the_way_to_the_right_one(wrong: str) -> None:
    """The error says where ids are shown; records that are no messages cannot be read."""
    text, ok = call(told(), "memory_read", memory_id=wrong)
    assert not ok
    assert "A search shows the id of each text" in text


class Shelf(FakeArchive):
    """An archive with one document of seven parts."""

    async def search(self, wanted: ArchiveQuery, known: object = None) -> Page:
        self.asked.append(wanted)
        parts = [
            Hit(9, START, "archival", "", f"part {number}", "d0c", 0.0, source="almanac", document="tides.txt",
                part=number, parts=7)
            for number in range(1, 8)
        ]  # fmt: skip
        found = parts if wanted.memory == "d0c" else []
        return Page(len(found), 0, 0, found[wanted.first : wanted.first + wanted.count])


def test_a_document_is_read_by_its_parts() -> None:
    """A page has three parts; the id of a part begins at that part's page."""
    world = told(SourceAttached(source="almanac"), archive=Shelf(None))
    text, ok = call(world, "memory_read", memory_id="d0c")
    assert ok and text.endswith(", page 0/2, tides.txt: part 1\npart 2\npart 3")
    assert call(world, "memory_read", memory_id="D0C/5")[0].endswith("page 1/2, tides.txt: part 4\npart 5\npart 6")
    assert call(world, "memory_read", memory_id="d0c", page=2)[0].endswith("page 2/2, tides.txt: part 7")
    assert "so there is no page 3" in call(world, "memory_read", memory_id="d0c", page=3)[0]
    assert not call(world, "memory_read", memory_id="other")[1]


def test_documents_are_not_read_without_the_archive() -> None:
    """If the archive does not answer, the model is told so, and not that the document does not exist."""
    text, ok = call(told(SourceAttached(source="almanac"), archive=FakeArchive(None)), "memory_read", memory_id="d0c")
    assert not ok and "The archive does not answer" in text


def test_the_offline_model_reads_a_result_that_is_shown_in_part() -> None:
    """The id of a message is not quoted as its speaker."""
    lines = ["id: m12, Ann - … a memory: b …", "user - c"]
    listed = json.dumps([f"timestamp: 2026-01-01 09:00:00 AM UTC+0000, {line}" for line in lines])
    found = hits(CallResult("conversation_search", {}, True, f"Showing 2 of 2 results (page 0/0): {listed}"))
    assert [(hit.who, hit.text) for hit in found] == [("Ann", "… a memory: b …"), ("user", "c")]


def test_programs_get_the_whole_text_and_the_passage() -> None:
    """A hit has both; `shown` is the passage of a long text and the whole of a short one."""
    world = told(*replies("Roses like the south wall."), UserMessage(text="Roses are red.", imported=True))
    found = asyncio.run(world.system.view("sam").searcher().recall("roses", 0)).results
    short = next(hit for hit in found if hit.text == "Roses are red.")
    long = next(hit for hit in found if "south wall" in hit.text)
    assert short.shown == short.text and not short.passage
    assert long.shown == long.passage and len(long.passage) <= PASSAGE_CHARS
    assert {hit.agent for hit in found} == {"sam"}

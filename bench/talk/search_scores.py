"""Ask the questions of each kind of talk through the agent's own search, and score what it finds by the evidence.

Used by `bench.retrieval`. The conversations are imported into agents of one store; each agent is then loaded again as
`everlog send` loads it, and nothing is waited for or prepared before the first question. The floors are plain BM25,
bare cosine, and MemGPT's search: the whole question as one substring.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import msgspec

from bench.talk.floors import PlainMeaning, PlainWords
from bench.talk.talk_shapes import Conversation, TalkQuestion, lines
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.api import open_system
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Searcher
from everlog.actors.ports.real_clock import RealClock
from everlog.projections import HEAD
from everlog.store import FileStore
from everlog.store.embedding.embedder import embedder_of

RESULTS, RESULTS_MORE = 10, 20
"""Results that count; the second is for recall at 20, twice the first."""
PAGES = -(-RESULTS // PAGE_RESULTS)
"""Pages of the function that hold RESULTS results."""
WAYS = ("substring", "bm25", "cosine", "lexical", "hybrid")
FUNCTION = "conversation_search"

Find = Callable[[str], Sequence[str]]


class Scored(NamedTuple):
    """Scores of one list of results, each from 0 to 1."""

    recall_5: float
    recall_10: float
    recall_20: float
    ndcg_10: float
    precision_10: float
    any_10: float
    """1 if any of the evidence is among the first 10."""


class Tried(msgspec.Struct, frozen=True):
    """Scores of one question with one search method."""

    kind: str
    conversation: str
    category: str
    scores: Scored
    ms: float
    """CPU milliseconds of a page."""
    by_words: int = 0
    """Number of the agent's pages that words alone had found."""
    chars: int = 0
    """Characters that the model sees for the first RESULTS results; 0 where speakers have names."""


def scored(found: Sequence[str], gold: Sequence[str]) -> Scored:
    """Return the scores of refs in the order in which they were found."""
    wanted = set(gold)
    gain = sum(1 / math.log2(place + 2) for place, ref in enumerate(found[:RESULTS]) if ref in wanted)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(RESULTS, len(wanted))))
    five, ten, twenty = (len(wanted & set(found[:count])) for count in (5, RESULTS, RESULTS_MORE))
    many = len(wanted)
    return Scored(five / many, ten / many, twenty / many, gain / ideal, ten / RESULTS, float(ten > 0))


async def measure(
    root: Path, kinds: Mapping[str, Sequence[Conversation]], asked: Callable[[Conversation], Sequence[TalkQuestion]]
) -> dict[str, list[Tried]]:
    """Return the scores by search method. `asked` chooses the questions of a conversation."""
    tried: dict[str, list[Tried]] = {way: [] for way in WAYS}
    talks = [(kind, talk) for kind, some in kinds.items() for talk in some]
    async with open_system(root, runtime="local", timers=False) as system:
        for _, talk in talks:
            agent = await system.agent(talk.name, Settings(model="offline", window=1_000_000))
            await agent.import_messages(conversation(lines(talk), talk.name))
            await agent.unload()
    for kind, talk in talks:
        for way, one in [pair async for pair in _ask(root, kind, talk, asked(talk))]:
            tried[way].append(one)
    return tried


async def _ask(root: Path, kind: str, talk: Conversation, asked: Sequence[TalkQuestion]):  # type: ignore[no-untyped-def]
    """Yield, for each question about a conversation, the method and the scores of each method."""
    store = FileStore(root, RealClock().now)
    archive = local_archive(store, note=print)
    local = LocalSystem(store, services=AgentServices(archive=archive))
    floors = _floors(talk)
    try:
        async with local.agent(talk.name, create=False) as agent:
            with local.view(talk.name) as view:
                context = view.context()
                lexical = AgentSearcher(view.projections, talk.name, HEAD, context.config.zone)
                hybrid = agent.searcher(context, agent.turn + 1)
                for one in asked:
                    found = {way: _timed(find, one.question) for way, find in floors.items()}
                    for way, searcher in (("lexical", lexical), ("hybrid", hybrid)):
                        found[way] = await _pages(searcher, one.question)
                    chars = 0 if talk.messages[0].name else await _page_chars(hybrid, one.question)
                    for way, (refs, ms, by_words) in found.items():
                        seen = chars if way == "hybrid" else 0
                        scores = scored(refs, one.evidence)
                        yield way, Tried(kind, talk.name, one.category, scores, ms, by_words, seen)
    finally:
        await archive.close()


def _floors(talk: Conversation) -> Mapping[str, Find]:
    """Return the methods with which a search is compared."""
    words, meaning = PlainWords(talk), PlainMeaning(talk, embedder_of())

    def substring(query: str) -> Sequence[str]:
        return [one.ref for one in talk.messages if query.lower() in one.text.lower()]

    return {
        "substring": substring,
        "bm25": lambda query: words.find(query, RESULTS_MORE),
        "cosine": lambda query: meaning.find(query, RESULTS_MORE),
    }


def _timed(find: Find, question: str) -> tuple[Sequence[str], float, int]:
    begun = time.process_time()
    refs = find(question)
    return refs, (time.process_time() - begun) * 1000, 0


async def _pages(searcher: Searcher, question: str) -> tuple[Sequence[str], float, int]:
    """Return the refs of the first RESULTS_MORE results, CPU milliseconds for a page, and the pages by words alone
    among those of the first RESULTS.
    """
    begun = time.process_time()
    pages = [await searcher.recall(question, page, PAGE_RESULTS) for page in range(PAGES)]
    ms = (time.process_time() - begun) / PAGES * 1000
    more = await searcher.recall(question, 1, RESULTS_MORE - RESULTS)
    refs = [hit.ref for page in [*pages, more] for hit in page.results]
    return refs, ms, sum(not page.by_meaning for page in pages)


async def _page_chars(searcher: Searcher, question: str) -> int:
    """Return the characters that the model sees for the first RESULTS results, in as many pages as they take."""
    (search,) = (tool.function for tool in BUILTIN if tool.name == FUNCTION)
    desk = SimpleNamespace(searcher=searcher, zone="UTC")
    return sum([len(await search(desk, question, page)) for page in range(PAGES)])


def mean(tried: Sequence[Tried], field: str) -> float:
    """Return the mean of a score over questions."""
    return sum(getattr(one.scores, field) for one in tried) / max(len(tried), 1)


def of_kind(tried: Sequence[Tried], kind: str) -> Sequence[Tried]:
    """Return the questions of one kind of talk."""
    return [one for one in tried if one.kind == kind]


def groups(tried: Mapping[str, Sequence[Tried]]) -> Iterator[tuple[str, Mapping[str, Sequence[Tried]]]]:
    """Yield each kind, then each category and each conversation of it, with its questions by method."""
    for kind in dict.fromkeys(one.kind for one in tried["hybrid"]):
        own = {way: of_kind(some, kind) for way, some in tried.items()}
        yield kind, own
        for field in ("category", "conversation"):
            for group in sorted({getattr(one, field) for one in own["hybrid"]}):
                named = {way: [one for one in some if getattr(one, field) == group] for way, some in own.items()}
                yield f"{kind} {group}" if field == "category" else group, named

"""Write the long replies of a scripted assistant: explanations, lists, plans, tables and code about a topic's words.

Used by `assistant_talk`. A reply says nothing about the user, except where it takes up a value that the user named: so
it is never evidence, and often the best match for a search by words.
"""

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from bench.talk.vocabulary import TalkTopic, Vocabulary, filled

CHARS_MIN, CHARS_MAX = 200, 2500
"""Characters of a reply in English, both roughly."""
OWN, OF_THINGS = 0.5, 0.4
"""Parts of the sentences: those about the exchange's own words, and those about a thing that the user speaks of."""
SNIPPETS = (
    (
        "```python\ndef {f}({g}: str, retries: int = 3) -> dict[str, str]:\n    for attempt in range(retries):\n"
        "        result = client.get({g})\n        if result.ok:\n            return result.json()\n"
        '    raise RuntimeError("{f} failed")\n```'
    ),
    (
        "```sql\nSELECT id, {f}, count(*) AS n\nFROM {g}\nWHERE created_at > now() - interval '7 days'\n"
        "GROUP BY id, {f}\nORDER BY n DESC\nLIMIT 20;\n```"
    ),
    (
        "```yaml\nservices:\n  {f}:\n    image: registry.local/{g}:latest\n    restart: always\n    environment:\n"
        "      LOG_LEVEL: info\n```"
    ),
    "```bash\nset -euo pipefail\n./{f} --dry-run > {g}.log 2>&1\ngrep -c ERROR {g}.log || true\n```",
)
"""Code of the topics that have code. {f} and {g} are names made of nouns."""


class Subject(msgspec.Struct, frozen=True):
    """Words that one exchange is about."""

    n: str
    m: str
    a: str
    topic: TalkTopic
    things: Sequence[str]
    """Things of which the user speaks in this topic."""

    def slots(self) -> dict[str, str]:
        """Return the words as slots of templates."""
        return {"n": self.n, "m": self.m, "a": self.a}


def subject(rng: random.Random, topic: TalkTopic, things: Sequence[str]) -> Subject:
    """Return two nouns and an action of a topic."""
    n, m = rng.sample(topic.nouns, 2)
    return Subject(n, m, rng.choice(topic.actions), topic, things)


def long_reply(
    rng: random.Random, words: Vocabulary, about: Subject, takes_up: Sequence[str] = (), says: str = ""
) -> str:
    """Return a reply about a subject. It begins with the sentences `takes_up`, and contains the sentence `says`."""
    chars = words.density * max(CHARS_MIN, min(CHARS_MAX, rng.lognormvariate(6.9, 0.6)))
    blocks = [words.joint.join([*takes_up, filled(rng.choice(words.openings), **about.slots())])]
    if says and rng.random() < 0.5:
        blocks.append(says)
        says = ""
    while sum(map(len, blocks)) < chars or says:
        blocks.append(rng.choice(_styles(about.topic))(rng, words, about))
        if says and rng.random() < 0.6:
            blocks.append(says)
            says = ""
    if rng.random() < 0.6:
        blocks.append(filled(rng.choice(words.closings), **about.slots()))
    return "\n\n".join(blocks)


def _styles(topic: TalkTopic) -> Sequence[Callable[[random.Random, Vocabulary, Subject], str]]:
    return (_paragraph, _paragraph, _list, _list, _plan, _table, *([_code] * 2 if topic.code else []))


def _tips(rng: random.Random, words: Vocabulary, about: Subject, count: int) -> Iterator[str]:
    """Yield sentences about the exchange's own words, about the topic's, and about things that the user speaks of."""
    for template in rng.sample(words.tips, count):
        one = about if rng.random() < OWN else subject(rng, about.topic, about.things)
        if about.things and rng.random() < OF_THINGS:
            yield filled(rng.choice(words.about), v=rng.choice(about.things), **one.slots())
        else:
            yield filled(template, **one.slots())


def _paragraph(rng: random.Random, words: Vocabulary, about: Subject) -> str:
    return words.joint.join(_tips(rng, words, about, rng.randint(2, 4)))


def _list(rng: random.Random, words: Vocabulary, about: Subject) -> str:
    count = rng.randint(3, 6)
    heads = rng.sample(words.headings, count)
    return "\n".join(
        f"{number}. **{filled(head, **about.slots())}**: {tip}"
        for number, (head, tip) in enumerate(zip(heads, _tips(rng, words, about, count), strict=True), 1)
    )


def _plan(rng: random.Random, words: Vocabulary, about: Subject) -> str:
    head = filled(rng.choice(words.headings), **about.slots())
    return "\n".join([f"### {head}", *(f"- {tip}" for tip in _tips(rng, words, about, rng.randint(2, 4)))])


def _table(rng: random.Random, words: Vocabulary, about: Subject) -> str:
    nouns = rng.sample(about.topic.nouns, rng.randint(2, 4))
    rows = [f"| {noun} | {rng.choice(words.table_cells)} | {rng.choice(words.table_cells)} |" for noun in nouns]
    return "\n".join([rng.choice(words.tables), "|---|---|---|", *rows])


def _code(rng: random.Random, _words: Vocabulary, about: Subject) -> str:
    f, g = ("_".join(noun.lower().split()) for noun in rng.sample(about.topic.nouns, 2))
    return rng.choice(SNIPPETS).replace("{f}", f).replace("{g}", g)

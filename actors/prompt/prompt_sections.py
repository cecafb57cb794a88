"""The system prompt as a list of sections: what it may be, what it gives, and how a person changes it. Pure.

A section is plain text or a template. What a template gave when the agent was set up is recorded with it, and holds
until something that it may show is another: the model, its window, the zone, or the functions.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.ports.agent_constants import SECTION_CHARS_MAX, SECTIONS_MAX
from everlog.actors.prompt.presets import BETWEEN
from everlog.events import AgentConfigured, BadInput, Section

_SIGNS = re.compile(r"\{\{|\{%|\{#")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SET = re.compile(r'\{%[-+]?\s*set\s+(\w+)\s*=\s*"(?:[^"\\]|\\.)*"\s*[-+]?%\}')
"""A variable that was written into a template."""
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
FACTS = ("agent", "model", "window", "zone", "functions", "blocks")
"""What everlog tells a template."""


class SectionAgent(Protocol):
    """What is asked of an agent."""

    agent_id: str

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...


class TemplateContext(msgspec.Struct, frozen=True):
    """What a template may show of an agent."""

    agent: str
    blocks: Sequence[Mapping[str, Any]]
    """Of each block its label, description, limit, and whether it is read_only."""


def facts_of(agent_id: str, blocks: Iterable[Mapping[str, Any]]) -> TemplateContext:
    """The facts of an agent with these blocks."""
    keys = ("label", "description", "limit", "read_only")
    return TemplateContext(agent_id, [{key: block[key] for key in keys} for block in blocks])


async def template_facts(
    agent: SectionAgent, given: Sequence[Section] | None, recorded: AgentConfigured | None
) -> TemplateContext:
    """The facts of an agent now; nothing is asked where there is nothing to render."""
    templates = given or (recorded is not None and recorded.sections)
    return facts_of(agent.agent_id, await agent.rows("core_memory") if templates else ())


def system_prompt(configured: AgentConfigured, schemas: Iterable[str], facts: TemplateContext) -> str:
    """The system prompt: what the visible sections of `configured` give. Raises BadInput, with the section and line.

    `schemas`: the JSON schema texts of its functions.
    """
    known = {
        "agent": facts.agent,
        "model": configured.model,
        "window": configured.window,
        "zone": configured.zone,
        "functions": [_function(schema) for schema in schemas],
        "blocks": list(facts.blocks),
    }
    given = [_render(section, known) for section in configured.sections]
    shown = [text for section, text in zip(configured.sections, given, strict=True) if section.visible and text]
    return BETWEEN.join(shown)


def _render(section: Section, known: Mapping[str, Any]) -> str:
    """What a section gives. Jinja is imported by whom it is needed for."""
    text = section.text.replace("\r\n", "\n")
    if _SIGNS.search(text):
        from everlog.actors.prompt import templates

        text = templates.rendered(msgspec.structs.replace(section, text=text), known)
    return text.strip("\n")


def _function(schema: str) -> Mapping[str, str]:
    known = msgspec.json.decode(schema)
    return {"name": known["name"], "description": known.get("description", "")}


def has_changed_facts(configured: AgentConfigured, recorded: AgentConfigured) -> bool:
    """Whether what templates show of `configured` is not what it was when `recorded` was made."""
    return any(
        getattr(configured, name) != getattr(recorded, name) for name in ("model", "window", "zone", "functions")
    )


def check_sections(sections: Sequence[Section]) -> list[Section]:
    """The sections as they may be recorded. Raises BadInput."""
    names = [section.name for section in sections]
    if len(names) > SECTIONS_MAX:
        raise BadInput(f"A system prompt has {SECTIONS_MAX} sections at most, not {len(names)}. Nothing was changed.")
    for section in sections:
        if not _NAME.fullmatch(section.name):
            raise BadInput(
                f"A section's name is up to 64 letters, digits, - and _, and begins with a letter, not "
                f"{section.name[:80]!r}. Nothing was changed."
            )
        if names.count(section.name) > 1:
            raise BadInput(f"There are two sections named {section.name!r}; each has a name of its own.")
        if len(section.text) > SECTION_CHARS_MAX:
            raise BadInput(
                f"The section {section.name!r} has {len(section.text):,} characters, and may have "
                f"{SECTION_CHARS_MAX:,}. Nothing was changed."
            )
    return list(sections)


def of(configured: AgentConfigured) -> list[Section]:
    """The sections of an agent; the whole prompt as one, `custom`, where it was given as a text.

    That of a preset is what was recorded, whatever is shipped today: its sections are those of today only where they
    give that text.
    """
    from everlog.actors.prompt import presets

    if configured.sections:
        return list(configured.sections)
    if configured.preset in presets.names("system") and presets.system(configured.preset) == configured.text:
        return presets.sections(configured.preset)
    return [Section("custom", raw(configured.text))]


def raw(text: str) -> str:
    """A text as a template that gives it."""
    if not _SIGNS.search(text):
        return text
    return re.sub(r"\{[{%#]", lambda sign: '{{ "' + sign[0] + '" }}', text)


def with_variables(sections: Sequence[Section], variables: Mapping[str, str]) -> list[Section]:
    """The sections with a user's own variables written into those templates that name them, on their first line.

    So what is recorded needs nothing beside itself. A value that was written there before gives way to the new one.
    Raises BadInput for a name that cannot be, or that none names.
    """
    for name in variables:
        if not _VARIABLE.fullmatch(name) or name in FACTS:
            raise BadInput(
                f"A variable's name is letters, digits and _, begins with a letter, and is none of {', '.join(FACTS)}; "
                f"{name[:80]!r} cannot be one."
            )
    used: set[str] = set()
    made = []
    for section in sections:
        text = _unset(section.text, variables)
        names = [name for name in variables if _SIGNS.search(text) and _names(text, name)]
        used.update(names)
        head = "".join([f"{{% set {name} = {_quoted(variables[name])} %}}" for name in names])
        made.append(msgspec.structs.replace(section, text=head + text))
    if unused := [name for name in variables if name not in used]:
        raise BadInput(f"No section names the variable {unused[0]!r}: it would be lost. Nothing was changed.")
    return made


def _unset(text: str, variables: Mapping[str, str]) -> str:
    """The template without those of the values at its very beginning that these variables replace."""
    kept = ""
    while begins := _SET.match(text):
        kept += "" if begins[1] in variables else begins[0]
        text = text[begins.end() :]
    return kept + text


def _names(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _at(sections: Sequence[Section], name: str) -> int:
    for place, section in enumerate(sections):
        if section.name == name:
            return place
    names = ", ".join(section.name for section in sections)
    raise BadInput(f"The prompt has no section {name!r}; it has {names}. Nothing was changed.")


def add_section(sections: Sequence[Section], section: Section, place: int | None) -> list[Section]:
    """With one more section, at a place from 1; None: at the end. Raises BadInput where there is one of that name."""
    if any(known.name == section.name for known in sections):
        raise BadInput(
            f"The prompt has a section {section.name!r} already; `everlog prompt set` gives it another text."
        )
    left = list(sections)
    left.insert(len(left) if place is None else _place(place, len(left) + 1), section)
    return left


def reworded(sections: Sequence[Section], name: str, text: str) -> list[Section]:
    """With another template in a section."""
    left = list(sections)
    at = _at(left, name)
    left[at] = msgspec.structs.replace(left[at], text=text)
    return left


def move_section(sections: Sequence[Section], name: str, place: int) -> list[Section]:
    """With a section at another place, from 1."""
    left = list(sections)
    section = left.pop(_at(left, name))
    left.insert(_place(place, len(sections)), section)
    return left


def shown(sections: Sequence[Section], name: str, *, visible: bool) -> list[Section]:
    """With a section shown, or kept and not shown."""
    left = list(sections)
    at = _at(left, name)
    left[at] = msgspec.structs.replace(left[at], visible=visible)
    return left


def removed(sections: Sequence[Section], name: str) -> list[Section]:
    """Without a section. Raises BadInput for the last one."""
    left = list(sections)
    left.pop(_at(left, name))
    if not left:
        raise BadInput(
            f"{name!r} is the only section: a prompt has one at least. `everlog prompt reset` takes a preset."
        )
    return left


def _place(place: int, places: int) -> int:
    if not 1 <= place <= places:
        raise BadInput(f"A place is a number from 1 to {places}, not {place}. Nothing was changed.")
    return place - 1


def render_section(
    configured: AgentConfigured, section: Section, schemas: Iterable[str], facts: TemplateContext
) -> str:
    """What one section gives, whether or not it is shown."""
    alone = msgspec.structs.replace(section, visible=True)
    return system_prompt(msgspec.structs.replace(configured, sections=[alone]), schemas, facts)

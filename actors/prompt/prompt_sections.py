"""System prompt as a list of sections: check, render and edit the sections. Pure.

A section is plain text or a template. The output of a template is recorded at configuration, and holds until a fact
that it may show changes: the model, its window, the zone, or the functions. Used by `Agent` and `agent_setup.py`, and
by the commands that edit sections.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.ports.agent_constants import SECTION_CHARS_MAX, SECTIONS_MAX
from everlog.actors.prompt.presets import BETWEEN
from everlog.events import AgentConfigured, BadInput, Section
from everlog.store import bare_name

_SIGNS = re.compile(r"\{\{|\{%|\{#")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SET = re.compile(r'\{%[-+]?\s*set\s+(\w+)\s*=\s*"(?:[^"\\]|\\.)*"\s*[-+]?%\}')
"""Matches a variable that was written into a template."""
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
FACTS = ("agent", "model", "window", "zone", "functions", "blocks")
"""Facts that everlog passes to a template."""


class SectionAgent(Protocol):
    """Interface of the agent that this module uses."""

    agent_id: str

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...


class TemplateContext(msgspec.Struct, frozen=True):
    """Facts of an agent that a template may show."""

    agent: str
    blocks: Sequence[Mapping[str, Any]]
    """Label, description, limit and read_only of each block."""


def facts_of(agent_id: str, blocks: Iterable[Mapping[str, Any]]) -> TemplateContext:
    """Return the facts of an agent with these blocks."""
    keys = ("label", "description", "limit", "read_only")
    return TemplateContext(bare_name(agent_id), [{key: block[key] for key in keys} for block in blocks])


async def template_facts(
    agent: SectionAgent, given: Sequence[Section] | None, recorded: AgentConfigured | None
) -> TemplateContext:
    """Return the current facts of an agent; nothing is queried if there is nothing to render."""
    templates = given or (recorded is not None and recorded.sections)
    return facts_of(agent.agent_id, await agent.rows("core_memory") if templates else ())


def system_prompt(configured: AgentConfigured, schemas: Iterable[str], facts: TemplateContext) -> str:
    """Render the visible sections of `configured`. Raise BadInput, naming the section and line.

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
    """Render a section. Jinja is imported only for a section that is a template."""
    text = section.text.replace("\r\n", "\n")
    if _SIGNS.search(text):
        from everlog.actors.prompt import templates

        text = templates.rendered(msgspec.structs.replace(section, text=text), known)
    return text.strip("\n")


def _function(schema: str) -> Mapping[str, str]:
    known = msgspec.json.decode(schema)
    return {"name": known["name"], "description": known.get("description", "")}


def has_changed_facts(configured: AgentConfigured, recorded: AgentConfigured) -> bool:
    """Return True if facts that templates may show differ between `configured` and `recorded`."""
    return any(
        getattr(configured, name) != getattr(recorded, name) for name in ("model", "window", "zone", "functions")
    )


def check_sections(sections: Sequence[Section]) -> list[Section]:
    """Return the sections if they may be recorded. Raise BadInput."""
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
    """Return the sections of an agent; a prompt that was given as a text is one section, `custom`.

    The prompt of a preset is what was recorded, even if the shipped preset changed since: the sections of the shipped
    preset are returned only if they give the recorded text.
    """
    from everlog.actors.prompt import presets

    if configured.sections:
        return list(configured.sections)
    if configured.preset in presets.names("system") and presets.system(configured.preset) == configured.text:
        return presets.sections(configured.preset)
    return [Section("custom", raw(configured.text))]


def raw(text: str) -> str:
    """Escape a text as a template that renders to it."""
    if not _SIGNS.search(text):
        return text
    return re.sub(r"\{[{%#]", lambda sign: '{{ "' + sign[0] + '" }}', text)


def with_variables(sections: Sequence[Section], variables: Mapping[str, str]) -> list[Section]:
    """Write a user's variables into the templates that name them, on their first line.

    So the recorded sections need nothing else. A value that was written there before is replaced. Raises BadInput for
    an invalid name, or a name that no section uses.
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
        text = _without_replaced_variables(section.text, variables)
        names = [name for name in variables if _SIGNS.search(text) and _names(text, name)]
        used.update(names)
        head = "".join([f"{{% set {name} = {_quoted(variables[name])} %}}" for name in names])
        made.append(msgspec.structs.replace(section, text=head + text))
    if unused := [name for name in variables if name not in used]:
        raise BadInput(f"No section names the variable {unused[0]!r}: it would be lost. Nothing was changed.")
    return made


def _without_replaced_variables(text: str, variables: Mapping[str, str]) -> str:
    """Remove from the beginning of a template the values of variables that are replaced."""
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
    """Add a section, at a place from 1 or (None) at the end. Raise BadInput if the name is taken."""
    if any(known.name == section.name for known in sections):
        raise BadInput(
            f"The prompt has a section {section.name!r} already; `everlog prompt set` gives it another text."
        )
    left = list(sections)
    left.insert(len(left) if place is None else _place(place, len(left) + 1), section)
    return left


def reworded(sections: Sequence[Section], name: str, text: str) -> list[Section]:
    """Replace the text of a section."""
    left = list(sections)
    at = _at(left, name)
    left[at] = msgspec.structs.replace(left[at], text=text)
    return left


def move_section(sections: Sequence[Section], name: str, place: int) -> list[Section]:
    """Move a section to another place, from 1."""
    left = list(sections)
    section = left.pop(_at(left, name))
    left.insert(_place(place, len(sections)), section)
    return left


def shown(sections: Sequence[Section], name: str, *, visible: bool) -> list[Section]:
    """Show a section, or hide it."""
    left = list(sections)
    at = _at(left, name)
    left[at] = msgspec.structs.replace(left[at], visible=visible)
    return left


def removed(sections: Sequence[Section], name: str) -> list[Section]:
    """Remove a section. Raise BadInput for the last one."""
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
    """Render one section, even if it is hidden."""
    alone = msgspec.structs.replace(section, visible=True)
    return system_prompt(msgspec.structs.replace(configured, sections=[alone]), schemas, facts)

"""Make settings from the arguments of `args_shared.settings`, for every command that has them. Files are read here.

Used by `bootstrap`, `everlog configure` and `everlog prompt`.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock, block_text
from everlog.actors.prompt import presets, prompt_sections, setting_limits
from everlog.actors.rules import rule_checks
from everlog.actors.rules.approval_rules import rule_of
from everlog.events import BadInput, Section
from everlog.store import name_of

TextReader = Callable[[str], str]
"""Return the text of a file. Raises BadInput."""
_PLAIN = (
    "calling", "stream", "summarizer", "fallback", "first_attempts_max", "monologue_chars_max", "steps_max",
    "keep_last", "day_tokens_max", "pressure_fraction", "summary_fraction", "day_cost_max",
    "deriver", "reflect_at", "approval_s", "rounds", "answer_minutes", "manager", "background", "background_turns",
    "background_idle",
)  # fmt: skip
_LISTS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "optional_functions": ("optional_functions", str),
    "labels": ("labels", str),
    "members": ("members", str),
    "approvals": ("approval", rule_of),
    "rules": ("function_rules", rule_checks.rule_of),
}
"""Settings that are lists: option that replaces the list, with the word `none` alone by an empty one, and the function
that makes an item of a text.
"""
_ENDINGS = (".md", ".txt")
SECTION_FILES_MAX = 1000


def settings_in(args: Namespace, read: TextReader) -> dict[str, Any]:
    """Return the settings that the arguments name; empty for a command without such arguments. Raises BadInput."""
    found = {name: value for name in _PLAIN if (value := getattr(args, name, None)) is not None}
    if words := getattr(args, "sampling", None):
        found["sampling"] = setting_limits.sampling(words)
    for setting, (option, made) in _LISTS.items():
        if texts := getattr(args, option, None):
            found[setting] = [] if texts == ["none"] else [made(text) for text in texts]
    if prompt := _sections(args, read):
        found["sections"] = prompt
    return found


def _sections(args: Namespace, read: TextReader) -> list[Section]:
    """Return the sections of the folder --sections, then those of --section, which replace sections of the same
    name.
    """
    files = getattr(args, "section", None) or []
    folder = getattr(args, "sections", None)
    variables = variables_of(getattr(args, "var", None))
    found = {section.name: section for section in (_folder(folder, read) if folder is not None else [])}
    for word in files:
        name, _, path = word.partition("=")
        found[name] = Section(name, read(path))
    if variables and not found:
        raise BadInput("--var sets variables of sections in the same command: give --section or --sections too.")
    return prompt_sections.with_variables(list(found.values()), variables)


def variables_of(words: Iterable[str] | None) -> dict[str, str]:
    """Return the variables of --var NAME=VALUE. Raises BadInput for a name that is given twice."""
    found: dict[str, str] = {}
    for word in words or ():
        name, _, value = word.partition("=")
        if name in found:
            raise BadInput(f"--var {name}: the name is given twice.")
        found[name] = value
    return found


def _folder(folder: str, read: TextReader) -> list[Section]:
    """Return a section for each .md or .txt file of a folder, in the order of their names.

    Digits at the beginning of a file name only order the files; they are not part of the section's name.
    """
    path = Path(folder).expanduser()
    try:
        files = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS)
    except OSError as error:
        raise BadInput(f"--sections {folder}: the folder cannot be read: {error.strerror}.") from error
    if not files or len(files) > SECTION_FILES_MAX:
        raise BadInput(
            f"--sections {folder}: the folder has {len(files)} files that end in .md or .txt; expected 1 to "
            f"{SECTION_FILES_MAX:,}."
        )
    made = [Section(file.stem.lstrip("0123456789").lstrip("-_ ") or file.stem, read(str(file))) for file in files]
    for number, section in enumerate(made):
        if any(other.name == section.name for other in made[:number]):
            raise BadInput(f"--sections {folder}: two files give the section {section.name!r}. Rename one of them.")
    return made


def describe_blocks(blocks: dict[str, InitialBlock], chosen: Mapping[str, str], args: Namespace) -> None:
    """Set in `blocks` what --block-description, --block-read-only and --block-items say of them. Raises BadInput."""
    for word in getattr(args, "block_description", None) or ():
        label, _, text = word.partition("=")
        blocks[label] = msgspec.structs.replace(
            _block(label, blocks, chosen, args, "--block-description"), description=text
        )
    for label in getattr(args, "block_read_only", None) or ():
        blocks[label] = msgspec.structs.replace(
            _block(label, blocks, chosen, args, "--block-read-only"), read_only=True
        )
    for label in getattr(args, "block_items", None) or ():
        block = _block(label, blocks, chosen, args, "--block-items")
        items = tuple(line for line in block_text(block).splitlines() if line.strip())
        blocks[label] = msgspec.structs.replace(block, value=items)


def _block(
    label: str, blocks: Mapping[str, InitialBlock], chosen: Mapping[str, str], args: Namespace, option: str
) -> InitialBlock:
    """Return the block of a label; persona and human exist in every agent, as the chosen preset. Raises BadInput."""
    if label in blocks:
        return blocks[label]
    if label == "persona":
        return InitialBlock(label, presets.persona(chosen.get(label, "sam"), name_of(args.name)))
    if label == "human":
        return InitialBlock(label, presets.human(chosen.get(label, "basic")))
    raise BadInput(f"{option} {label}: the agent gets no block {label!r}; add one with --block {label}=FILE.")

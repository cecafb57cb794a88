"""From arguments to settings: those of `args_shared.settings`, wherever a command has them. Files are read here."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock
from everlog.actors.prompt import presets, prompt_sections, setting_limits
from everlog.events import BadInput, Section

TextReader = Callable[[str], str]
"""The text of a file. Raises BadInput."""
_PLAIN = (
    "calling", "stream", "summarizer", "fallback", "first_attempts_max", "monologue_chars_max", "steps_max",
    "keep_last", "day_tokens_max", "pressure_fraction", "summary_fraction", "day_cost_max",
)  # fmt: skip
_ENDINGS = (".md", ".txt")
SECTION_FILES_MAX = 1000


def settings_in(args: Namespace, read: TextReader) -> dict[str, Any]:
    """The settings that the arguments name; a command that has no such argument names none. Raises BadInput."""
    found = {name: value for name in _PLAIN if (value := getattr(args, name, None)) is not None}
    if words := getattr(args, "sampling", None):
        found["sampling"] = setting_limits.sampling(words)
    if prompt := _sections(args, read):
        found["sections"] = prompt
    return found


def _sections(args: Namespace, read: TextReader) -> list[Section]:
    """The sections of --sections, then those of --section; one of a name that was there takes its place."""
    files = getattr(args, "section", None) or []
    folder = getattr(args, "sections", None)
    variables = variables_of(getattr(args, "var", None))
    found = {section.name: section for section in (_folder(folder, read) if folder is not None else [])}
    for word in files:
        name, _, path = word.partition("=")
        found[name] = Section(name, read(path))
    if variables and not found:
        raise BadInput("--var is for sections that are given with it: --section or --sections.")
    return prompt_sections.with_variables(list(found.values()), variables)


def variables_of(words: Iterable[str] | None) -> dict[str, str]:
    """The variables of --var NAME=VALUE. Raises BadInput for one that is given twice."""
    found: dict[str, str] = {}
    for word in words or ():
        name, _, value = word.partition("=")
        if name in found:
            raise BadInput(f"--var {name}: it was given twice.")
        found[name] = value
    return found


def _folder(folder: str, read: TextReader) -> list[Section]:
    """Its files that end in .md or .txt, in the order of their names; digits before a name are its place alone."""
    path = Path(folder).expanduser()
    try:
        files = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS)
    except OSError as error:
        raise BadInput(f"--sections {folder}: it cannot be read: {error.strerror}.") from error
    if not files or len(files) > SECTION_FILES_MAX:
        raise BadInput(f"--sections {folder}: it has {len(files)} files that end in .md or .txt.")
    made = [Section(file.stem.lstrip("0123456789").lstrip("-_ ") or file.stem, read(str(file))) for file in files]
    for number, section in enumerate(made):
        if any(other.name == section.name for other in made[:number]):
            raise BadInput(f"--sections {folder}: two files give a section named {section.name!r}.")
    return made


def describe_blocks(blocks: dict[str, InitialBlock], chosen: Mapping[str, str], args: Namespace) -> None:
    """Add to the blocks of a new agent what --block-description and --block-read-only say of them. Raises BadInput."""
    for word in getattr(args, "block_description", None) or ():
        label, _, text = word.partition("=")
        blocks[label] = msgspec.structs.replace(_block(label, blocks, chosen, "--block-description"), description=text)
    for label in getattr(args, "block_read_only", None) or ():
        blocks[label] = msgspec.structs.replace(_block(label, blocks, chosen, "--block-read-only"), read_only=True)


def _block(label: str, blocks: Mapping[str, InitialBlock], chosen: Mapping[str, str], option: str) -> InitialBlock:
    """The block that is meant; a shipped persona or human with its text."""
    if label in blocks:
        return blocks[label]
    if label == "persona":
        return InitialBlock(label, presets.persona(chosen.get(label, "sam")))
    if label == "human":
        return InitialBlock(label, presets.human(chosen.get(label, "basic")))
    raise BadInput(f"{option} {label}: there is no such block; give it with --block {label}=FILE.")

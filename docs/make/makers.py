"""Know which maker fills which block, and fill all blocks of a page."""

from collections.abc import Mapping
from pathlib import Path

from docs.make import from_catalogue, from_parser, from_source, from_variables
from docs.make.blocks import Maker, filled

MAKERS: Mapping[str, Maker] = {
    "the parser": from_parser.command_block,
    "the options of": from_parser.group_block,
    "the commands": from_parser.list_block,
    "the source": from_source.definition_block,
    "the events": from_source.events_block,
    "the variables": from_variables.variables_block,
    "the catalogue": from_catalogue.view_block,
}
"""Each source that a block can name."""


def made(page: Path) -> str:
    """Return the text of a page with every block made again."""
    return filled(page.read_text(encoding="utf-8"), MAKERS)

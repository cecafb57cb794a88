"""The command `explain`: pages about errors, in the terminal.

Loaded by name from `interfaces/cli/args_operate.py`; `docs/make_errors.py` uses its pages. A test requires one page for
each error type.
"""

import difflib
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from everlog.events import BadInput
from everlog.events.errors import code_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.explain import model_pages, service_pages, store_pages, usage_pages
from everlog.interfaces.explain.error_page import ErrorPage

PAGES = (*usage_pages.PAGES, *store_pages.PAGES, *model_pages.PAGES, *service_pages.PAGES)
"""A page for every error type."""

MESSAGES = Path(__file__).with_name("example_messages.toml")
"""Message of each example by the code of its page. Written by `python -m docs.make_errors`, which runs the examples."""


@cache
def messages() -> Mapping[str, str]:
    """Return the message of each example by the code of its page."""
    found: Mapping[str, str] = tomllib.loads(MESSAGES.read_text(encoding="utf-8"))
    return found


def explain(args: Namespace, _world: CommandEnvironment) -> int:
    """Run the command `explain`. Return its exit code."""
    from everlog.interfaces.explain.page_text import PageText
    from everlog.interfaces.output.terminal_output import console

    if args.code and args.all:
        args.fail("give either a CODE or --all")
    out = PageText(console())
    if args.code:
        out.page(page_of(args.code), messages())
    elif args.all:
        for page in PAGES:
            out.page(page, messages())
    else:
        out.index(PAGES)
    return 0


def page_of(code: str) -> ErrorPage:
    """Return the page of an error, by its code or by the name of its type. Raises BadInput with similar codes."""
    pages = {page.code: page for page in PAGES}
    wanted = code_of(code) if code.isalpha() else code.lower().replace("_", "-")
    if wanted in pages:
        return pages[wanted]
    near = difflib.get_close_matches(wanted, pages, 3, 0.5)
    maybe = f"Did you mean {', '.join(near[:-1])}{' or ' if near[1:] else ''}{near[-1]}? " if near else ""
    raise BadInput(f"There is no error {code!r}. {maybe}`everlog explain` lists all errors.")

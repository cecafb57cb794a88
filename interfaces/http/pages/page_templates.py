"""Make the environment in which pages are rendered: every value is escaped, and a value that is missing is an error.

Used by the page that shows the API, and by the console.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


class PageTemplates:
    """Templates of a folder. Thread-safe."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def compile(self, *names: str) -> None:
        """Compile templates that a page will need, if they are not compiled yet: some take as long as a query."""
        for name in names:
            self._environment.get_template(name)

    def render(self, name: str, **values: Any) -> str:
        """Return a page of a template."""
        return self._environment.get_template(name).render(values)


def templates_in(folder: Path, filters: Mapping[str, Callable[..., Any]] = {}) -> PageTemplates:
    """Return the templates of a folder."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(filters)
    return PageTemplates(environment)

"""Make the environment in which pages are rendered: every value is escaped, and a value that is missing is an error.

Used by the page that shows the API, and by the console.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_in(folder: Path, filters: Mapping[str, Callable[..., Any]] = {}) -> Callable[..., str]:
    """Return a function that renders a template of a folder, by its name, with values."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(filters)

    def render(template: str, **values: Any) -> str:
        return environment.get_template(template).render(values)

    return render

"""Ways to break a guard of the store: something is replaced while a context is open."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from everlog.store.base import disk as real

Break = Callable[[], AbstractContextManager[object]]
BREAKS: dict[str, tuple[str, Break]] = {}
"""By name: what the guard is for, and how it is broken."""


class Changed:
    """Something, with some of its attributes replaced."""

    def __init__(self, inner: Any, **changes: Any) -> None:
        self._inner = inner
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return self._changes[name] if name in self._changes else getattr(self._inner, name)


def nothing(*_: object, **__: object) -> None:
    """Do nothing, whatever is asked for."""


def guard(name: str, why: str) -> Callable[[Break], Break]:
    """Add a way to break the guard `name` to the list."""

    def add(breaks: Break) -> Break:
        BREAKS[name] = (why, breaks)
        return breaks

    return add


def instead(owner: object, name: str, make: Callable[[Any], Any]) -> AbstractContextManager[object]:
    """While open, `owner.name` is what `make` makes of it."""
    return patch.object(owner, name, make(getattr(owner, name)))


@contextmanager
def together(parts: Sequence[AbstractContextManager[object]]) -> Iterator[None]:
    """Several at once."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part)
        yield


def publishing(change: Callable[[Any], Any], *modules: Any) -> AbstractContextManager[None]:
    """While open, `publish` as those modules know it works on a disk that `change` makes of the real one."""

    def make(publish: Any) -> Any:
        return lambda disk, *args, **kwargs: publish(change(disk), *args, **kwargs)

    return together([instead(module, "publish", make) for module in modules])


def without_sync(disk: Any) -> Any:
    """A disk whose new files are never synced."""
    return Changed(disk, create=lambda path: Changed(disk.create(path), sync=nothing))


def without_sync_dir(disk: Any) -> Any:
    """A disk whose names are never synced."""
    return Changed(disk, sync_dir=nothing)


def overwriting(disk: Any) -> Any:
    """Return a disk whose `link` replaces an existing name."""

    def link(source: Path, target: Path) -> None:
        real.remove_if_there(disk, target)
        disk.link(source, target)

    return Changed(disk, link=link)

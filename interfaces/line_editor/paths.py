"""Suggest paths of files for the argument of a command.

Used by the prompt of `everlog chat`. It reads folders only, and suggests nothing for one that cannot be read.
"""

from pathlib import Path

from everlog.interfaces.line_editor.completion import Suggestion

PATHS_MAX = 100
"""Most paths that are suggested at once."""


def path_suggestions(typed: str) -> list[Suggestion]:
    """Return the files and folders whose path begins with `typed`; hidden ones only if its last part begins with a
    dot.
    """
    folder, _, begun = typed.rpartition("/")
    place = Path(f"{folder}/" if "/" in typed else ".").expanduser()
    try:
        names = sorted((path.name, path.is_dir()) for path in place.iterdir() if path.name.startswith(begun))
    except OSError:  # no such folder, or none that this person may read
        return []
    shown = [(name, is_folder) for name, is_folder in names if begun.startswith(".") or not name.startswith(".")]
    return [Suggestion(f"{name}/" if is_folder else name, len(begun)) for name, is_folder in shown[:PATHS_MAX]]

"""Messages that are not typed at the prompt: written in the user's editor, or read from a file.

Used by `/edit` and `/file` of `everlog chat`. A text is refused before anything is sent.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from everlog.events import BadInput
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.open_store import text_of

EDITOR_VARIABLES = ("VISUAL", "EDITOR")


def edited_text(begun: str, environ: Mapping[str, str] = os.environ) -> str:
    """Let the user write in the editor that VISUAL or EDITOR names, beginning with `begun`. Return the text, without
    white space at its ends.

    The draft is a private file in a temporary folder, which is removed. Raises BadInput if there is no editor, or if it
    fails.
    """
    command = next((environ[name] for name in EDITOR_VARIABLES if environ.get(name, "").strip()), "")
    if not command:
        raise BadInput("Neither VISUAL nor EDITOR names your editor. Set one, such as EDITOR=nano. Nothing was sent.")
    with tempfile.TemporaryDirectory(prefix="everlog-edit-") as folder:
        draft = Path(folder) / "message.md"
        draft.write_text(f"{begun}\n" if begun else "", encoding="utf-8")
        try:
            code = subprocess.run([*shlex.split(command), str(draft)], check=False).returncode
        except (OSError, ValueError) as error:
            raise BadInput(f"The editor {command!r} could not be started ({error}). Nothing was sent.") from error
        if code:
            raise BadInput(f"The editor {command!r} ended with exit code {code}. Nothing was sent.")
        return check_text(text_of(str(draft)).strip())


def file_text(path: str) -> str:
    """Return the text of a file for a message. Raises BadInput if it has none, or cannot be read."""
    text = text_of(path)
    if not text.strip():
        raise BadInput(f"{path!r} is empty: there is nothing to send.")
    return check_text(text)

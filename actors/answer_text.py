"""Join previews and records into the text of an answer, part by part. Pure.

Used by `Run.text_parts`. Previews may be withdrawn and records are final: the parts of a message that was previewed and
then recorded as it was previewed are together exactly its text.
"""

from everlog.actors.formats.reply_preview import Preview
from everlog.events import MessageSent, Record


class AnswerText:
    """Text of one answer as it grows. Messages are separated by a line break."""

    def __init__(self) -> None:
        self._begun = False
        """True if any text was returned: the next message begins on a new line."""
        self._growing = ""
        """Returned part of the message that is previewed now."""
        self._complete: list[str] = []
        """Messages that were previewed whole and are not recorded yet."""

    def preview(self, preview: Preview) -> str:
        """Return the text that a preview adds."""
        if preview.kind == "restart":  # what was returned of this reply is void; its next text begins on a new line
            self._growing, self._complete = "", []
        elif preview.kind == "end" and self._growing:
            self._complete.append(self._growing)
            self._growing = ""
        elif preview.kind == "message" and preview.text:
            added = preview.text if self._growing else self._first(preview.text)
            self._growing += preview.text
            return added
        return ""

    def record(self, record: Record) -> str:
        """Return the text that a record adds: that of a message, without what was returned of it already."""
        if record.type != MessageSent.kind:
            return ""
        text = record.text or ""
        if self._complete:
            shown = self._complete.pop(0)
        else:
            shown, self._growing = self._growing, ""
        if shown and text.startswith(shown):
            return text[len(shown) :]
        return self._first(text)

    def _first(self, text: str) -> str:
        begun, self._begun = self._begun, self._begun or bool(text)
        return f"\n{text}" if begun and text else text

"""The pieces of a streamed reply without the key, should the endpoint repeat it, in one piece or over several. Pure."""

from msgspec.structs import replace

from everlog.actors.ports.effects import Hear, Piece

KEY_SHOWN = "[key]"
"""What stands in the place of a key."""


class Keyless:
    """Tells pieces on. The end of a piece that may be the beginning of the key is told with the next one."""

    __slots__ = ("_hear", "_held", "_key")

    def __init__(self, hear: Hear, key: str) -> None:
        """`key` empty: there is none to look for."""
        self._hear, self._key = hear, key
        self._held = Piece()
        """What was not told yet, as a piece of its own."""

    def hear(self, piece: Piece) -> None:
        """The next piece."""
        if not self._key:
            self._hear(piece)
            return
        if piece.restart or piece.name or piece.call != self._held.call:
            self.end()
        text, text_left = self._parted(self._held.text + piece.text)
        arguments, arguments_left = self._parted(self._held.arguments + piece.arguments)
        self._held = Piece(text_left, piece.call, arguments=arguments_left)
        told = replace(piece, text=text, name=piece.name.replace(self._key, KEY_SHOWN), arguments=arguments)
        if told != Piece(call=piece.call):
            self._hear(told)

    def end(self) -> None:
        """Nothing more comes: what was held back was not the key."""
        held, self._held = self._held, Piece()
        if held.text or held.arguments:
            self._hear(held)

    def _parted(self, text: str) -> tuple[str, str]:
        """What can be told, and what the key may begin with."""
        clean = text.replace(self._key, KEY_SHOWN)
        for size in range(min(len(self._key) - 1, len(clean)), 0, -1):
            if clean.endswith(self._key[:size]):
                return clean[:-size], clean[-size:]
        return clean, ""

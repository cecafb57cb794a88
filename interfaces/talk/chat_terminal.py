"""Front end of a chat: that of the terminal, with advice in the words of the chat.

Used by `everlog chat`. Errors name options of the command line, because most commands have those; a person in a chat
types a slash command instead.
"""

import re

from everlog.events import EverlogError
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import Notice
from everlog.interfaces.output.terminal_output import TerminalFrontEnd

_OPTION = re.compile(r"(?<![\w`])--model\b(?!=)")


def chat_words(text: str) -> str:
    """Return the text of an error with `/model` in place of the option, which a running chat does not take."""
    return _OPTION.sub("/model", text)


class ChatTerminal(TerminalFrontEnd):
    """Terminal of a chat."""

    def notice(self, about: Notice, text: str) -> None:
        """Show a notice, such as a turn that was given up, in the words of the chat."""
        super().notice(about, chat_words(text))

    def error(self, error: EverlogError) -> None:
        """Print the error to stderr, in the words of the chat."""
        self.settle()
        complain(chat_words(str(error)), error.code)

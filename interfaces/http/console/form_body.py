"""Read the fields of a form that a page of this server sent."""

from urllib.parse import parse_qsl

from everlog.interfaces.http.core import guards
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall

FORM = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 8192
"""Size of a form that holds no long text."""


async def read_form(call: HttpCall, bytes_max: int = FORM_BYTES_MAX) -> dict[str, str]:
    """Return the fields of a form. Raises the refusal of one that no page of this server sent.

    Browsers end the lines of a text with CR LF: here they end with LF, as they do in the log.
    """
    if not guards.is_of_own_page(call.request):
        raise Refusal(403, "wrong-origin", "Only a page of this server can do that.")
    body = await guards.read_body(call.request, call.service, bytes_max)
    fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: value.replace("\r\n", "\n") for name, value in fields}

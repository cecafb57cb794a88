"""Read the forms with which clients of Letta upload files, within limits of size and time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

from everlog.interfaces.http.core.guards import too_large
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.core.uploads import UPLOAD_BYTES_MAX
from everlog.interfaces.http.letta.letta_calls import refused

UPLOAD_S = 300.0
"""Seconds in which a form arrives."""


@asynccontextmanager
async def uploaded_form(call: HttpCall) -> AsyncIterator[FormData]:
    """Yield the form in a request, with one file. Raises the refusal of one that is too large, too slow or damaged."""
    declared = call.request.headers.get("content-length", "")
    if not declared.isdecimal():
        raise Refusal(411, "length-required", "The request says no Content-Length. Nothing was done.")
    if int(declared) > UPLOAD_BYTES_MAX:
        raise too_large(UPLOAD_BYTES_MAX)
    try:
        async with asyncio.timeout(UPLOAD_S):
            form: FormData = await call.request.form(max_files=1, max_fields=10)
    except TimeoutError as error:
        raise Refusal(408, "too-slow", "The file did not arrive in time. Nothing was done.") from error
    except MultiPartException as error:
        raise refused(f"The form cannot be read: {error.message}.", 400) from error
    try:
        yield form
    finally:
        await form.close()


def file_in(form: FormData) -> UploadFile:
    """Return the file of a form. Raises the refusal of a form without one."""
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise refused("The form has no `file`.")
    return file

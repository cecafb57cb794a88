"""How does a file become a document? Which files there are in a folder, and the text of each.

`find` lists the files, `read` takes the text out of one. A file that cannot be read is an `Unreadable` that says why,
and harms no other. Libraries for a kind of file are imported when the first one of that kind is read.
"""

from everlog.interfaces.documents.extract_text import read
from everlog.interfaces.documents.file_kinds import KINDS
from everlog.interfaces.documents.find_files import DocumentFile, FileSelection, find

__all__ = ["KINDS", "DocumentFile", "FileSelection", "find", "read"]

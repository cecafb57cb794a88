"""Find files in folders and extract the text of each, as a document.

`find` lists the files, and `read` extracts the text of one file. For a file that cannot be read, `read` returns an
`UnreadableDocument` with the reason, and the other files are not affected. The library for a file type is imported when
the first file of that type is read.
"""

from everlog.interfaces.documents.extract_text import check_readers_installed, read
from everlog.interfaces.documents.file_kinds import KINDS
from everlog.interfaces.documents.find_files import DocumentFile, FileSelection, find

__all__ = ["KINDS", "DocumentFile", "FileSelection", "check_readers_installed", "find", "read"]

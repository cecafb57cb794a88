"""Every limit of the store, with its unit last in the name; relations between limits are checked at import."""

FORMAT_VERSION = 1
"""Version of the directory, manifest and frame formats. A store with a higher one is refused."""

NAME_BYTES_MAX = 255
"""Longest agent name, UTF-8 bytes of its NFC form, inclusive."""

APPEND_BYTES_MAX = 64 * 1024 * 1024
"""Largest commit: text and payload of its drafts together, inclusive."""

FRAME_BYTES_MAX = 256 * 1024 * 1024
"""Largest frame body; a longer length field in a header is nonsense."""

GROUP_APPENDS_MAX = 4096
"""Appends that may wait for one group commit; further ones are refused until it is done."""

GROUP_BYTES_MAX = 64 * 1024 * 1024
"""Text and payload in one group; what is beyond waits for the next one."""

SEGMENT_BYTES_MAX = 256 * 1024 * 1024
"""An open segment that has grown to this size is closed and a new one begun."""

ID_MEMORY_S = 24 * 60 * 60
"""How long an event id is remembered after the segment that holds it was closed, in seconds."""

assert APPEND_BYTES_MAX <= GROUP_BYTES_MAX < FRAME_BYTES_MAX

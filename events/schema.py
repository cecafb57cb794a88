"""Write the JSON schema of every event to `events/schema.json`: run `python -m everlog.events.schema`.

Run by developers after a change of an event. A test compares the file with the code.
"""

import json
from pathlib import Path

from everlog.events.codec import json_schema

PATH = Path(__file__).with_name("schema.json")


def write() -> None:
    """Write the file that a test compares with the code."""
    PATH.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()

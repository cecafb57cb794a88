"""Write the golden prompts again: `python -m tests.golden.prompts`. A native one that changes needs a new renderer."""

from tests.golden.prompts import HERE, made

for name, body in made().items():
    (HERE / name).write_bytes(body)
    print(f"{name}: {len(body):,} bytes")

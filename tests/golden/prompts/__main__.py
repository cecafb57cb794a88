"""Write the golden prompts again: `python -m tests.golden.prompts`. A change of a native prompt needs a new
renderer.
"""

from tests.golden.prompts import HERE, made

for name, body in made().items():
    (HERE / name).write_bytes(body)
    print(f"{name}: {len(body):,} bytes")

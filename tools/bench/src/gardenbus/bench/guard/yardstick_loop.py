"""Yardstick of Python: documents decoded, walked and encoded, as services do, in a process of its own.

It reads a number of documents a line from stdin and writes the CPU seconds that one of them took. There is nothing of
ours in it, and nothing here follows what the product does: a change of it is a change of all figures.
"""

import gc
import json
import sys
import time
from typing import Any, cast

import msgspec

DOCUMENTS = 3000
"""Different ones, of 9 MB together, so that they do not stay in the processor's caches."""


def text(number: int) -> bytes:
    """A document of 3 KB."""
    pools = [
        {
            "name": f"pool-{number}-{each}",
            "machine": {"type": f"type-{number % 7}", "image": {"name": "image", "version": f"1.{each}.{number}"}},
            "minimum": 1 + each,
            "maximum": 3 + number % 5,
            "zones": [f"zone-{number % 9}-{zone}" for zone in range(3)],
            "labels": {f"label-{key}": f"value-{number}-{key}" for key in range(6)},
        }
        for each in range(5)
    ]
    return json.dumps(
        {
            "kind": "Document",
            "metadata": {
                "name": f"document-{number}",
                "labels": {f"key-{key}": f"{number}-{key}" * 3 for key in range(10)},
            },
            "spec": {"pools": pools, "numbers": list(range(number, number + 30)), "text": f"{number} words " * 30},
        }
    ).encode()


def walked(value: Any, path: str = "") -> int:
    """Visit each value with its path; returns how many there are."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return 1 + sum(walked(each, f"{path}.{key}") for key, each in members.items())
    if isinstance(value, list):
        elements = cast("list[Any]", value)
        return 1 + sum(walked(each, f"{path}[{number}]") for number, each in enumerate(elements))
    return 1 if path else 0


def one(body: bytes) -> bytes:
    """Decode, walk, change and encode one document."""
    document = msgspec.json.decode(body)
    changed = {**document, "metadata": {**document["metadata"], "values": walked(document)}}
    return msgspec.json.encode(changed)


def main() -> None:
    """Take the time of as many documents as each line of stdin says."""
    bodies = [text(number) for number in range(DOCUMENTS)]
    gc.disable()
    position = 0
    for line in sys.stdin:
        count = int(line)
        began = time.process_time()
        for number in range(position, position + count):
            one(bodies[number % DOCUMENTS])
        position += count
        sys.stdout.write(f"{(time.process_time() - began) / count!r}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Writes the pages below a directory."""

import sys
from pathlib import Path

from gardenbus.docs.pages import pages

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")

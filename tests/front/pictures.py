"""What a picture says, for tests."""

import re
from pathlib import Path


def svg_text(path: Path) -> str:
    """The words of a picture: matplotlib keeps each as a comment above its glyphs."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8")))

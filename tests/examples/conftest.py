"""The examples are scripts that import each other, as torchrun starts them: from their folder."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

sys.path.append(str(EXAMPLES))

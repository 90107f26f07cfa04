"""Write what follows from the solutions."""

from __future__ import annotations

import sys

from tools.exercises.files import ROOT, write_if_new
from tools.exercises.products import left_over, products


def main() -> int:
    """Write the products that differ, remove those that nothing makes, and say which."""
    made = products()
    for path, text in made.items():
        if write_if_new(path, text):
            print(path.relative_to(ROOT))
    for path in left_over(made):
        path.unlink()
        print(f"{path.relative_to(ROOT)}: removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())

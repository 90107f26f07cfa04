"""Price every published result, print the table and write it.

python -m benchmarks.published
python -m benchmarks.published --page

The first writes benchmarks/results/published.json and docs/published.md; the second only the
page, from what is stored.
"""

from __future__ import annotations

import sys

from benchmarks.published import page, results
from benchmarks.published.rows import load


def main(arguments: list[str]) -> int:
    """Run it."""
    if arguments not in ([], ["--page"]):
        print(__doc__, file=sys.stderr)
        return 2
    rows = load()
    if not arguments:
        results.store(results.run(rows))
    text = page.page(results.stored(rows))
    page.PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run all benchmarks: `make bench`, or `python -m benchmarks planning learning`."""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.harness import report

PARTS = (
    "first_use",
    "planning",
    "always_seen",
    "learning",
    "learners",
    "logs",
    "live",
    "live_files",
    "live_postgres",
    "serving",
    "serving_load",
    "scaling",
    "gym",
)


def main() -> None:
    parts = sys.argv[1:] or PARTS
    for part in parts:
        if part not in PARTS:
            sys.exit(f"benchmarks: {part!r} is none of {', '.join(PARTS)}")
        print(f"== {part} ==", flush=True)
        print(report(import_module(f"benchmarks.{part}").run()), flush=True)


if __name__ == "__main__":  # Dask's workers import this module anew
    main()

"""`restive` and `python -m restive`: nothing is imported before Ctrl-C has an answer."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from restive.cli import main as run_command
    except KeyboardInterrupt:
        print("restive: stopped", file=sys.stderr)
        sys.exit(130)
    run_command()


if __name__ == "__main__":
    main()

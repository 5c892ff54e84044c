"""`python -m restive`."""

from restive.cli import main

main()

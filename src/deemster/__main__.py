"""`python -m deemster`."""

from deemster.cli import main

main()

"""`python -m nexus` is the `nexus` command."""

from nexus.cli import main

if __name__ == "__main__":
    main()

"""``python -m lorpman``."""

from lorpman.cli import main

if __name__ == "__main__":
    main()

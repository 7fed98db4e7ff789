"""``python -m dpnotes``: the calculator in a shell."""

from .calculator.command_line import main

if __name__ == "__main__":
    main()

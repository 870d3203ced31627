"""Make `python -m knowhalu` the same as `knowhalu`."""

from knowhalu.cli.main import main

if __name__ == "__main__":
    main()

"""Build an index, as `knowhalu index build` does, from a checkout."""

import sys

import click

from knowhalu.cli.index_build import build
from knowhalu.errors import KnowHaluError

if __name__ == "__main__":
    try:
        build()
    except KnowHaluError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)

"""`knowhalu eval paper`: the tables of the papers, with rows of ours below the published ones."""

import json
from pathlib import Path

import click

from knowhalu.errors import SettingsError
from knowhalu.evaluation.paper import as_json, as_markdown, make_paper_table
from knowhalu.evaluation.published import published_table, published_tables

OUTPUT_SUFFIXES = (".md", ".json")


@click.command()
@click.option("--paper", default="knowhalu", show_default=True, metavar="NAME", help="knowhalu, conli or factored.")
@click.option("--table", "number", type=click.IntRange(min=1), help="Its number in the paper; without, all that are known.")
@click.option(
    "--runs", default=Path("runs"), show_default=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder of comparisons, each in a folder that is called after its set, such as runs/knowhalu-qa.",
)  # fmt: skip
@click.option("--data", default="DATA", metavar="PATH", help="Where the data sets lie, for the commands that are shown.")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File to write, .md or .json.")
def paper(paper: str, number: int | None, runs: Path, data: str, out: Path | None) -> None:
    """Lay out tables of a paper: its own figures, and below them ours, as far as comparisons in --runs have them.

    Every row of ours says who made it (encoder, or llm:MODEL); what was not run says so and what it takes,
    with the command that runs what can be.
    """
    if out is not None and out.suffix not in OUTPUT_SUFFIXES:
        raise SettingsError(f"{out}: write .md or .json")
    if out is not None and out.exists():
        raise SettingsError(f"{out}: exists. Give another -o")
    tables = [
        make_paper_table(table, runs, data)
        for table in ([published_table(paper, number)] if number is not None else published_tables(paper))
    ]
    if out is not None and out.suffix == ".json":
        content = json.dumps([as_json(t) for t in tables], indent=1, ensure_ascii=False) + "\n"
    else:
        content = "\n".join(as_markdown(t) for t in tables)
    if out is None:
        click.echo(content, nl=False)
    else:
        out.write_text(content, encoding="utf-8")
        click.echo(f"written: {out}")

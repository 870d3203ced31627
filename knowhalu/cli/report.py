"""`knowhalu report`: write finished runs as one page."""

from pathlib import Path

import click

from knowhalu.cli.options import FILE_PATH

OUTPUT_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--out", "-o", "output", required=True, type=OUTPUT_PATH, help="HTML file of the page.")
@click.option("--rows", type=FILE_PATH, help="The checked rows, if RUN is an outcome file or the rows have moved.")
@click.option("--profile", type=FILE_PATH, help="A profile of `knowhalu calibrate`, whose grid is drawn.")
@click.option("--items", type=click.IntRange(min=0), default=300, show_default=True, help="Number of outcomes shown in full.")
@click.option("--title", default="", help="Title of the page; default: the names of the runs.")
@click.option("--markdown", type=OUTPUT_PATH, help="Also write the content as Markdown.")
@click.option("--json", "as_json", type=OUTPUT_PATH, help="Also write the content as JSON.")
def report(
    runs: tuple[Path, ...],
    output: Path,
    rows: Path | None,
    profile: Path | None,
    items: int,
    title: str,
    markdown: Path | None,
    as_json: Path | None,
) -> None:
    """Write finished runs as one page: figures, curves, cost, and items with their evidence.

    RUN is a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`. The page is a single
    file that needs no network. Figures cover all rows; the items are a sample that begins with wrong verdicts.
    """
    from knowhalu.report.chart_data import read_grids
    from knowhalu.report.content import input_paths, make_report
    from knowhalu.report.stored_results import find_runs
    from knowhalu.report.write import check_outputs, write_reports

    outputs = {"html": output, "markdown": markdown, "json": as_json}
    given = {form: path for form, path in outputs.items() if path is not None}
    finished = find_runs(runs, rows)
    check_outputs(given, [*input_paths(finished), *([profile] if profile is not None else [])])
    grids = read_grids(profile) if profile is not None else {}
    write_reports(make_report(finished, title=title, grids=grids, items=items), given)
    click.echo(f"written: {', '.join(map(str, given.values()))}")

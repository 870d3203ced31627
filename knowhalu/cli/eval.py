"""`knowhalu eval`: one command for each data set. Help is made of the table; what runs is imported when called."""

from importlib import import_module

import click

from knowhalu.datasets.catalog import dataset_card, dataset_titles, is_card_path

EXTRA_COMMANDS = {
    "all": ("knowhalu.cli.eval_all:evaluate_all", "Every file of a folder whose form is known, one after the other."),
    "paper": ("knowhalu.cli.eval_paper:paper", "The tables of the papers as printed, with rows of ours below."),
}


class DatasetGroup(click.Group):
    """A group whose commands are the data sets, and a few beside them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return [*EXTRA_COMMANDS, *dataset_titles()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """Import or make a command; raises SettingsError with the nearest name where there is none."""
        name = name if is_card_path(name) or ":" in name else name.replace("_", "-")
        if name in EXTRA_COMMANDS:
            module, _, attribute = EXTRA_COMMANDS[name][0].partition(":")
            found: click.Command = getattr(import_module(module), attribute)
            return found
        card = dataset_card(name)
        made: click.Command = import_module("knowhalu.cli.eval_dataset").make_command(card)
        return made

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all from the tables, so that help imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in EXTRA_COMMANDS.items()])
        with formatter.section("Data sets"):
            formatter.write_dl(list(dataset_titles().items()))


@click.group(cls=DatasetGroup)
def evaluate() -> None:
    """Evaluate methods on a data set on your disk, or on one that a TOML file of yours describes; nothing is downloaded.

    Try: knowhalu eval ragtruth --data RAGTruth/dataset -m knowhalu,conli --limit 500 -o runs
    """

"""The commands below a paper's table: each, run as it is printed, fills the cells that name it and no other."""

import hashlib
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from knowhalu.cli.main import main
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.evaluation.paper import PUBLISHED, make_paper_table
from knowhalu.evaluation.paper_commands import RunPlace
from knowhalu.evaluation.published import published_table, read_published
from knowhalu.index.build import build_index
from knowhalu.testing import ScriptedEncoder, ScriptedLLM
from tests.support.imitating import imitated
from tests.support.indexing import WordEmbedder, records

TABLES = [table for table in read_published().table if table.ours]
TIMES = ("knowhalu", 7)
"""The table of seconds, which no command of another table may fill."""
MODEL = "stand-in"
FACTS = [f"The tower at Carn Point number {i} was built in 18{i}1 by Mara Quill. A storm broke its lamp." for i in range(2, 5)]
PAIRS = [
    {"knowledge": f, "question": f"When was tower {i} built?", "right_answer": f"In 18{i}1.", "hallucinated_answer": f"In {i}."}
    for i, f in enumerate(FACTS, 2)
]  # fmt: skip
SUMMARIES = [
    {"document": f, "right_summary": f"Tower {i} was built by Quill.", "hallucinated_summary": f"Tower {i} was built by Ross."}
    for i, f in enumerate(FACTS, 2)
]  # fmt: skip
CLAIMS = [
    {"id": f"{i}{label}", "source": f, "claim": f"It was built in {year}{i}1.", "label": label}
    for i, f in enumerate(FACTS, 2) for label, year in (("supported", 18), ("unsupported", 19))
]  # fmt: skip
FILES = {
    "knowhalu_qa_pairs": PAIRS, "knowhalu_summ_pairs": SUMMARIES, "halueval_summarization": SUMMARIES,
    "qags": CLAIMS, "summeval": CLAIMS, "factcc": CLAIMS,
}  # fmt: skip
LABELS = {"supported": "faithful", "unsupported": "hallucinated"}
OWN_ROWS = [{"id": c["id"], "claim": c["claim"], "knowledge": c["source"], "label": LABELS[c["label"]]} for c in CLAIMS]
"""Rows as `knowhalu compare` takes them, for sets that `knowhalu eval` does not know."""


class StandIn(ScriptedLLM):
    """A served model that answers as the examples of the prompts do."""

    def __init__(self, options):
        super().__init__(imitated)

    def identity(self):
        return json.dumps({"model": MODEL})

    async def close(self):
        pass


def scored(pair):
    a, b, c = (1 + x for x in hashlib.sha256(repr(pair).encode()).digest()[:3])
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


def cells_by_command(place):
    """Return for each printed command its table and the cells that name it: labels, reasoner and column."""
    found = {}
    for table in TABLES:
        for row in make_paper_table(table, place).rows:
            for column, cell in enumerate(row.cells):
                if cell.command:
                    found.setdefault(cell.command, set()).add((table.paper, table.number, row.labels, row.by, column))
    return found


MAKERS = {"encoder": "encoder", f"llm:{MODEL}": "llm"}
"""The origins of results, by the reasoner that a row without one names: the model's name is that of the run."""


def filled_cells(tables):
    """Return the cells of ours that have a result by a reasoner."""
    return {
        (table.paper, table.number, row.labels, MAKERS[row.by.removesuffix(", length-matched")], column)
        for table in tables for row in make_paper_table(table, RunPlace(Path("runs"))).rows
        if row.by.startswith(("encoder", "llm:")) for column, cell in enumerate(row.cells) if cell.rows is not None
    }  # fmt: skip


COMMANDS = cells_by_command(RunPlace(Path("runs")))


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Write the data sets and an index once."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "data").mkdir()
    for path, rows in {**{f"data/{name}": rows for name, rows in FILES.items()}, "rows": OWN_ROWS}.items():
        (folder / f"{path}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    build_index(records({f"Tower {i}": fact for i, fact in enumerate(FACTS, 2)}), folder / "index", WordEmbedder())
    return folder


def test_every_cell_without_a_result_names_a_command_except_where_a_method_lacks_the_reasoner():
    for table in TABLES:
        for row in make_paper_table(table, RunPlace(Path("runs"))).rows:
            bare = {cell.missing for cell in row.cells if row.by != PUBLISHED and not cell.command}
            assert bare <= {"this method has no encoder"}, (table.number, row)


def test_every_printed_command_has_a_folder_of_its_own_for_its_set():
    targets = [(words[words.index("-o") + 1], words[1:3]) for words in map(shlex.split, COMMANDS)]
    assert len(targets) == len({(out, tuple(of)) for out, of in targets})


def test_table_prints_its_commands_and_the_places_that_are_given(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["eval", "paper", "--table", "2", "--data", "my sets", "--index", "wiki"]).stdout
    printed = re.findall(r"`(knowhalu .*)`", shown)
    wanted = make_paper_table(published_table("knowhalu", 2), RunPlace(Path("runs"), "my sets", "wiki")).commands
    assert tuple(printed) == wanted and len(wanted) == 14
    assert {words[words.index("--data") + 1] for words in map(shlex.split, printed)} == {"my sets"}


@pytest.fixture
def run(given, monkeypatch, tmp_path):
    """Return a function that runs a printed command in an empty folder, with stand-ins for the models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("knowhalu.llm.server_backend.ServerBackend", StandIn)
    monkeypatch.setattr("knowhalu.encoder.paired.open_encoder", lambda options: ScriptedEncoder(scored))
    monkeypatch.setattr(SearchBackend, "embedder", property(lambda self: WordEmbedder()))

    def invoke(command):
        program, *arguments = shlex.split(command)
        places = {"DATA": given / ("data" if arguments[0] == "eval" else "rows.jsonl"), "INDEX": given / "index"}
        done = CliRunner().invoke(main, [str(places.get(a, a)) for a in arguments])
        assert program == "knowhalu" and done.exit_code == 0, done.output

    return invoke


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(shlex.split(c)[1:3] + shlex.split(c)[-1:]))
def test_a_printed_command_fills_the_cells_that_name_it_and_no_other(command, run):
    run(command)
    numbers = {(paper, number) for paper, number, *_ in COMMANDS[command]} | {TIMES}
    tables = [table for table in TABLES if (table.paper, table.number) in numbers]
    assert filled_cells(tables) == COMMANDS[command]


def test_seconds_are_not_of_a_run_with_replies_from_the_cache_or_of_several_texts_at_once(run):
    times = published_table(*TIMES)
    kept = "--set llm.cache_folder=replies"
    alone = f"knowhalu eval knowhalu-qa --data DATA -m halueval-knowledge:llm --set engine.in_flight=1 {kept} -o runs"
    run(f"{alone}/first")
    assert len(filled_cells([times])) == 1
    (Path("runs") / "first").rename("aside")
    run(f"{alone}/second")
    assert not filled_cells([times])
    run(f"{alone.replace('in_flight=1', 'in_flight=2')}/third --no-cache")
    assert not filled_cells([times])

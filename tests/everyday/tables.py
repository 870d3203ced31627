"""Tables in several notations and code: a cell of the right row or of another one, the right name of a parameter or another."""

import json
from collections.abc import Callable, Sequence
from random import Random

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import PEOPLE, PLACES, pick

table = variety("tables")
code = variety("code")

Rows = Sequence[Sequence[str]]


def _pipes(rows: Rows) -> str:
    lines = [f"| {' | '.join(r)} |" for r in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _bare_pipes(rows: Rows) -> str:
    lines = [" | ".join(r) for r in rows]
    return "\n".join([lines[0], " | ".join("---" for _ in rows[0]), *lines[1:]])


def _tabs(rows: Rows) -> str:
    return "\n".join("\t".join(r) for r in rows)


def _commas(rows: Rows) -> str:
    return "\n".join(",".join(r) for r in rows)


def _unruled(rows: Rows) -> str:
    return "\n".join(" | ".join(r) for r in rows)


def _objects(rows: Rows) -> str:
    return json.dumps([dict(zip(rows[0], r, strict=True)) for r in rows[1:]], indent=2)


NOTATIONS: dict[str, Callable[[Rows], str]] = {
    "pipes": _pipes,
    "bare pipes": _bare_pipes,
    "tabs": _tabs,
    "commas": _commas,
    "unruled": _unruled,
    "json": _objects,
}

_THINGS = (
    (("Route", "Length", "Fare"), ("{p} line",), "The fare of the {r} is {v}.", "What is the fare of the {r}?", "{n} EUR"),
    (("Town", "County", "Population"), ("{p}",), "{r} has a population of {v}.", "What is the population of {r}?", "{n}00"),
    (("Player", "Club", "Goals"), ("{a}",), "{r} scored {v} goals.", "How many goals did {r} score?", "{n}"),
    (
        ("Plan", "Storage", "Price"),
        ("Basic", "Plus", "Family", "Business"),
        "The {r} plan costs {v} a month.",
        "How much is the {r} plan a month?",
        "${n}",
    ),
    (
        ("Item", "Weight", "Stock"),
        ("lamps", "ladders", "kettles", "blankets"),
        "There are {v} {r} in stock.",
        "How many {r} are in stock?",
        "{n}",
    ),
)


def _table(rng: Random) -> tuple[list[list[str]], str, str]:
    """Draw a table of four rows, the sentence about its last column and the question for it."""
    header, names, sentence, question, value = rng.choice(_THINGS)
    places, people = pick(rng, PLACES, 8), pick(rng, PEOPLE, 4)
    subjects = list(names) if len(names) > 1 else [names[0].format(p=p, a=a) for p, a in zip(places[:4], people, strict=True)]
    middle = {
        "Length": [f"{n} km" for n in rng.sample(range(11, 60), 4)],
        "Weight": [f"{n} kg" for n in rng.sample(range(2, 20), 4)],
        "Storage": [f"{n} GB" for n in (5, 20, 50, 200)],
    }.get(header[1], places[4:])
    numbers = rng.sample(range(61, 99), 4)
    rows = [[s, m, value.format(n=n)] for s, m, n in zip(subjects, middle, numbers, strict=True)]
    return [list(header), *rows], sentence, question


def _read(rng: Random, notation: str) -> Pair:
    rows, sentence, question = _table(rng)
    row, other = rng.sample(rows[1:], 2)
    document = NOTATIONS[notation](rows)
    if rng.random() < 0.4:
        document = f"{rng.choice(('Overview', 'The figures of last year', 'See the table'))}:\n\n{document}"
    said = [sentence.format(r=row[0], v=r[-1]) for r in (row, other)]
    if rng.random() < 0.3:
        said = [r[-1] for r in (row, other)]
        return Pair((document,), question.format(r=row[0]), *said)
    return Pair((document,), rng.choice((None, question.format(r=row[0]))), *said)


for _name in NOTATIONS:

    def _made(rng: Random, name: str = _name) -> Pair:
        return _read(rng, name)

    _made.__name__ = f"from_{_name.replace(' ', '_')}"
    table(_made)


@table
def written_as_a_table(rng: Random) -> Pair:
    """Answer prose with a table."""
    rows, sentence, _ = _table(rng)
    document = " ".join(sentence.format(r=r[0], v=r[-1]) for r in rows[1:])
    right = [[rows[0][0], rows[0][-1]], *([r[0], r[-1]] for r in rows[1:4])]
    wrong = [r[:] for r in right]
    wrong[1][1], wrong[2][1] = wrong[2][1], wrong[1][1]
    notation = rng.choice((_pipes, _bare_pipes))
    return Pair((document,), "Give me the figures as a table.", notation(right), notation(wrong))


@table
def largest_row(rng: Random) -> Pair:
    rows, _, _ = _table(rng)
    numbers = {r[0]: int("".join(c for c in r[-1] if c.isdigit())) for r in rows[1:]}
    best, worst = max(numbers, key=numbers.__getitem__), min(numbers, key=numbers.__getitem__)
    question = f"Which {rows[0][0].lower()} has the highest {rows[0][-1].lower()}?"
    return Pair((_pipes(rows),), question, best, worst)


_OPTIONS = (
    (
        "`{f}` takes `{a}`, the number of retries, and `{b}`, the size of a batch.",
        "How do I set the number of retries?",
        "{f}({a}=5)",
        "{f}({c}=5)",
    ),
    (
        "The command `{f}` writes its output to the file named by `--{a}`. `--{b}` prints more.",
        "How do I choose the output file?",
        "{f} --{a} result.txt",
        "{f} --{c} result.txt",
    ),
    (
        "Set `{a}` to true in the section `{f}` to keep backups; `{b}` sets their number.",
        "How do I keep backups?",
        "[{f}]\n{a} = true",
        "[{f}]\n{c} = true",
    ),
    (
        "The function {f} returns a list. With {a}=True it returns an iterator, and {b} sets the order.",
        "How do I get an iterator?",
        "items = {f}({a}=True)",
        "items = {f}({c}=True)",
    ),
)
_WORDS = ("retry", "keep", "target", "lazy", "depth", "chunk", "store", "limit", "mode", "verbose")


@code
def fenced_block(rng: Random) -> Pair:
    document, question, right, wrong = rng.choice(_OPTIONS)
    a, b, c, f = rng.sample([f"{x}_{y}" for x, y in zip(_WORDS, rng.sample(_WORDS, len(_WORDS)), strict=True)], 4)
    names = {"a": a, "b": b, "c": c, "f": f.replace("_", "")}
    language, opening = (
        rng.choice(("python", "bash", "", "toml")),
        rng.choice(("Use this:\n", "Like this:\n\n", "You can write:\n", "")),
    )
    texts = [f"{opening}```{language}\n{t.format(**names)}\n```" for t in (right, wrong)]
    return Pair((document.format(**names),), question, *texts)


@code
def inline_span(rng: Random) -> Pair:
    document, question, _, _ = rng.choice(_OPTIONS[:3])
    a, b, c, f = rng.sample([f"{x}_{y}" for x, y in zip(_WORDS, rng.sample(_WORDS, len(_WORDS)), strict=True)], 4)
    names = {"a": a, "b": b, "c": c, "f": f.replace("_", "")}
    form = rng.choice(("Set `{}`.", "Use `{}` for that.", "You need `{}`.", "`{}`"))
    return Pair((document.format(**names),), question, form.format(a), form.format(rng.choice((b, c))))


@code
def settings_file(rng: Random) -> Pair:
    a, b, c, _ = rng.sample([f"{x}_{y}" for x, y in zip(_WORDS, rng.sample(_WORDS, len(_WORDS)), strict=True)], 4)
    document = f"The default of {a} is 30 seconds. The default of {b} is 4 threads."
    texts = [f'```json\n{{"{k}": {v}, "{b}": 4}}\n```' for k, v in ((a, 30), rng.choice(((a, 90), (c, 30))))]
    return Pair((document,), "What are the defaults?", *texts)


@code
def version_and_command(rng: Random) -> Pair:
    name, (major, minor) = rng.choice(("tarkit", "brimlog", "noteforge", "vexmap")), (rng.randint(1, 9), rng.randint(1, 20))
    document = f"{name} {major}.{minor} needs Python 3.11. Install it with `pip install {name}`. Start it with `{name} serve`."
    right, wrong = rng.choice(
        (
            (f"Run `pip install {name}`.", f"Run `npm install {name}`."),
            (f"Start it with:\n```bash\n{name} serve\n```", f"Start it with:\n```bash\n{name} launch\n```"),
            (f"{name} {major}.{minor} needs Python 3.11.", f"{name} {major}.{minor} needs Python 3.8."),
            ("It needs `Python 3.11`.", "It needs `Python 2.7`."),
        )
    )
    return Pair((document,), f"How do I set up {name}?", right, wrong)

"""The recipes of the training: files, how their rows become examples, shares, licences, and the random draws.

Files are streamed repeatedly through a shuffle buffer; a seed determines the draws.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.training.data_files import Leakage, TrainingRow, is_held_out, is_in_portion, join_texts, read_training_rows, text_of
from knowhalu.training.examples import (
    TARGETS,
    TrainingExample,
    delivery_example,
    fever_example,
    labelled_example,
    mined_example,
    own_sentence_example,
    passage_answer,
    passage_claim,
    summary_example,
    user_example,
    wice_claim,
    written_answer,
    written_claim,
)
from knowhalu.training.questions import detail_example, evasion_example
from knowhalu.training.scenarios import scenario_example
from knowhalu.training.subjects import exchanged_subject_example, followed_sentence_example

ExampleMaker = Callable[[TrainingRow, TrainingRow, random.Random], TrainingExample]


@dataclass(frozen=True)
class Recipe:
    """A part of the mixture: a file, its sets, how rows become examples, its share of the draws, and its licence.

    `portion` is the share of the sources to train on, chosen by hash. `texts` are the files with the texts of rows that only
    identify them.
    """

    name: str
    file: str
    sets: tuple[str, ...]
    make: ExampleMaker
    share: float
    licence: str
    portion: float = 1.0
    texts: tuple[str, ...] = ()


MIX_FILE = "train/mix.jsonl.gz"
CLAIMS_FILE, ANSWERS_FILE, INFERENCE_FILE, INVENTED_FILE, PASSAGES_FILE, PLAIN_FILE, PASSAGE_ANSWERS_FILE = (
    f"written/{kind}.train.jsonl.gz"
    for kind in ("claims", "answers", "inference", "invented", "passages", "plain", "passage_answers")
)
CONVERSATIONS_FILE, TEXTS_FILE, REPLIES_FILE = (
    f"written/scenarios_{kind}.train.jsonl.gz" for kind in ("conversations", "texts", "answers")
)
SYNTHETIC_PAIRS_FILE, MODEL_PAIRS_FILE = "train/fib_synth_pairs.jsonl.gz", "train/fib_model_pairs.jsonl.gz"
WICE_TOKENS_FILE, WIKIPEDIA_FILE = "train/wice_nonsupported_tokens.jsonl.gz", "retrieval/wiki_passages_2wiki.corpus.jsonl.gz"
SCIFACT_FILE, SQUAD_FILE = (f"retrieval/{name}_retrieval.corpus.jsonl.gz" for name in ("scifact", "squad_sentence"))
TEXT_FILES = (MIX_FILE, WIKIPEDIA_FILE, SCIFACT_FILE, SYNTHETIC_PAIRS_FILE, SQUAD_FILE)
"""Files with the texts that claims and answers on passages identify."""
OWN_DATA = Path(__file__).parent.parent.parent / "data"
"""The sets that were written for this project, in its repository."""
_OWN_LICENCE = "Apache-2.0 (written for this project)"
RECIPES = (
    Recipe("MNLI (TaxiNLI's 10k)", MIX_FILE, ("nli_mnli10k_taxinli",), labelled_example, 0.03, "C-UDA 1.0"),
    Recipe("SNLI, counterfactually revised", MIX_FILE, ("nli_cad_snli",), labelled_example, 0.03, "Apache-2.0"),
    Recipe("Breaking NLI", MIX_FILE, ("nli_breaking",), labelled_example, 0.01, "CC BY-SA 4.0"),
    Recipe("FEVER dev claims", MIX_FILE, ("fever_dev_claims",), fever_example, 0.03, "CC BY-SA 3.0"),
    Recipe("Fool Me Twice", MIX_FILE, ("fm2",), fever_example, 0.02, "Apache-2.0 / CC BY-SA"),
    Recipe("FIB summaries, edited", SYNTHETIC_PAIRS_FILE, (), summary_example, 0.03, "CC BY 4.0"),
    Recipe("FIB summaries, by models", MODEL_PAIRS_FILE, ("xsum",), summary_example, 0.01, "CC BY 4.0"),
    Recipe("FIB documents, own sentences", SYNTHETIC_PAIRS_FILE, (), own_sentence_example, 0.02, "CC BY 4.0"),
    Recipe("Wikipedia, own sentences", WIKIPEDIA_FILE, (), own_sentence_example, 0.02, "CC BY-SA 4.0"),
    Recipe("Wikipedia, questions on details", WIKIPEDIA_FILE, (), detail_example, 0.02, "CC BY-SA 4.0"),
    Recipe("Wikipedia, questions answered or evaded", WIKIPEDIA_FILE, (), evasion_example, 0.02, "CC BY-SA 4.0"),
    Recipe("WiCE", MIX_FILE, ("wice_claim_oracle",), labelled_example, 0.02, "CC BY-SA / ODC-BY"),
    Recipe("WiCE, unsupported tokens", WICE_TOKENS_FILE, (), wice_claim, 0.01, "CC BY-SA / ODC-BY"),
    Recipe("SciFact train", MIX_FILE, ("scifact",), labelled_example, 0.02, "CC BY 4.0 / ODC-By"),
    Recipe("BEGIN dev", MIX_FILE, ("begin",), labelled_example, 0.01, "CC BY 4.0 / CDLA"),
    Recipe("written claims", CLAIMS_FILE, (), written_claim, 0.06, _OWN_LICENCE),
    Recipe("written inference", INFERENCE_FILE, (), written_claim, 0.04, _OWN_LICENCE),
    Recipe("written claims on real passages", PASSAGES_FILE, (), passage_claim, 0.11, _OWN_LICENCE, texts=TEXT_FILES),
    Recipe("written plain claims on real passages", PLAIN_FILE, (), passage_claim, 0.16, _OWN_LICENCE, texts=TEXT_FILES),
    Recipe("written plain claims on invented passages", INVENTED_FILE, (), passage_claim, 0.03, _OWN_LICENCE),
    Recipe("written answers on real passages", PASSAGE_ANSWERS_FILE, (), passage_answer, 0.04, _OWN_LICENCE, texts=TEXT_FILES),
    Recipe("written claims, own sentences", CLAIMS_FILE, (), own_sentence_example, 0.01, _OWN_LICENCE),
    Recipe("written answers", ANSWERS_FILE, (), written_answer, 0.03, _OWN_LICENCE),
    Recipe("written answers, delivered or evaded", ANSWERS_FILE, (), delivery_example, 0.02, _OWN_LICENCE),
    Recipe("Wikipedia, sentences after another", WIKIPEDIA_FILE, (), followed_sentence_example, 0.02, "CC BY-SA 4.0"),
    Recipe("Wikipedia, exchanged subjects", WIKIPEDIA_FILE, (), exchanged_subject_example, 0.02, "CC BY-SA 4.0"),
    Recipe("written conversations", CONVERSATIONS_FILE, (), scenario_example, 0.05, _OWN_LICENCE),
    Recipe("written texts with slots", TEXTS_FILE, (), scenario_example, 0.06, _OWN_LICENCE),
    Recipe("written answers with slots", REPLIES_FILE, (), scenario_example, 0.06, _OWN_LICENCE),
)
UNLICENSED_RECIPES = (
    Recipe("Linguist in the loop", "train/nli_ling_in_loop.jsonl.gz", (), labelled_example, 0.5, "none stated"),
    Recipe("COVID-Fact", MIX_FILE, ("covidfact",), labelled_example, 0.03, "none stated"),
)
"""Sets that state no licence: they can be measured, and are left out of the packaged verifier."""
SYNTHETIC_RECIPES = (
    "FEVER dev claims", "FIB documents, own sentences", "Wikipedia, own sentences", "Wikipedia, questions on details",
    "written claims, own sentences",
)  # fmt: skip
"""Recipes that make their own errors, of which the hardest of several tries can be mined."""
FILES = tuple(dict.fromkeys(f for r in RECIPES for f in (r.file, *r.texts)))


def choose_recipes(
    *,
    unlicensed: bool = False,
    without: Sequence[str] = (),
    mined: Sequence[str] = (),
    added: Sequence[tuple[str, float]] = (),
    portion: float = 1.0,
) -> tuple[Recipe, ...]:
    """Return the recipes of a training without those in `without`; each file of mined examples gets a tenth of the draws.

    `added` are files of a user's labelled rows, each with its share of all draws; `portion` is the share of the sources to train
    on, to measure the effect of fewer data.

    Raises InputError for an unknown name.
    """
    every = RECIPES + UNLICENSED_RECIPES if unlicensed else RECIPES
    if unknown := set(without) - {r.name for r in every}:
        raise InputError(
            f"there is no recipe {sorted(unknown)[0]!r} to leave out; the recipes are: {', '.join(r.name for r in every)}"
        )
    recipes = tuple(replace(r, portion=portion) for r in every if r.name not in without)
    share = 0.1 * sum(r.share for r in recipes)
    recipes += tuple(Recipe(f"mined: {Path(f).name}", f, (), mined_example, share, "of its sources") for f in mined)
    rest = 1 - sum(share for _, share in added)
    if rest <= 0:
        raise InputError("the added files take all draws; give shares whose sum is below 1")
    whole = sum(r.share for r in recipes) / rest
    return recipes + tuple(
        Recipe(f"added: {Path(f).name}", f, (), user_example, share * whole, "of whoever gave it") for f, share in added
    )


LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def check_added(path: Path) -> None:
    """Validate a user's file; raises InputError with the line of a row without source, claim or known label."""
    number = 0
    for number, row in enumerate(read_training_rows(path), 1):
        texts = [row.get(name) for name in ("source", "claim")]
        whole = all(isinstance(t, str) and t.strip() for t in texts) and str(row.get("label")) in TARGETS
        if not whole or not isinstance(row.get("question") or "", str):
            needs = f'"source", "claim" and "label" ({", ".join(TARGETS)}), and may have "question"'
            raise InputError(f"{path}:{number}: a training row needs {needs}")
        if any(LONE_SURROGATE.search(str(t)) for t in (*texts, row.get("question") or "")):
            raise InputError(f"{path}:{number}: a text holds half a character (a lone surrogate); write the file as UTF-8")
    if not number:
        raise InputError(f"{path}: there are no rows to train on")


def locate_file(file: str, folder: Path) -> Path:
    """Return the path of a recipe's file: in the folder of the training data, or among the sets of this repository."""
    return OWN_DATA / file if (OWN_DATA / file).exists() and not (folder / file).exists() else folder / file


def read_recipe_rows(recipe: Recipe, folder: Path, *, held: bool, leakage: Leakage | None = None) -> Iterator[TrainingRow]:
    """Yield a recipe's rows once: of the held-out sources or of the others, without those that leak."""
    rows = read_training_rows(locate_file(recipe.file, folder))
    for row in join_texts(rows, [locate_file(f, folder) for f in recipe.texts]) if recipe.texts else rows:
        named = not recipe.sets or row.get("set", row.get("dataset")) in recipe.sets
        source = text_of(row)
        out = is_held_out(source) and recipe.make is not mined_example  # mined examples come from sources that are not held out
        if named and out is held and (held or is_in_portion(source, recipe.portion)):
            if leakage is None or row not in leakage:
                yield row


def _shuffled_rows(recipe: Recipe, folder: Path, seed: int, leakage: Leakage | None, buffer: int = 4000) -> Iterator[TrainingRow]:
    """Yield a recipe's rows without end, shuffled through a buffer, without held-out sources."""
    rng = random.Random(f"{seed}:{recipe.name}")
    held: list[TrainingRow] = []
    while True:
        count = 0
        for row in read_recipe_rows(recipe, folder, held=False, leakage=leakage):
            count += 1
            held.append(row)
            if len(held) >= buffer:
                at = rng.randrange(len(held))
                held[at], held[-1] = held[-1], held[at]
                yield held.pop()
        if not count:
            remedy = "check --data" if recipe.portion == 1.0 else "check --data, or train on a larger portion"
            raise InputError(f"{locate_file(recipe.file, folder)}: there are no rows for {recipe.name!r}; {remedy}")
        rng.shuffle(held)
        yield from held[count // 2 :]
        del held[count // 2 :]


def draw_rows(
    folder: Path, seed: int, recipes: tuple[Recipe, ...] = RECIPES, leakage: Leakage | None = None
) -> Iterator[tuple[Recipe, TrainingRow, TrainingRow]]:
    """Draw recipes by share without end, each with a row and, for negatives, the recipe's row before it."""
    rng = random.Random(seed)
    streams = [_shuffled_rows(r, folder, seed, leakage) for r in recipes]
    before = [next(s) for s in streams]
    shares = [r.share for r in recipes]
    while True:
        i = rng.choices(range(len(recipes)), shares)[0]
        row = next(streams[i])
        yield recipes[i], row, before[i]
        before[i] = row

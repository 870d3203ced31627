"""`knowhalu prompts`: print the prompts that a language model receives, and validate a folder of prompts."""

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import click
from click.exceptions import Exit

from knowhalu.cli.check import sample_of
from knowhalu.cli.options import with_text
from knowhalu.errors import PromptError
from knowhalu.llm.options import LLMOptions
from knowhalu.prompts.book import KnowHaluPromptBook, knowhalu_family
from knowhalu.prompts.examples import KNOWHALU_FAMILY, examples_file, load_examples
from knowhalu.prompts.format import Formulation
from knowhalu.prompts.template import PromptText, load_prompt, packaged_folder, prompt_names
from knowhalu.registry import METHODS, REVISION_FAMILY, REWRITERS, import_object
from knowhalu.requests import Generate
from knowhalu.text.sentences import chunks, sanitize
from knowhalu.types import Document, Knowledge, KnowledgeForm, Passage, Query, Sample, Step, Task

FOLDER_PATH = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
FORMULATIONS: tuple[Formulation, ...] = get_args(Formulation)
PLACEHOLDER_QUERY = Query(specific="(the specific query of this step)", general="(the general query of this step)")
DEFAULT_SAMPLES = {
    Task.QA: Sample(question="Who wrote the novel Dracula?", response="Mary Shelley wrote it."),
    Task.RAG: Sample(
        question="When does the pool open?", response="At 7 in the morning.", documents=(Document(text="The pool opens at 8."),)
    ),
    Task.SUMMARY: Sample(response="The pool opens at 7.", documents=(Document(text="The pool opens at 8. It closes at 6."),)),
    Task.CLAIM: Sample(response="Dracula is a novel by Mary Shelley."),
}
"""The sample that is rendered where the command has none."""


@click.group()
def prompts() -> None:
    """Print the prompts that a language model receives, and validate your own."""


def _check_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return family/name of a prompt; the family may be left out for those of KnowHalu."""
    name = value if "/" in value else f"{KNOWHALU_FAMILY}/{value}"
    if name not in prompt_names():
        raise click.BadParameter(
            f"{value!r} is no prompt. The prompts are: {', '.join(map(repr, [*knowhalu_family().prompts, *prompt_names()]))}"
        )
    return name


@prompts.command()
@click.argument("name", callback=_check_name, metavar="NAME")
@with_text
@click.option(
    "--form", type=click.Choice([str(form) for form in KnowledgeForm]), default=str(KnowledgeForm.UNSTRUCTURED), show_default=True
)
@click.option("--formulation", type=click.Choice(FORMULATIONS), default="combined", show_default=True)
@click.option("--prompts", "folder", type=FOLDER_PATH, help="Your folder of prompts; its files replace the packaged ones.")
def show(name: str, form: str, formulation: str, folder: Path | None, text: dict[str, Any]) -> None:
    """Print the prompt NAME (extract, query, knowledge or judge) as a model receives it for the given text.

    Without a text, an example is used; the steps of a check, which only a run knows, are placeholders. The files of the prompt
    and the length of its fixed part are printed to standard error. Prompts of other methods (such as conli/sentence) are printed
    with their placeholders.
    """
    prompt = load_prompt(name, folder)
    family, _, name = name.rpartition("/")
    sample = sample_of(text) if any(text.values()) else DEFAULT_SAMPLES[Task.QA]
    if family != KNOWHALU_FAMILY:
        chosen = prompt.settled(sample.task, form, formulation)
        click.echo(sanitize(chosen.settled(**{hole: PromptText(f"${hole}") for hole in chosen.holes}).fixed))
        click.echo(str(prompt.file), err=True)
        return
    book = KnowHaluPromptBook(LLMOptions(prompts=folder), cast(Formulation, formulation))
    request = render_request(book, name, sample, KnowledgeForm(form))
    click.echo(sanitize(request.prompt))
    examples = examples_file(Task.QA if name == "extract" else sample.task, folder)
    click.echo(f"{prompt.file} with {examples}", err=True)
    stops = " ".join(repr(s) for s in request.stop)
    click.echo(
        f"{request.fixed:,} of {len(request.prompt):,} characters are the same for every text; "
        f"at most {request.max_tokens} tokens, up to {stops}",
        err=True,
    )
    if count := len(request.turns) // 2:
        click.echo(f"a chat model gets the instruction as the system prompt, and the rest in {count} pairs of turns", err=True)


def render_request(book: KnowHaluPromptBook, name: str, sample: Sample, form: KnowledgeForm) -> Generate:
    """Render one request for a sample, with the sample's first passages and a placeholder for the steps of a run."""
    passages = _passages(sample)
    if name == "extract":
        return book.extract(sample.question or DEFAULT_SAMPLES[Task.QA].question or "", sample.response)
    if name == "query":
        return book.query(sample, (), form)
    if name == "knowledge":
        return book.knowledge(sample, PLACEHOLDER_QUERY, passages, form)
    learned = Knowledge(form=form, text="(the knowledge of this step)")
    return book.judge(sample, [Step(thought="", query=PLACEHOLDER_QUERY, passages=passages, knowledge=learned)], form)


def _passages(sample: Sample) -> tuple[Passage, ...]:
    known = [Passage(id=str(i), text=text) for i, text in enumerate(sample.knowledge, 1)]
    passages = [Passage(id=f"{d.id}#{c.start}", text=c.text, title=d.title) for d in sample.documents for c in chunks(d.text)]
    return (*known, *passages[:3]) or (Passage(id="1", title="(title)", text="(a retrieved passage)"),)


class PromptFault(NamedTuple):
    """A prompt file that cannot be used or that nothing uses, with a remedy."""

    text: str


@prompts.command()
@click.argument("folder", required=False, type=FOLDER_PATH)
def check(folder: Path | None) -> None:
    """Validate every prompt and every file of examples; those in FOLDER replace the packaged ones.

    Exit code: 0 if all are valid, 1 if not.
    """
    faults = 0
    for result in examine_prompts(folder):
        faults += isinstance(result, PromptFault)
        word, text = ("FAULT", result.text) if isinstance(result, PromptFault) else ("ok   ", result)
        click.echo(f"{word} {sanitize(text)}")
    raise Exit(1 if faults else 0)


def examine_prompts(folder: Path | None) -> Iterator[str | PromptFault]:
    """Validate every file alone, and then the prompts of each family together."""
    faulty: set[str] = set()
    for name in prompt_names():
        try:
            yield str(load_prompt(name, folder).file)
        except PromptError as error:
            faulty.add(name.partition("/")[0])
            yield PromptFault(str(error))
    for task in Task:
        try:
            count = len(load_examples(task, folder))
            yield f"{examples_file(task, folder)} ({count} examples)"
        except PromptError as error:
            faulty.add(KNOWHALU_FAMILY)
            yield PromptFault(str(error))
    yield from (_family(name, reasoners, folder) for name, reasoners in _families().items() if name not in faulty)
    if folder is not None:
        yield from _unused(folder)
    if KNOWHALU_FAMILY not in faulty:
        yield _rendered(folder)


def _families() -> dict[str, set[str]]:
    """Return the reasoners that use each family of prompts, except KnowHalu's, which is rendered in full."""
    families = {REVISION_FAMILY: {REWRITERS["llm"]}}
    for card in METHODS.values():
        if "llm" in card.reasoners and card.options != KNOWHALU_FAMILY and not card.stages:
            families.setdefault(card.options, set()).add(card.reasoners["llm"])
    return dict(sorted(families.items()))


def _family(family: str, reasoners: set[str], folder: Path | None) -> str | PromptFault:
    """Load the prompts and examples of a family with all of its reasoners, as before a run."""
    try:
        for reasoner in sorted(reasoners):
            import_object(reasoner)(LLMOptions(prompts=folder))
    except PromptError as error:
        return PromptFault(str(error))
    return f"all prompts of {family} load with their examples"


def _rendered(folder: Path | None) -> str | PromptFault:
    """Render every prompt for every task, form and formulation."""
    count = 0
    try:
        for formulation in FORMULATIONS:
            book = KnowHaluPromptBook(LLMOptions(prompts=folder), formulation)
            for sample in DEFAULT_SAMPLES.values():
                for form in KnowledgeForm:
                    for name in book.family.prompts:
                        render_request(book, name, sample, form)
                        count += 1
    except PromptError as error:
        return PromptFault(str(error))
    return f"{count} prompts rendered for every task, form and formulation"


def _unused(folder: Path) -> Iterator[PromptFault]:
    known = sorted(_prompt_files(packaged_folder()))
    for name, file in sorted(_prompt_files(folder).items(), key=lambda item: item[1]):
        if name not in known:
            near = get_close_matches(name, known, 1, cutoff=0.5)
            remedy = f"Did you mean {near[0]}?" if near else f"The names are: {', '.join(known)}."
            yield PromptFault(f"{file}: nothing uses a file of this name. {remedy}")


def _prompt_files(folder: Path) -> dict[str, Path]:
    """Return the files of prompts and of examples, by their names in the folder."""
    return {f.relative_to(folder).as_posix(): f for ending in ("*.txt", "*.toml") for f in folder.rglob(ending)}

"""The prompts of Factored Verification: rendered from the prompt files and their worked examples, the user's first."""

import tomllib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, create_model, model_validator

from knowhalu.errors import PromptError
from knowhalu.options import LLMOptions
from knowhalu.prompts import Prompt, Shown, joined, load_prompt, packaged_folder, section
from knowhalu.reasoners.asking import asking
from knowhalu.steps import Generate
from knowhalu.types import Passage, Record

CLAIM, CLAIMS, REASONING, SUPPORTED = "Claim", "Claims", "Reasoning", "Supported"
YES, NO, NONE = "Yes", "No", "none"
Text = Annotated[str, Field(min_length=1)]


class ClaimsExample(Record):
    """A text and the claims of each of its sentences."""

    question: str = ""
    before: str = ""
    sentences: tuple[Text, ...] = Field(min_length=1)
    claims: tuple[tuple[Text, ...], ...]

    @model_validator(mode="after")
    def _of_each_sentence(self) -> "ClaimsExample":
        if len(self.claims) != len(self.sentences):
            raise ValueError("give the claims of each sentence, [] where it has none")
        return self


class Source(Record):
    """A source as an example shows it."""

    text: Text
    title: str = ""


class SupportedExample(Record):
    """A claim, its sources, and whether they support it."""

    sources: tuple[Source, ...] = Field(min_length=1)
    claim: Text
    reasoning: Text
    supported: bool


E = TypeVar("E", bound=Record)


class FactoredBook:
    """Render the requests; raises PromptError, when it is made, where a prompt or an example file cannot be used."""

    def __init__(self, options: LLMOptions, *, reasons: bool = True) -> None:
        self.options, self.reasons = options, reasons
        folder = options.prompts
        shown = [_claims_shown(e) for e in load_examples("claims", ClaimsExample, folder)]
        self._claims = self._settled("claims", shown, ("text",))
        judged = [self._supported_shown(e) for e in load_examples("supported", SupportedExample, folder)]
        self._supported = self._settled("supported", judged, ("sources", "claim"))

    def claims(self, question: str | None, before: str, sentences: Sequence[str]) -> Generate:
        """Ask for the claims of these sentences; `before` is the text that they follow."""
        return asking(self._claims, self.options, text=_text_shown(question or "", before, sentences))

    def supported(self, question: str | None, claim: str, passages: Iterable[Passage]) -> Generate:
        """Ask whether passages support a claim: for the reasons first, or at once for the label."""
        asked = [section("Question", question)] if question else []
        shown = [*asked, section(CLAIM, claim), section(REASONING if self.reasons else SUPPORTED)]
        return asking(self._supported, self.options, sources=_sources_shown(map(str, passages)), claim=joined(shown))

    def _settled(self, name: str, shown: Sequence[Shown], holes: Sequence[str]) -> Prompt:
        prompt = load_prompt(f"factored/{name}", self.options.prompts)
        fixed = {"demonstrations": Shown("\n\n".join(shown))} if "demonstrations" in prompt.holes else {}
        settled = prompt.settled(**fixed)
        settled.render(**dict.fromkeys(holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled

    def _supported_shown(self, example: SupportedExample) -> Shown:
        why = [section(REASONING, example.reasoning)] if self.reasons else []
        sources = _sources_shown(f"{s.title}: {s.text}" if s.title else s.text for s in example.sources)
        said = Shown(YES if example.supported else NO)
        return joined([sources, section(CLAIM, example.claim), *why, section(SUPPORTED), said])


def claim_lines(claims: Iterable[tuple[int, str]]) -> str:
    """Write claims as the model is to write them, each with the number of its sentence."""
    return "\n".join(f"{number}: {claim}" for number, claim in claims)


def _text_shown(question: str, before: str, sentences: Sequence[str]) -> Shown:
    head = [section(name, text) for name, text in (("Question", question), ("Before", before)) if text]
    return joined([*head, *(section(f"Sentence {i}", s) for i, s in enumerate(sentences, 1)), section(CLAIMS)])


def _claims_shown(example: ClaimsExample) -> Shown:
    listed = [(i, claim) for i, claims in enumerate(example.claims, 1) for claim in claims or (NONE,)]
    return joined([_text_shown(example.question, example.before, example.sentences), Shown(claim_lines(listed))])


def _sources_shown(texts: Iterable[str]) -> Shown:
    return joined(section(f"Source {i}", text) for i, text in enumerate(texts, 1))


@lru_cache(maxsize=16)
def load_examples(name: str, kind: type[E], folder: Path | None = None) -> tuple[E, ...]:
    """Load `factored/examples/NAME.toml`, the user's in place of the packaged one; raises PromptError naming the file."""
    place = f"factored/examples/{name}.toml"
    own = folder / place if folder is not None else None
    file = own if own is not None and own.is_file() else packaged_folder() / place
    whole: Any = create_model("Examples", __base__=Record, examples=(tuple[kind, ...], Field(min_length=1)))  # type: ignore[valid-type]
    try:
        read: Any = whole.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{file}: cannot read the examples ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{file}: not TOML ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(p + 1) if isinstance(p, int) else p for p in first["loc"] if p != "examples")
        raise PromptError(f"{file}: example {at}: {first['msg']}") from error
    found: tuple[E, ...] = read.examples
    return found

"""The prompts of Factored Verification: rendered from the prompt files and their worked examples, the user's first."""

from collections.abc import Iterable, Sequence

from pydantic import Field, model_validator

from knowhalu.demonstrations import Source, Text, examples_file, read_examples
from knowhalu.options import LLMOptions
from knowhalu.prompts import Prompt, Shown, joined, load_prompt, section
from knowhalu.reasoners.asking import asking
from knowhalu.steps import Generate
from knowhalu.types import Passage, Record

CLAIM, CLAIMS, REASONING, SUPPORTED = "Claim", "Claims", "Reasoning", "Supported"
YES, NO, NONE = "Yes", "No", "none"
FAMILY = "factored"


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


class SupportedExample(Record):
    """A claim, its sources, and whether they support it."""

    sources: tuple[Source, ...] = Field(min_length=1)
    claim: Text
    reasoning: Text
    supported: bool


class FactoredBook:
    """Render the requests; raises PromptError, when it is made, where a prompt or an example file cannot be used."""

    def __init__(self, options: LLMOptions, *, reasons: bool = True) -> None:
        self.options, self.reasons = options, reasons
        folder = options.prompts
        shown = [_claims_shown(e) for e in read_examples(examples_file("claims", folder, FAMILY), ClaimsExample)]
        self._claims = self._settled("claims", shown, ("text",))
        judged = [self._supported_shown(e) for e in read_examples(examples_file("supported", folder, FAMILY), SupportedExample)]
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
        prompt = load_prompt(f"{FAMILY}/{name}", self.options.prompts)
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

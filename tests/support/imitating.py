"""A language model that answers as the prompt's own worked examples do, so that any method's replies can be read."""

import hashlib
import re

from knowhalu.errors import StageError
from knowhalu.requests import Completion, Generate

CONTEXT = 400_000
"""Characters that a prompt may have; a longer one gets the error of a model whose context is full."""
_HEADING = re.compile(r"### ([^:\n]*?)( \d+)?:[ \t]*$")

_LIST = re.compile(r"(?:\d+: [^\n]*\n?)+")
_NUMBERED = re.compile(r"^### [^:\n]* (\d+): (.*)$", re.MULTILINE)


def imitated(request: Generate) -> Completion:
    """Answer with one of the choices, or with what stands under the same heading in one of the examples.

    Raises StageError for a prompt that is longer than the context.
    """
    if len(request.prompt) > CONTEXT:
        raise StageError("generate", "the prompt has more tokens than the model's context; give a shorter source")
    draw = hashlib.sha256(f"{request.prompt[request.fixed :]}{request.prefill}{request.seed}".encode()).digest()
    if request.choices:
        return _chosen(request.choices, draw[0])
    heading = _HEADING.search((request.prompt + request.prefill).rstrip("\n").rpartition("\n")[2])
    examples = _examples(request, heading[1], heading[2] or "") if heading else []
    text = examples[draw[0] % len(examples)] if examples else " It stands in the source."
    text = _listed(request) if _LIST.fullmatch(text.strip()) else text
    return Completion(
        text, logprobs=(-0.1, -0.05), prompt_tokens=len(request.prompt.split()), completion_tokens=len(text.split())
    )


def _chosen(choices: tuple[str, ...], number: int) -> Completion:
    best = choices[number % len(choices)]
    rest = 0.3 / max(1, len(choices) - 1)
    return Completion(best, choices={c: 0.7 if c == best and len(choices) > 1 else 1.0 if c == best else rest for c in choices})


def _listed(request: Generate) -> str:
    """Return each numbered text of the sample as its own line: what lists parts of a text must not list those of another."""
    return "\n" + "\n".join(f"{number}: {text}" for number, text in _NUMBERED.findall(request.prompt[request.fixed :]))


def _examples(request: Generate, name: str, number: str) -> list[str]:
    """Return what follows each heading of this name, of this number if there is one, up to where a model would be stopped."""
    headings = list(re.finditer(rf"^### {re.escape(name)}( \d+)?:", request.prompt[: request.fixed], re.MULTILINE))
    headings = [m for m in headings if (m[1] or "") == number] or headings
    found = [request.prompt[m.end() : request.fixed] for m in headings]
    ends = [min([len(t), *(i for stop in request.stop if (i := t.find(stop)) >= 0)]) for t in found]
    return [text[: min(end, 4 * request.max_tokens)] for text, end in zip(found, ends, strict=True)]

"""The measured figures of revision as Markdown."""

from collections.abc import Mapping
from typing import Any

Measures = Mapping[str, Any]
_HEAD = """\
Hallucinated summaries whose faithful twin is known are revised. The rules of substitution were written by hand after a look
at 60 pairs of BUMP; all pairs on their documents are left out. In brackets: 95 % bootstrap interval, texts on one document
drawn together. A refused text counts as empty."""
_SENTENCES = """\
*Removed or repaired*: wrong sentences that are gone, or have the very words of the faithful twin; *altered*: reworded in
another way. *Faithful kept*: sentences beside the wrong ones that stand as they were; *twin kept*: the same where the faithful
text itself was revised. *Passed but changed*: sentences that the detector had passed and that changed all the same.

| error | pairs | flagged | removed | repaired | altered | removed or repaired | faithful kept | twin kept | passed but changed |
|---|---|---|---|---|---|---|---|---|---|"""
_TEXTS = """\
| set | pairs | revised / same / refused | ROUGE-L before | after | words before | after | gain where revised | twin kept |
|---|---|---|---|---|---|---|---|---|"""


def markdown(result: Mapping[str, Mapping[str, Measures]]) -> str:
    """Lay out both tables."""
    lines = [_HEAD, "", _TEXTS]
    for name, parts in result.items():
        lines += [f"| {name}{'' if part == 'all' else f', {part}'} | {_texts(m)} |" for part, m in parts.items()]
    for name, parts in result.items():
        if "flagged" in parts["all"]:
            lines += ["", f"By sentence, {name}. {_SENTENCES}", *(f"| {part} | {_sentences(m)} |" for part, m in parts.items())]
    return "\n".join(lines) + "\n"


def _ranged(value: list[float]) -> str:
    return f"{value[0]:.3f} [{value[1]:.3f}, {value[2]:.3f}]"


def _texts(m: Measures) -> str:
    cells = [str(m["pairs"]), " / ".join(str(n) for n in m["statuses"].values()), *(
        _ranged(m[name]) for name in ("rouge_l_before", "rouge_l_after", "words_before", "words_after")
    ), f"{m['rouge_l_gain_of_revised']:+.3f}", _ranged(m["twin_words_kept"])]  # fmt: skip
    return " | ".join(cells)


def _sentences(m: Measures) -> str:
    shares = ("flagged", "removed", "repaired", "altered", "removed_or_repaired", "faithful_kept", "twin_kept")
    return " | ".join([str(m["pairs"]), *(_ranged(m[name]) for name in shares), str(m["passed_but_changed"])])

"""A detector that decides by words, a writer that says what a test tells it to, and a way to revise with them."""

from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import StageError
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.edits import ProposedRewrite, editable_spans
from knowhalu.methods.revise.guarded import GuardedRevision
from knowhalu.results import Change, Evidence, Revision, Segment, Verdict
from knowhalu.types import HallucinationKind, Judgment, Label, Sample

HALLUCINATED = {Label.CORRECT: False, Label.INCORRECT: True, Label.INCONCLUSIVE: None}
WORSE = [Label.CORRECT, Label.INCONCLUSIVE, Label.INCORRECT]
SOURCE = "Mars is red. It has two moons."


def by_words(sentence, text):
    """ "wrong" is false, "unsure" is open, "later" is false where "first" does not stand in the text too."""
    said = set(sentence.lower().strip(".- ").split())
    if "broken" in said:
        raise StageError("judge", "the reply has no label", reply="gibberish")
    if "wrong" in said or ("later" in said and "first" not in text):
        return Label.INCORRECT
    return Label.INCONCLUSIVE if "unsure" in said else Label.CORRECT


class Detector:
    """Judges sentences by a function of the sentence and the text; `size` sentences share a segment."""

    name = "scripted"

    def __init__(self, judge=by_words, size=1):
        self.judge, self.size, self.checked = judge, size, []

    def check(self, sample):
        self.checked.append(sample.response)
        yield from ()
        text = sample.response
        if "beside the point" in text:
            return verdict(sample, Label.INCORRECT, (), HallucinationKind.OFF_TARGET)
        spans = editable_spans(text)
        groups = [spans[i : i + self.size] for i in range(0, len(spans), self.size)]
        segments = tuple(self._segment(text, group) for group in groups)
        worst = max((s.label for s in segments), key=WORSE.index)
        return verdict(sample, worst, segments)

    def _segment(self, text, group):
        label = max((self.judge(s.text, text) for s in group), key=WORSE.index)
        start, end = group[0].start, group[-1].end
        evidence = Evidence(
            response_start=start, response_end=end, relation="supports" if label is Label.CORRECT else "contradicts",
            probability=0.9, passage="k", title="", quote=SOURCE[:12], start=0, end=12, document="k", document_start=0,
        )  # fmt: skip
        judgment = Judgment(label=label, confidence=0.9, rationale=f"it is {label}")
        return Segment(
            start=start, end=end, text=text[start:end], label=label, base=judgment,
            probability=0.6 if "perhaps" in text[start:end] else WORSE.index(label) / 2,
            evidence=() if label is Label.INCONCLUSIVE else (evidence,),
        )  # fmt: skip


def verdict(sample, label, segments, kind=None):
    hallucinated = HALLUCINATED[label]
    return Verdict(
        id=sample.id,
        task=sample.task,
        method="scripted",
        label=label,
        hallucinated=hallucinated,
        kind=kind or (HallucinationKind.FACTUAL if hallucinated else None),
        probability=WORSE.index(label) / 2,
        reason=f"all is {label}",
        segments=segments,
    )


class Writer:
    """Proposes what the script has for a sentence, one wording at a time, and notes what it was asked."""

    def __init__(self, script=None, how="rewritten"):
        self.script, self.how, self.asked = script or {}, how, []

    def propose(self, fault, sources, refused):
        self.asked.append((fault, refused))
        yield from ()
        left = [t for t in self.script.get(fault.sentence, ()) if t not in refused]
        return tuple(ProposedRewrite(t, self.how) for t in left[:1])


def revise(text, script=None, *, detector=None, writer=None, question=None, **options):
    """Revise one text and return what comes back."""
    method = GuardedRevision(detector or Detector(), writer or Writer(script), ReviseOptions(**options))
    sample = Sample(id="1", response=text, question=question, knowledge=SOURCE)
    (found,) = Engine(method, Backends()).run([sample])
    return found


def judged(text, name="a"):
    """Return the verdict of the scripted detector on a text."""
    talk = Detector().check(Sample(id=name, response=text))
    try:
        next(talk)
    except StopIteration as end:
        return end.value


def make_revision(name, original, revised, status="revised", critiques=()):
    """Make a revision that replaces the whole text, judged before and after."""
    changes = [Change(start=0, end=len(original), text=original, new=revised, how="rewritten", why="so")] if revised else []
    return Revision(
        id=name, method="scripted", how="factored", status=status, reason="", original=original, revised=revised,
        changes=changes if status == "revised" else (), critiques=critiques, before=judged(original, name),
        after=judged(revised, name) if revised else None,
    )  # fmt: skip

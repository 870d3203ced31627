"""A method: compares the whole text with the whole source, once."""

from pydantic import Field

from knowhalu.extend import Conversation, Entail, EntailmentPair, Method, Record, Sample, Verdict, ask


class OneShot(Method):
    name, about, cost = "one-shot", "the whole text against the whole source, once", "1 pair"

    class Options(Record):
        threshold: float = Field(0.5, ge=0, le=1, description="a text with a lower P(supported) is hallucinated")

    def check(self, sample: Sample) -> Conversation[Verdict]:
        source = "\n".join([*sample.knowledge, *(document.text for document in sample.documents)])
        (p,) = yield from ask(Entail((EntailmentPair(source, sample.response, sample.question),)))
        return Verdict.of(sample, self.name, p_supported=p.supported, threshold=self.options.threshold)

"""Texts with marks of layout: citations, lists and abbreviations, Markdown; the claims must be the same as without them."""

import re
from random import Random

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import PEOPLE, PLACES, TRADES, Fact, facts, pick

citation = variety("citation marks")
lists = variety("abbreviations and lists")
markdown = variety("Markdown")


def _joined(
    parts: list[Fact], texts: list[tuple[str, str]], between: str = " ", opening: str = "", question: str | None = None
) -> Pair:
    """Make a response of all parts, of which the hallucinated one has a wrong detail in the last; `texts` are (right, wrong)."""
    right = opening + between.join(t[0] for t in texts)
    wrong = opening + between.join([*(t[0] for t in texts[:-1]), texts[-1][1]])
    claims = tuple(p.right for p in parts)
    return Pair(tuple(p.source for p in parts), question, right, wrong, claims, (*claims[:-1], parts[-1].wrong))


_INSIDE = (
    "{s} [{n}].",
    "{s} [{n}, {m}].",
    "{s} [{n}][{m}].",
    "{s}[^{n}].",
    "{s} ({a}, {y}).",
    "{s} ({a} et al., {y}).",
    "{s} ({a} & {b}, {y}).",
    "{s} (see source {n}).",
    "{s} 【{n}†source】.",
    "{s} [Source {n}].",
    "{s} (source: document {n}).",
    "{s} [doc {n}].",
    "{s} ({a} and {b} {y}; {b} {z}).",
    "{s} [{n}–{m}].",
    "{s} ([{n}]).",
)  # noqa: RUF001
_AFTER = ("{s}. [{n}]", "{s}.[{n}]", "{s}.¹", "{s}.[{n},{m}]", "{s}. ({a} et al. {y})", "{s}.[^{n}]", "{s}. (Source: [{n}])")


def _cited(rng: Random, forms: tuple[str, ...]) -> Pair:
    parts = facts(rng, 2)
    form, (a, b) = rng.choice(forms), (n.split()[-1] for n in pick(rng, PEOPLE, 2))
    year = rng.randint(1990, 2021)

    def marked(text: str, number: int) -> str:
        return form.format(s=text.rstrip("."), n=number, m=number + 1, a=a, b=b, y=year, z=year + 1)

    return _joined(parts, [(marked(p.right, n), marked(p.wrong, n)) for n, p in enumerate(parts, 1)])


@citation
def before_the_stop(rng: Random) -> Pair:
    return _cited(rng, _INSIDE)


@citation
def after_the_stop(rng: Random) -> Pair:
    return _cited(rng, _AFTER)


@citation
def named_at_the_start(rng: Random) -> Pair:
    parts = facts(rng, 2)
    form = rng.choice(
        ("According to [{n}], {s}", "As stated in [{n}], {s}", "Per source {n}, {s}", "[{n}] {s}", "As [{n}] states, {s}")
    )
    return _joined(parts, [tuple(form.format(n=n, s=t) for t in (p.right, p.wrong)) for n, p in enumerate(parts, 1)])  # type: ignore[misc]


@citation
def with_a_list_of_sources(rng: Random) -> Pair:
    parts = facts(rng, 2)
    opening = _joined(parts, [(f"{p.right[:-1]} [{n}].", f"{p.wrong[:-1]} [{n}].") for n, p in enumerate(parts, 1)])
    heading = rng.choice(("Sources:", "References", "**Sources**", "## References"))
    tail = f"\n\n{heading}\n[1] https://example.org/a\n[2] https://example.org/b"
    return opening._replace(right=opening.right + tail, wrong=opening.wrong + tail)


_ABBREVIATED = (
    ("Dr. {a} moved to the U.S. in {y} and worked there as a {t}.", "year"),
    ("{a} Jr. sold approx. {n} sheep to St. {b} School in {y}.", "count"),
    ("Mt. {p} is climbed by e.g. guides, cooks, etc. from {p}, i.e. by {n} people a year.", "count"),
    ("Prof. J. R. {b} lives at No. {n} Mill Road in {p}.", "count"),
    ("The {p} Trading Co. Ltd. hired {n} clerks, cf. Fig. 3 of the report.", "count"),
    ("The council of {p} met from 9 a.m. to 4 p.m. on Jan. {d} and voted on item no. {k}.", "day"),
    ("{a} vs. {b} was heard in {p} in Sept. {y} by Judge K. Marsh.", "year"),
    ("Gen. {b} reached {p} at 6 p.m. on Feb. {d}, {y}, with ca. {n} men.", "count"),
    ("{p} Foods Inc. paid Ms. {b} a fee of $1.5 million in {y}.", "year"),
)


@lists
def abbreviations(rng: Random) -> Pair:
    sentence, changes = rng.choice(_ABBREVIATED)
    place, (a, b) = rng.choice(PLACES), pick(rng, PEOPLE, 2)
    known = {
        "p": place,
        "a": a,
        "b": b.split()[-1],
        "t": rng.choice(TRADES),
        "y": rng.randint(1902, 2015),
        "n": rng.randint(21, 95),
        "d": rng.randint(2, 14),
        "k": rng.randint(2, 9),
    }
    other = dict(known)
    key = {"year": "y", "count": "n", "day": "d"}[changes]
    other[key] = int(str(known[key])) + rng.choice((6, 13))
    right, wrong = sentence.format(**known), sentence.format(**other)
    extra = facts(rng, 1)[0]
    return Pair(
        (f"{right} {extra.source}",),
        None,
        f"{right} {extra.right}",
        f"{wrong} {extra.right}",
        (right, extra.right),
        (wrong, extra.right),
    )


def _listed(rng: Random, marks: tuple[str, ...], opening: str, between: str = "\n") -> Pair:
    parts = facts(rng, 3)
    return _joined(parts, [(f"{m}{p.right}", f"{m}{p.wrong}") for m, p in zip(marks, parts, strict=True)], between, opening)


_LEADS = ("Here is what the sources say:\n\n", "Key facts:\n", "The main points are:\n\n", "")


@lists
def bullets(rng: Random) -> Pair:
    mark = rng.choice(("- ", "* ", "• ", "+ ", "– "))  # noqa: RUF001
    return _listed(rng, (mark,) * 3, rng.choice(_LEADS), rng.choice(("\n", "\n\n")))


@lists
def numbered(rng: Random) -> Pair:
    form = rng.choice(("{}. ", "{}) ", "({}) "))
    return _listed(rng, tuple(form.format(i) for i in (1, 2, 3)), rng.choice(_LEADS))


@lists
def lettered(rng: Random) -> Pair:
    form = rng.choice(("{}) ", "({}) "))
    return _listed(rng, tuple(form.format(i) for i in "abc"), rng.choice(_LEADS))


@lists
def nested(rng: Random) -> Pair:
    parts = facts(rng, 3)
    marks = rng.choice((("- ", "  - ", "  - "), ("1. ", "   - ", "   - "), ("* ", "    * ", "* ")))
    return _joined(parts, [(f"{m}{p.right}", f"{m}{p.wrong}") for m, p in zip(marks, parts, strict=True)], "\n")


@lists
def fields(rng: Random) -> Pair:
    place = rng.choice(PLACES)
    parts = facts(rng, 3, place=place)
    form = rng.choice(("- {h}: {v}", "- **{h}:** {v}", "- {h} - {v}", "* *{h}*: {v}", "{h}: {v}"))
    texts = [[form.format(h=p.heading, v=v) for v in p.detail] for p in parts]
    right = "\n".join(t[0] for t in texts)
    wrong = "\n".join([texts[0][0], texts[1][0], texts[2][1]])
    return Pair((" ".join(p.source for p in parts),), f"What do we know about {place}?", right, wrong)


@lists
def dated_items(rng: Random) -> Pair:
    place, year = rng.choice(PLACES), rng.randint(1950, 2015)
    events = rng.sample(("floods", "a strike", "a fire", "the first tram", "a harvest fair", "a drought"), 3)
    document = " ".join(f"{place} saw {e} in {year + i}." for i, e in enumerate(events))
    form = rng.choice(("- {y}: {e}", "- {y} - {e}", "* **{y}** – {e}", "{y}: {e}", "- {e} ({y})"))  # noqa: RUF001
    right, wrong = (
        [form.format(y=year + i, e=e) for i, e in enumerate(es)] for es in (events, [events[1], events[0], events[2]])
    )
    opening = rng.choice((f"Timeline of {place}:\n", f"What happened in {place}:\n\n", ""))
    return Pair((document,), f"What happened in {place}?", opening + "\n".join(right), opening + "\n".join(wrong))


@lists
def inline_list(rng: Random) -> Pair:
    place = rng.choice(PLACES)
    goods = rng.sample(("wool", "tin", "barley", "honey", "glass", "timber", "salt"), 4)
    document = f"{place} exports {goods[0]}, {goods[1]} and {goods[2]}. It imports {goods[3]}."
    right = rng.choice(
        (
            f"{place} exports {goods[1]}, {goods[2]} and {goods[0]}.",
            f"{place} exports (1) {goods[0]}, (2) {goods[1]}, and (3) {goods[2]}.",
            f"{place} exports {goods[0]}; {goods[1]}; and {goods[2]}.",
        )
    )
    wrong = right.replace(goods[rng.randrange(3)], goods[3])
    return Pair((document,), None, right, wrong, (_unnumbered(right),), (_unnumbered(wrong),))


def _unnumbered(text: str) -> str:
    return re.sub(r"\(\d\) ", "", text)


def _marked(rng: Random, forms: tuple[str, ...]) -> Pair:
    parts = facts(rng, 2)
    form = rng.choice(forms)
    return _joined(
        parts, [(form.replace("{s}", p.right[:-1]), form.replace("{s}", p.wrong[:-1])) for p in parts], rng.choice((" ", "\n\n"))
    )


@markdown
def emphasis(rng: Random) -> Pair:
    return _marked(rng, ("**{s}.**", "*{s}.*", "__{s}.__", "{s}**.**", "***{s}.***", "_{s}._", "<b>{s}.</b>"))


@markdown
def bold_detail(rng: Random) -> Pair:
    parts = facts(rng, 2)
    mark = rng.choice(("**", "*", "`", "_", "__"))
    texts = [tuple(t.replace(d, f"{mark}{d}{mark}") for t, d in zip((p.right, p.wrong), p.detail, strict=True)) for p in parts]
    return _joined(parts, texts)  # type: ignore[arg-type]


@markdown
def links(rng: Random) -> Pair:
    parts = facts(rng, 2)
    form = rng.choice(
        ("[{d}](https://example.org/{n})", '[{d}](https://example.org/{n} "page")', "[{d}][{n}]", "<a href='/x'>{d}</a>")
    )
    form = "[{d}](/{n})" if form == "[{d}][{n}]" and any(p.detail[0].isdigit() for p in parts) else form  # "[12][1]" is two marks
    texts = [
        tuple(t.replace(d, form.format(d=d, n=n)) for t, d in zip((p.right, p.wrong), p.detail, strict=True))
        for n, p in enumerate(parts, 1)
    ]
    return _joined(parts, texts)  # type: ignore[arg-type]


@markdown
def headings(rng: Random) -> Pair:
    parts = facts(rng, 2)
    level = rng.choice(("#", "##", "###"))
    opening = rng.choice(
        (f"{level} Answer\n\n", f"{level} Summary\n", "**Answer**\n\n", "Answer\n======\n\n", "**Summary:**\n\n")
    )
    return _joined(parts, [(p.right, p.wrong) for p in parts], "\n\n", opening)


@markdown
def headed_sections(rng: Random) -> Pair:
    parts = facts(rng, 2)
    level = rng.choice(("##", "###"))
    return _joined(parts, [(f"{level} {p.heading}\n{p.right}", f"{level} {p.heading}\n{p.wrong}") for p in parts], "\n\n")


@markdown
def quotes_and_rules(rng: Random) -> Pair:
    parts = facts(rng, 2)
    form, between = rng.choice(
        (("> {s}", "\n>\n"), ("{s}", "\n\n---\n\n"), ("> {s}", "\n\n"), ("{s}", "\n\n***\n\n"), ("{s}  ", "\n"))
    )
    return _joined(parts, [(form.format(s=p.right), form.format(s=p.wrong)) for p in parts], between)


@markdown
def footnotes(rng: Random) -> Pair:
    parts = facts(rng, 2)
    pair = _joined(parts, [(f"{p.right[:-1]}.[^{n}]", f"{p.wrong[:-1]}.[^{n}]") for n, p in enumerate(parts, 1)])
    tail = "\n\n[^1]: https://example.org/a\n[^2]: https://example.org/b"
    return pair._replace(right=pair.right + tail, wrong=pair.wrong + tail)

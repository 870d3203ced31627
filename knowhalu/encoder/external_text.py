"""The texts that an external verifier reads: its template filled in, tokenized as its library does, and cut to its length.

The name of a special token is one in a template only: in a source, a claim or a question it stays text.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tokenizers import Encoding, Tokenizer
from torch import Tensor

from knowhalu.encoder.backend import OVERLAP_TOKENS, WINDOW_TOKENS, WindowRow
from knowhalu.encoder.verifier import EncodedPair, pad_pairs
from knowhalu.errors import ModelError
from knowhalu.io.verifier_file import VerifierCard
from knowhalu.requests import EntailmentPair
from knowhalu.text.sentences import segments, windows

DEFAULT_WINDOW_WORDS = 120
"""A source over `WINDOW_TOKENS` is read in windows of these words, as with the packaged verifier; others are in proportion."""
CLAIM_SHARE, QUESTION_SHARE = 5 / 8, 3 / 8
"""Shares of a window's tokens up to which a claim is read whole, and a question is read."""
MIN_PREMISE_TOKENS = 16
_FIELD = re.compile(r"\{(premise|claim|question)\}")
_ASSUMED_UNKNOWN = ("[UNK]", "<unk>")


class _Filled(NamedTuple):
    """One text of a template, and the characters `(start, end)` that were filled in."""

    text: str
    fields: list[tuple[int, int]]


class TemplateTokenizer:
    """The tokenizer of a verifier's folder with the template of its card."""

    def __init__(self, folder: Path, card: VerifierCard, max_length: int, pad: int | None) -> None:
        path = folder / "tokenizer.json"
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            remedy = f"Write it by AutoTokenizer.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
            raise ModelError(f"{path}: cannot read the tokenizer ({error}). {remedy}") from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        added = self.tokenizer.get_added_tokens_decoder()
        self._special = {number for number, token in added.items() if token.special}
        names = sorted((added[n].content for n in self._special), key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, names))) if names else None
        known = (self.tokenizer.token_to_id(name) for name in _ASSUMED_UNKNOWN)
        self._unknown = next((number for number in known if number is not None), 0)
        self.pad = 0 if pad is None else pad
        self.card, self.max_length = card, max_length
        used = max(len(e.ids) for e in self._encode([("", "", None), ("", "", "")]))
        self.window = min(max_length, card.window * WINDOW_TOKENS // DEFAULT_WINDOW_WORDS)
        free = max_length - used - MIN_PREMISE_TOKENS
        self.max_claim = min(int(CLAIM_SHARE * self.window), free // 2)
        self.max_question = min(int(QUESTION_SHARE * self.window), free // 4)
        if self.max_question < 1:
            raise ModelError(f"{folder}: the template alone has {used} tokens of {max_length}. Give a larger max_length")

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts, without special tokens."""
        return [e.ids for e in self._plain(texts)]

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the offsets `(start, end)` in characters of each token of `pieces`."""
        return [e.offsets for e in self._plain(texts)]

    def batch(self, rows: Sequence[EncodedPair], length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Pad rows to one length: ids, mask and token types, each `(rows, length)`."""
        return pad_pairs(rows, length, self.pad)

    def rows(self, pairs: Sequence[EntailmentPair]) -> list[WindowRow]:
        """Split pairs into rows within the model's length: windows of long sources, pieces of long claims."""
        questions = [self._head(p.question, self.max_question) if p.question else None for p in pairs]
        lengths = map(len, self.pieces([p.claim for p in pairs]))
        claims = [self._claim_pieces(p.claim, length) for p, length in zip(pairs, lengths, strict=True)]
        wanted = [(i, n, c) for i, pieces in enumerate(claims) for n, c in enumerate(pieces)]
        whole = self._encode([(pairs[i].premise, c, questions[i]) for i, _, c in wanted])
        long = {i for (i, _, _), e in zip(wanted, whole, strict=True) if len(e.ids) > self.window}
        rows: list[WindowRow] = []
        for (i, number, claim), encoded in zip(wanted, whole, strict=True):
            views = self._views(pairs[i].premise, claim, questions[i]) if i in long else [encoded]
            rows += [WindowRow(view, i, number) for view in views]
        return rows

    def _views(self, premise: str, claim: str, question: str | None) -> list[EncodedPair]:
        """Encode a long source in windows; a window that exceeds the model's length is read in overlapping parts."""
        texts = [w.text for w in windows(premise, self.card.window, self.card.window // 3)] or [premise]
        rows: list[EncodedPair] = []
        for text, row in zip(texts, self._encode([(t, claim, question) for t in texts]), strict=True):
            rows += [row] if len(row.ids) <= self.max_length else self._parts(text, claim, question)
        return rows

    def _parts(self, text: str, claim: str, question: str | None) -> list[EncodedPair]:
        (bare,) = self._encode([("", claim, question)])
        room = max(1, self.max_length - len(bare.ids))
        (offsets,) = self.offsets([text])
        while True:  # a part may have more tokens alone than within its text
            step = max(1, room - min(OVERLAP_TOKENS, room // 2))
            starts = range(0, max(1, len(offsets) - (room - step)), step)
            cuts = [(offsets[a][0], offsets[min(a + room, len(offsets)) - 1][1]) for a in starts]
            rows = self._encode([(text[a:b], claim, question) for a, b in cuts])
            excess = max(len(row.ids) for row in rows) - self.max_length
            if excess <= 0:
                return rows
            if room == 1:
                raise ModelError(f"the claim {claim[:60]!r} leaves no room for a source in {self.max_length} tokens")
            room = max(1, room - excess)

    def _head(self, text: str, size: int) -> str:
        """Return the first tokens of a text, as text."""
        (offsets,) = self.offsets([text])
        return text if len(offsets) <= size else text[: offsets[size - 1][1]]

    def _claim_pieces(self, claim: str, length: int) -> list[str]:
        """Split a claim that is too long into segments, and a segment without spaces into slices; no token is left out."""
        if length <= self.max_claim:
            return [claim]
        parts = [s.text for s in segments(claim, max(10, self.max_claim // 4))]
        sliced: list[str] = []
        for text, offsets in zip(parts, self.offsets(parts), strict=True):
            starts = range(0, len(offsets), self.max_claim)
            sliced += [text[offsets[a][0] : offsets[min(a + self.max_claim, len(offsets)) - 1][1]] for a in starts]
        return sliced

    def _plain(self, texts: Sequence[str]) -> list[Encoding]:
        found: list[Encoding] = self.tokenizer.encode_batch([self._defused(t) for t in texts], add_special_tokens=False)
        return found

    def _defused(self, text: str) -> str:
        """Replace the signs in the names of special tokens by spaces, so that every offset stays the same."""
        if self._names is None:
            return text
        return self._names.sub(lambda m: "".join(c if c.isalnum() else " " for c in m[0]), text)

    def _encode(self, triples: Sequence[tuple[str, str, str | None]]) -> list[EncodedPair]:
        """Fill the template with (premise, claim, question) and tokenize it."""
        filled = [self._fill(*triple) for triple in triples]
        inputs = [parts[0].text if len(parts) == 1 else (parts[0].text, parts[1].text) for parts in filled]
        encodings = self.tokenizer.encode_batch(inputs)
        return [self._row(e, parts) for e, parts in zip(encodings, filled, strict=True)]

    def _fill(self, premise: str, claim: str, question: str | None) -> list[_Filled]:
        template = self.card.template if question is None else self.card.with_question
        values = {"premise": self._defused(premise), "claim": self._defused(claim), "question": self._defused(question or "")}
        filled = []
        for part in (template,) if isinstance(template, str) else template:
            text, fields, at = "", [], 0
            for match in _FIELD.finditer(part):
                text += part[at : match.start()]
                fields.append((len(text), len(text) + len(values[match[1]])))
                text, at = text + values[match[1]], match.end()
            filled.append(_Filled(text + part[at:], fields))
        return filled

    def _row(self, encoding: Encoding, parts: list[_Filled]) -> EncodedPair:
        """Return the tokens of a row; a special token that a normalizer made of a text is replaced by the unknown one."""
        ids, sequences = encoding.ids, encoding.sequence_ids
        if any(i in self._special for i in ids):
            tokens = zip(ids, sequences, encoding.offsets, encoding.special_tokens_mask, strict=True)
            ids = [
                self._unknown
                if i in self._special and not mask and s is not None and any(x <= a < b <= y for x, y in parts[s].fields)
                else i
                for i, s, (a, b), mask in tokens
            ]
        second = encoding.type_ids.index(1) if 1 in encoding.type_ids else len(ids)
        claim = sequences.index(1) if 1 in sequences else len(ids)
        return EncodedPair(ids, second, claim)

"""Build the late-interaction part: a compressed vector for every token of every passage, and the rows near each centroid."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from knowhalu.errors import InputError
from knowhalu.index.container import Floats
from knowhalu.index.part import POSTINGS_PER_RUN, IndexPart, PartManifest, PartWriter, PostingRuns, write_posting_lists
from knowhalu.index.passages import PassageRows
from knowhalu.index.protocols import TokenEncoder
from knowhalu.index.residuals import MAX_VECTORS_PER_CENTROID, ResidualCodec
from knowhalu.types import Passage

BATCH_PASSAGES = 256
"""Passages encoded at once."""
MAX_CENTROIDS = 2**16
CENTROIDS_PER_SQRT_TOKENS = 8.0
"""Centroids per square root of the number of tokens; the number is rounded down to a power of two."""


def passage_text(passage: Passage) -> str:
    """Return the input of the encoder: the title as a sentence, then the text."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def build_late_part(
    passages: PassageRows,
    folder: Path,
    content: str,
    encoder: TokenEncoder,
    *,
    bits: int = 4,
    centroids: int | None = None,
    seed: int = 0,
    run: int = POSTINGS_PER_RUN,
) -> PartManifest:
    """Write the late-interaction part of an index into `folder`.

    Centroids are learned from a sample of passages drawn by `seed`; memory holds the sample and one run of postings.
    Raises InputError where there is no passage.
    """
    if not len(passages):
        raise InputError("there is no passage to build a late-interaction index from. Add documents first")
    sample = _TrainingSample(passages, encoder, centroids, seed)
    codec = ResidualCodec.train(sample.vectors(), sample.centroids, bits, seed)
    with PartWriter(folder, "late") as out:
        runs = PostingRuns(out.work / "runs", run)
        out.add("centers", codec.centroids, "<f4")
        out.add("borders", codec.borders, "<f4")
        out.add("values", codec.values, "<f4")
        out.add("tokens", np.zeros(1), "<i8")
        step, total = centroid_key_step(len(codec.centroids)), 0
        for start, vectors in _encode_passages(passages, encoder, sample.known):
            codes, sizes = codec.compress(np.concatenate(vectors)), list(map(len, vectors))
            out.add("codes", codes.centroids, "<i4")
            out.add("residuals", codes.residuals, "u1")
            out.add("tokens", total + np.cumsum(sizes), "<i8")
            total += sum(sizes)
            rows = np.repeat(np.arange(start, start + len(vectors)), sizes)
            row, centroid = np.unique(np.stack([rows, codes.centroids], axis=1), axis=0).T
            runs.add(centroid.astype(np.uint64) * step, row, 1)
        write_posting_lists(out, runs)
        shutil.rmtree(runs.folder)
        settings: dict[str, str | int | float] = {"encoder": encoder.name, "fingerprint": encoder.fingerprint}
        return out.finish(content, len(passages), {**settings, "dimension": encoder.dimension, "bits": bits})


def centroid_key_step(centroids: int) -> np.uint64:
    """Return the distance between the keys of consecutive centroids, which spreads them over all 64-bit numbers."""
    return np.uint64((2**64 - 1) // centroids)


class _TrainingSample:
    """Passages sampled at random and encoded until there are enough tokens for training; each is encoded only once."""

    def __init__(self, passages: PassageRows, encoder: TokenEncoder, centroids: int | None, seed: int) -> None:
        self.known: dict[int, Floats] = {}
        order = np.random.default_rng(seed).permutation(len(passages)).tolist()
        tokens, self.centroids = 0, centroids or 1
        for start in range(0, len(order), BATCH_PASSAGES):
            rows = order[start : start + BATCH_PASSAGES]
            vectors = encoder.encode([passage_text(passages.get(row)) for row in rows])
            self.known.update(zip(rows, vectors, strict=True))
            tokens += sum(map(len, vectors))
            if centroids is None:
                expected = tokens / len(self.known) * len(passages)
                self.centroids = min(
                    MAX_CENTROIDS, 2 ** max(0, int(np.log2(max(1.0, CENTROIDS_PER_SQRT_TOKENS * np.sqrt(expected)))))
                )
            if tokens >= self.centroids * MAX_VECTORS_PER_CENTROID:
                break

    def vectors(self) -> Floats:
        return np.concatenate([self.known[row] for row in sorted(self.known)])


def _encode_passages(
    passages: PassageRows, encoder: TokenEncoder, known: dict[int, Floats]
) -> Iterator[tuple[int, list[Floats]]]:
    """Yield the token vectors of all passages in order, batch by batch, with the first row of each batch."""
    for start in range(0, len(passages), BATCH_PASSAGES):
        rows = range(start, min(start + BATCH_PASSAGES, len(passages)))
        missing = [row for row in rows if row not in known]
        vectors = encoder.encode([passage_text(passages.get(row)) for row in missing]) if missing else []
        known.update(zip(missing, vectors, strict=True))
        yield start, [known.pop(row) for row in rows]


def is_late_part_current(part: IndexPart, encoder: TokenEncoder, bits: int) -> bool:
    """Return whether a part was built by this encoder with this number of bits."""
    settings = part.head.settings
    return (settings.get("fingerprint"), settings.get("bits")) == (encoder.fingerprint, bits)

"""An index on disk: opened by its manifest, searched through memory maps, verified byte for byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.base import Embedder, check_k
from knowhalu.retrieval.exact import Exact, scores_of
from knowhalu.retrieval.faiss_search import FLAT, FaissFile, parse_parameters
from knowhalu.retrieval.manifest import (
    MANIFEST,
    NAME,
    SEARCH,
    Manifest,
    SearchParameters,
    hash_file,
    read_settled,
)
from knowhalu.retrieval.store import PassageStore, open_store
from knowhalu.retrieval.stored import KINDS, verify_parts
from knowhalu.retrieval.vectors import Floats, Vectors, open_vectors
from knowhalu.types import Passage

Ints = NDArray[np.int64]


class Nearest(NamedTuple):
    """Rows and their cosines, best first, `(queries, k)`; -1 where there are no more."""

    rows: Ints
    scores: Floats


class FaissIndex:
    """Search the passages of an index folder by the cosine of their vectors.

    With the factory "Flat" the result is exact. Otherwise FAISS finds candidates among the passages that were there when the
    index was built whole, and all later ones are compared. Either way the candidates are ranked by their stored vectors, and
    equal scores by the order of the documents. May be used from several threads.
    """

    def __init__(self, folder: Path, embedder: Embedder, parameters: SearchParameters | str | None = None) -> None:
        self.folder, self.embedder = Path(folder), embedder
        self.manifest = read_settled(self.folder)
        check_embedder(self.folder, self.manifest, embedder)
        usual = self.manifest.search.parameters
        if isinstance(parameters, str):
            parameters = parse_parameters(parameters, self.manifest.factory, usual)
        self.parameters = parameters or usual
        self.store = open_store(self.folder, self.manifest)
        self._vectors = vectors_of(self.folder, self.manifest)
        self._faiss = open_faiss(self.folder, self.manifest, self.store)
        self._exact = Exact(self._vectors, self.manifest.search.rows if self._faiss else 0)

    @classmethod
    def open(cls, folder: Path, embedder: Embedder, parameters: SearchParameters | str | None = None) -> "FaissIndex":
        """Open an index; raises IndexFormatError where it is missing, damaged or made by another embedder.

        `parameters` stand in for those that the index was built with; a text such as "nprobe=64" changes some of them, and
        is a SettingsError where it names what the index does not have.
        """
        return cls(folder, embedder, parameters)

    def __len__(self) -> int:
        """Return the number of passages."""
        return self.manifest.counts.passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query."""
        check_k(k)
        asked = [i for i, query in enumerate(queries) if query.strip()]
        found: list[list[Passage]] = [[] for _ in queries]
        if asked:
            near = self.nearest(self.embedder.encode([queries[i] for i in asked], query=True), k)
            for i, row, score in zip(asked, near.rows.tolist(), near.scores.tolist(), strict=True):
                found[i] = [self.store.get(n, s) for n, s in zip(row, score, strict=True) if n >= 0]
        return found

    def nearest(self, queries: Floats, k: int) -> Nearest:
        """Return the `k` nearest rows of each query vector `(n, dimension)`."""
        queries = np.ascontiguousarray(queries, np.float32)
        k = min(k, len(self))
        if k == 0:
            return Nearest(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32))
        guessed = np.zeros((len(queries), 0), np.int64)
        if self._faiss:
            count = min(self.manifest.search.rows, k * self.parameters.refine)
            guessed = self._faiss.candidates(queries, count, self.parameters)
        if not len(self._exact):
            return self._ranked(queries, guessed, k)
        want = min(k + 8, len(self._exact))
        while True:
            near = self._exact.candidates(queries, want)
            found = self._ranked(queries, np.hstack([guessed, near.rows]), k)
            # what lies behind the last candidate could be among the best only if it scored about as well as they
            if want == len(self._exact) or np.all(near.floor + self._exact.error < found.scores[:, -1]):
                return found
            want = min(4 * want, len(self._exact))

    def _ranked(self, queries: Floats, rows: Ints, k: int) -> Nearest:
        """Rank candidate rows `(n, m)` by their exact scores, then by document and number, and keep `k`."""
        alive = rows >= 0
        if len(self.store.edits.rows):
            alive &= ~self.store.edits.is_dead(rows)
        each, is_whole = np.arange(len(rows))[:, None], bool(alive.all())
        known = rows if is_whole else np.where(alive, rows, 0)
        scores = scores_of(queries, self._vectors, known)
        if not is_whole:
            scores[~alive] = -np.inf
        order = np.argsort(-scores, axis=1)
        best = scores[each, order]
        if np.any((best[:, 1:] == best[:, :-1]) & (best[:, 1:] > -np.inf)):
            places = self.store.places(known.ravel()).reshape(*rows.shape, 4)
            order = np.lexsort((places[..., 1], places[..., 0], -scores))
        order, best = order[:, :k], best[:, :k]
        return Nearest(np.where(best > -np.inf, rows[each, order], -1), best)


def vectors_of(folder: Path, manifest: Manifest) -> Vectors:
    """Open the vectors of all shards."""
    dimension, storage = manifest.embedder.dimension, manifest.storage
    opened = [
        open_vectors(folder / s.vectors, dimension, s.rows, storage, manifest.files[s.vectors].sha256) for s in manifest.shards
    ]
    return Vectors(opened, dimension)


def open_faiss(folder: Path, manifest: Manifest, store: PassageStore) -> FaissFile | None:
    """Open the FAISS file of an index; None where all vectors are compared."""
    if manifest.factory == FLAT:
        return None
    name, rows = next((n for n in manifest.files if n.startswith(SEARCH)), None), manifest.search.rows
    if name is None or not 0 < rows <= manifest.rows:
        raise IndexFormatError(f"{folder / MANIFEST}: names no FAISS file for its factory {manifest.factory}. Rebuild the index")
    dead = store.edits.rows
    return FaissFile(folder / name, rows, manifest.embedder.dimension, dead[: np.searchsorted(dead, rows)])


def check_embedder(folder: Path, manifest: Manifest, embedder: Embedder) -> None:
    """Raise IndexFormatError unless the embedder is the one that made the vectors."""
    made = manifest.embedder
    same = (made.fingerprint, made.dimension) == (embedder.fingerprint, embedder.dimension)
    if not same:
        raise IndexFormatError(
            f"{folder}: was built with the embedder {made.name!r} ({made.dimension} dimensions, {made.fingerprint[:12]}), not "
            f"with {embedder.name!r} ({embedder.dimension} dimensions, {embedder.fingerprint[:12]}). "
            f"Open it with {made.name!r}, or rebuild it with {embedder.name!r}"
        )


def read_info(folder: Path) -> Manifest:
    """Read what an index says of itself; raises IndexFormatError where there is none or a file has another size."""
    return read_settled(Path(folder))


def verify(folder: Path) -> list[str]:
    """Check every byte and count of an index folder and of its parts, and list what is wrong; an empty list means intact."""
    folder = Path(folder)
    try:
        manifest = read_info(folder)
    except IndexFormatError as error:
        return [str(error)]
    problems = [
        f"{folder / name}: its bytes have changed since the index was built (sha256 differs)"
        for name, entry in manifest.files.items()
        if hash_file(folder / name) != entry
    ]
    for path in sorted(folder.iterdir()):
        if path.name not in {MANIFEST, *manifest.files, *KINDS} or (path.name in KINDS and path.is_symlink()):
            rest = "; the next change of it clears this away" if NAME.fullmatch(path.name) else ""
            problems.append(f"{path}: does not belong to the index{rest}")
    problems += verify_parts(folder)
    try:
        store = open_store(folder, manifest)
        problems += store.problems()
        vectors_of(folder, manifest)
        if not problems:
            open_faiss(folder, manifest, store)
    except IndexFormatError as error:
        problems.append(str(error))
    return problems

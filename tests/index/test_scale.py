"""Scale: bounded memory, a compact set of keys, a factory chosen by size, several shards, Ray."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from knowhalu.errors import MissingExtra, ModelError, SettingsError
from knowhalu.index import faiss_file as faiss_search
from knowhalu.index.build import BuildProgress, build_index
from knowhalu.index.container import ShardVectors
from knowhalu.index.embedding import RayEmbeddingStage
from knowhalu.index.extension import verify_index
from knowhalu.index.faiss_file import choose_factory, default_parameters, parse_parameters
from knowhalu.index.manifest import Chunking, SearchParameters
from knowhalu.index.sharding import group_into_windows
from knowhalu.ingest.sources import SourceRecord
from knowhalu.io import keys
from knowhalu.io.keys import KEY_TYPE, KeySet, find_keys, make_key
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder, records


def test_a_key_set_behaves_like_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key is new once, whether it is pending or sorted in; keys that end in zeros are distinct."""
    monkeypatch.setattr(keys, "MAX_PENDING_KEYS", 100)
    known, tricky = KeySet(), [bytes([7] * n + [0] * (16 - n)) for n in range(17)]
    asked = [make_key(str(i % 700)) for i in range(1500)] + tricky * 2
    seen: set[bytes] = set()
    for key in asked:
        assert known.add(key) == (key not in seen)
        seen.add(key)


def test_a_key_set_takes_sixteen_bytes_a_key() -> None:
    """What it holds beyond that does not grow."""
    count = 200_000
    many = np.frombuffer(np.random.default_rng(0).bytes(16 * count), KEY_TYPE)
    known = KeySet()
    tracemalloc.start()
    known.load(many)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 16 * count <= size < 17 * count + 100_000


def test_find_keys_returns_positions() -> None:
    """All places and no others, also where only half of a key is equal."""
    held = np.array([b"a" * 16, b"a" * 8 + b"b" * 8, b"c" * 16, b"a" * 16, b"\0" * 16], KEY_TYPE)
    wanted = np.sort(np.array([b"a" * 16, b"d" * 16, b"\0" * 16], KEY_TYPE))
    assert find_keys(held, wanted).tolist() == [0, 3, 4] and find_keys(held, held[:0]).tolist() == []


def peak_of_build(out: Path, count: int) -> int:
    """Build an index of a stream of records and return the most memory that Python and numpy had."""

    class Quick(WordEmbedder):
        def encode(self, texts, *, query=False):
            found = np.zeros((len(texts), self.dimension), np.float32)
            found[:, 0] = 1
            return found

    rows = (SourceRecord(f"r{i}", "", f"passage number {i} " + "and so on " * 40, "") for i in range(count))
    tracemalloc.start()
    build_index(rows, out, Quick(dimension=64), shard=500, chunking=Chunking(words=0), factory="Flat")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the input needs no more memory, but for the 16 bytes of each key."""
    monkeypatch.setattr("knowhalu.index.sharding.WINDOW_PASSAGES", 500)
    peak_of_build(tmp_path / "imports", 100)
    small, large = peak_of_build(tmp_path / "small", 1500), peak_of_build(tmp_path / "large", 6000)
    assert large < small + 300 * 4500 / 2 and (tmp_path / "large").exists()


def test_windows_are_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few huge documents make a window of their own."""
    monkeypatch.setattr("knowhalu.index.sharding.WINDOW_CHARACTERS", 1000)
    sizes = [len(window) for window in group_into_windows(["x" * 750] * 6, len)]
    assert sizes == [2, 2, 2]


def test_the_default_factory_depends_on_the_size() -> None:
    """Few passages are compared one by one, more are held in 8 bits, very many as product codes; lists grow with them."""
    found = [choose_factory("auto", n, 384) for n in (1, 200_000, 1_000_000, 10_000_000, 20_000_000)]
    assert found == ["Flat", "Flat", "IVF2048,SQ8", "IVF8192,PQ96", "IVF8192,PQ96"]
    assert choose_factory("auto", 10_000_000, 1000) == "IVF8192,PQ50" and choose_factory("HNSW32", 5, 64) == "HNSW32"
    asked = default_parameters("IVF8192,PQ96")
    assert (asked.nprobe, asked.refine) == (64, 20) and default_parameters("HNSW32").refine == 4


@pytest.mark.parametrize("factory", ["IVF4,PQ5", "nonsense", "IVF4,PQ8,RFlat", "LSH", "PQ8"])
def test_an_invalid_factory_is_refused_before_reading(tmp_path: Path, factory: str) -> None:
    """The message says what to take instead."""
    with pytest.raises(SettingsError, match=f"factory '{factory}'"):
        build_index(iter(lambda: 1 / 0, 0), tmp_path / "index", WordEmbedder(), factory=factory)
    assert list(tmp_path.iterdir()) == []


def test_too_few_passages_for_a_factory_are_an_error(tmp_path: Path, words: WordEmbedder) -> None:
    """FAISS cannot learn 256 codes from a dozen vectors."""
    with pytest.raises(SettingsError, match="cannot be trained on 12 passages.*auto or Flat"):
        build_index(records(), tmp_path / "index", words, factory="IVF2,PQ4")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_corpora_get_an_approximate_index_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size decides, half precision halves the vectors, and good recall comes from ranking again."""
    monkeypatch.setattr(faiss_search, "MAX_FLAT_PASSAGES", 500)
    embedder, rows = WordEmbedder(), [SourceRecord(str(i), "", f"word{i} word{i % 13} word{i % 29}", "") for i in range(900)]
    seen: list[BuildProgress] = []
    made = build_index(rows, tmp_path / "index", embedder, shard=400, storage="float16", progress=seen.append)
    assert made.factory == "IVF64,SQ8" and verify_index(tmp_path / "index") == []
    assert [s.stage for s in seen[-3:]] == ["indexing"] * 3 and seen[-1].done == seen[-1].total == 900
    vectors = [e.size for n, e in made.files.items() if n.startswith("vectors")]
    assert sum(vectors) == 900 * 32 * 2 + 3 * 128
    build_index(rows, tmp_path / "flat", embedder, factory="Flat")
    asked = [r.text for r in rows[::30]]
    near, exact = (FaissIndex.open(tmp_path / n, embedder).search(asked, 10) for n in ("index", "flat"))
    hits = [len({p.id for p in a} & {p.id for p in b}) for a, b in zip(near, exact, strict=True)]
    assert np.mean(hits) >= 9.5


def test_vectors_of_several_shards_are_read_as_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever one begins and however they are cut, rows come in order, in float32."""
    monkeypatch.setattr("knowhalu.index.container.BLOCK_BYTES", 4 * 4 * 2)
    rows = np.arange(44, dtype=np.float16).reshape(11, 4)
    joined = ShardVectors([rows[:5], rows[5:5], rows[5:]], 4)
    for first in range(12):
        blocks = list(joined.blocks(first))
        assert np.array_equal(np.concatenate([b for _, b in blocks] or [np.zeros((0, 4))]), rows[first:])
        assert all(b.dtype == np.float32 and len(b) <= 2 and rows[at, 0] == b[0, 0] for at, b in blocks)
    assert np.array_equal(joined.gather(np.array([10, 0, 5, 4, 5])), rows[[10, 0, 5, 4, 5]].astype(np.float32))


def test_vectors_that_are_not_of_length_one_are_refused(tmp_path: Path) -> None:
    """A broken model does not make an index."""

    class Broken(WordEmbedder):
        def encode(self, texts, *, query=False):
            return super().encode(texts) * np.nan

    with pytest.raises(ModelError, match="vectors of length 1"):
        build_index(records(), tmp_path / "index", Broken())


def test_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the message names the extra."""
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"knowhalu\[ray\]"):
        RayEmbeddingStage(WordEmbedder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_produces_the_same_bytes(tmp_path: Path) -> None:
    """Shards embedded by workers are those of this process."""
    pytest.importorskip("ray")
    rows = [SourceRecord(str(i), f"t{i}", f"word{i} and word{i % 5}", "") for i in range(50)]
    build_index(rows, tmp_path / "here", WordEmbedder(), shard=9)
    build_index(rows, tmp_path / "ray", WordEmbedder(), shard=9, stage=RayEmbeddingStage(WordEmbedder))
    here, ray = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("here", "ray"))
    assert here == ray


@pytest.mark.parametrize(
    ("text", "factory", "message"),
    [
        ("nprob=3", "IVF16,SQ8", "'nprob' is not a parameter. An index of the factory IVF16,SQ8 takes nprobe and refine"),
        ("nprobe=3", "HNSW32", "takes ef_search and refine"),
        ("nprobe=3", "Flat", "its search is exact"),
        ("nprobe", "IVF16,SQ8", "write it as nprobe=NUMBER"),
        ("refine=0", "IVF16,SQ8", "from 1 to"),
        ("nprobe=99999999999", "IVF16,SQ8", "from 1 to"),
    ],
)
def test_invalid_search_parameters_are_refused(text: str, factory: str, message: str) -> None:
    """By its name and what the index has instead."""
    with pytest.raises(SettingsError, match=message):
        parse_parameters(text, factory, SearchParameters())


def test_search_parameters_change_only_what_is_named() -> None:
    """The rest stays as the index was built for."""
    usual = SearchParameters(nprobe=7, refine=20)
    assert parse_parameters("", "IVF16,SQ8", usual) == usual
    assert parse_parameters(" nprobe=32 , refine=8", "IVF16,SQ8", usual) == SearchParameters(nprobe=32, refine=8)
    assert parse_parameters("ef_search=9", "HNSW32", usual) == SearchParameters(nprobe=7, ef_search=9, refine=20)

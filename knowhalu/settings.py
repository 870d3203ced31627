"""The options of a run: one small frozen tree; every branch belongs to the part that reads it."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from knowhalu.results import RevisionStrategy
from knowhalu.types import KnowledgeForm, Record

CombinationRule = Literal["product", "minimum", "geometric", "calibrated"]


class KnowHaluOptions(Record):
    """Options of the KnowHalu method. Thresholds of None come from the reasoner's calibration."""

    base_form: KnowledgeForm = Field(KnowledgeForm.UNSTRUCTURED, description="the form of knowledge that is judged first")
    second_opinion: Literal["needed", "always", "never"] = Field("needed", description="when the other form is judged too")
    delta1: float | None = Field(None, ge=0.0, le=1.0, description="base judgments less sure than this are looked at again")
    delta2: float | None = Field(None, ge=0.0, le=1.0, description="and replaced by supplements surer than this")
    formulation: Literal["specific", "general", "combined"] = Field("combined", description="which form of a query is searched")
    off_target: bool = Field(True, description="check first whether an answer delivers what is asked for")
    max_steps: int = Field(10, ge=1, le=50, description="hops of one check at most")
    passages: int | None = Field(None, ge=1, le=100, description="top K for each query; None: 2 from an index, 3 from documents")
    segment_words: int = Field(30, ge=5, le=200, description="words of a segment of the response at most")


class ConliOptions(Record):
    """Options of CoNLI."""

    levels: Literal["both", "sentence", "entity"] = Field(
        "both", description="whole sentences, the entities of those that pass, or the entities of all"
    )
    select: bool = Field(True, description="leave out what claims nothing: greetings, headings, questions, markup")
    entities: str = Field("rules", description='who finds entities: "rules", "spacy:FOLDER" or "gliner:FOLDER"')
    batched: bool = Field(False, description="several hypotheses in one prompt: fewer calls, but labels without probabilities")
    batch_size: int = Field(8, ge=1, le=50, description="hypotheses in one prompt at most, where they are batched")
    source_words: int = Field(2000, ge=40, description="words of the sources that are read whole; of longer ones, chunks are")
    passages: int = Field(3, ge=1, le=100, description="passages of an index for each sentence, where a sample has no source")


class FactoredOptions(Record):
    """Options of Factored Verification. A theta of None is the one that was fitted for the verifier, or is stated for LLMs."""

    rule: CombinationRule = Field("product", description="how the probabilities of a text's claims are combined into one")
    theta: float | None = Field(None, ge=0.0, le=1.0, description="a combined probability under this is a hallucination")
    claims: Literal["split", "sentences"] = Field("split", description="what is judged: the claims of sentences, or sentences")
    reasons: bool = Field(True, description="an LLM gives its reasons before each label; false: the label at once, half the cost")
    source_words: int = Field(2000, ge=40, description="words of sources that are read whole; of more, chunks for each claim are")
    passages: int = Field(2, ge=1, le=100, description="top K from an index for each claim, where a sample has no source")
    uncited: Literal["skip", "all"] = Field(
        "skip", description="factored-academic: sentences that cite nothing are left out, or held against all sources"
    )
    unmatched: Literal["hallucinated", "inconclusive"] = Field(
        "hallucinated", description="factored-academic: what a citation that fits no source makes of the text"
    )


JudgeName = Literal["halueval", "halueval-knowledge", "halueval-cot", "zero-shot-cot", "few-shot"]
"""The judges whose votes self-consistency can count."""


class BaselineOptions(Record):
    """Options of the baselines: judges by one prompt, self-consistency, SelfCheckGPT and WikiChat's way of checking."""

    source_words: int = Field(
        1500, ge=40, le=100_000, description="words of sources shown whole; of more, the nearest chunks are"
    )
    passages: int = Field(2, ge=1, le=100, description="top K for each query to an index")
    temperature: float = Field(1.0, gt=0, le=2, description="at which judgments and responses are drawn")
    votes: int = Field(20, ge=2, le=100, description="self-consistency: judgments drawn, of which the majority decides")
    votes_by: JudgeName = Field("halueval-knowledge", description="self-consistency: the judge that is asked again and again")
    samples: int = Field(20, ge=1, le=100, description="selfcheck: responses drawn to hold the checked one against")
    score: Literal["max", "mean"] = Field(
        "max", description="selfcheck: a text is as inconsistent as its worst piece, or their mean"
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="selfcheck: inconsistency from which a text is hallucinated; 0.5: majority"
    )
    segment_words: int = Field(30, ge=5, le=200, description="selfcheck: words of a piece of a summary at most")
    pieces: int = Field(64, ge=1, le=1000, description="pieces of a response at most; those of a longer one are longer")


class TrivialOptions(Record):
    """The border of a trivial rule. There is none by itself: it is given, or fitted on labelled rows by `knowhalu compare`."""

    border: float | None = Field(
        None, allow_inf_nan=False, description="value over (or under) which a text counts as hallucinated"
    )
    direction: Literal["over", "under"] | None = Field(None, description="None: over for length and novelty, under for overlap")
    rule: Path | None = Field(None, description="file of fitted rules, as `knowhalu compare --fit` leaves it (trivial.json)")


LexicalRule = Literal["copied", "dates", "numbers", "names"]
"""What a rule looks at: sentences that stand in a source as they are, or what stands in none."""


class LexicalOptions(Record):
    """What rules on words may decide alone."""

    rules: tuple[LexicalRule, ...] = Field(
        ("copied",), description="what may decide; how often each is right depends on the texts: `knowhalu calibrate` measures it"
    )


class CascadeOptions(Record):
    """Options of the cascade: rules, then the encoder, then the language model for what the encoder leaves undecided."""

    rules: str = Field("lexical", description="a method that nobody thinks in, which begins; empty: the encoder begins")
    encoder: str = Field("knowhalu", min_length=1, description="the method by the encoder")
    llm: str = Field("knowhalu", min_length=1, description="the method by the language model, with --reasoner llm")
    low: float = Field(0.2, ge=-1.0, le=1.0, description="the encoder decides P(hallucinated) of at most this as faithful")
    high: float = Field(0.8, ge=0.0, le=1.0, description="and over this as hallucinated; what is between goes on")
    ask: Literal["needed", "always"] = Field("needed", description="later stages where an earlier one has decided: not, or too")

    @model_validator(mode="after")
    def _in_order(self) -> "CascadeOptions":
        if self.low > self.high:
            raise ValueError("cascade.low is over cascade.high")
        return self


class EncoderOptions(Record):
    """Where the verifier lies and how it runs."""

    folder: Path | None = Field(None, description="a verifier's folder; None: the packaged one")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 where the hardware has it")
    threads: int | None = Field(None, ge=1, description="CPU threads; None: all cores")
    tokens: int = Field(4096, ge=512, description="padded tokens in one forward pass")
    remember: int = Field(100_000, ge=0, description="judged pairs kept in memory for when they are asked again; 0: none")


class LLMOptions(Record):
    """Which language model thinks, where it runs, and how it is asked; read where `reasoner` is "llm"."""

    backend: str = Field("server", description='"server" (OpenAI-compatible), "vllm" or "transformers" (in this process)')
    model: str = Field("", description="the model's name on the server, or its local folder; empty: the server's only model")
    url: str = Field("http://127.0.0.1:8000/v1", description="address of the server")
    api_key_env: str = Field("KNOWHALU_API_KEY", description="environment variable that holds the server's key, if it wants one")
    style: Literal["auto", "chat", "completion"] = Field("auto", description="auto: chat where the model has a chat template")
    constrain: Literal["auto", "structured", "grammar", "logprobs"] = Field(
        "auto",
        description="how a server is held to the labels: vLLM's structured outputs, a llama.cpp grammar, top log-probabilities",
    )
    system: str | None = Field(None, description="system prompt in place of the prompt file's own; empty text: none")
    prompts: Path | None = Field(None, description="folder whose prompt files and demonstrations win over the packaged ones")
    votes: int = Field(
        1, ge=1, le=100, description="judgments drawn at temperature 1; over 1: their majority and its share decide"
    )
    seed: int = Field(0, description="seed of all drawing")
    concurrency: int = Field(64, ge=1, le=10_000, description="requests under way at a server at once")
    timeout: float = Field(120.0, gt=0, description="seconds that one request may take")
    retries: int = Field(4, ge=0, le=20, description="further tries after a server's error or a lost connection")
    cache: bool = Field(True, description="keep replies on disk and never ask the same twice")
    cache_folder: Path | None = Field(None, description="where replies are kept; None: the user's cache folder")
    cache_mb: int = Field(2048, ge=1, description="replies kept on disk at most, in megabytes; the longest unused go first")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="of an in-process model")
    prefix_mb: int = Field(4096, ge=1, description="memory for kept prefixes of an in-process transformers model")
    tensor_parallel: int = Field(1, ge=1, description="GPUs that an in-process vLLM model is spread over")
    max_length: int | None = Field(None, ge=256, description="context of an in-process vLLM model, in tokens")
    gpu_memory: float = Field(0.9, gt=0, le=1, description="share of the GPU's memory that vLLM may take")
    deterministic: bool = Field(False, description="batch-invariant kernels in vLLM: slower, the same reply whatever else runs")


SERVER_MODES = ("http", "qdrant")
"""Modes in which a server is asked, whatever index is named."""


class RetrievalOptions(Record):
    """Where evidence comes from when a sample brings none of its own."""

    index: Path | None = Field(None, description="index that is asked where a sample brings no source")
    embedder: str = Field("minilm", description='"minilm", a sentence-transformers folder, or "flag:FOLDER"')
    chunk_words: int = Field(40, ge=5, le=400, description="words of a chunk of a sample's own documents")
    mode: Literal["dense", "lexical", "hybrid", "late", "http", "qdrant"] = Field(
        "dense", description="how the index is searched: by vectors, words, both, tokens; or a running server, which is asked"
    )
    search: str = Field(
        "", description='how widely a FAISS index is searched, such as "nprobe=64,refine=8"; empty: as it was built for'
    )
    candidates: int = Field(100, ge=1, le=10_000, description="passages that each search of a hybrid gives to the fusion")
    fusion: Literal["scores", "ranks"] = Field(
        "scores", description="how a hybrid joins: by weighted scores, or by reciprocal ranks"
    )
    lexical_weight: float | None = Field(
        None, ge=0, description="weight of words beside 1 of vectors in a hybrid; None: 0.035 for scores, 1 for ranks"
    )
    token_encoder: str = Field("minilm-late", description='"minilm-late", or a ColBERT or PyLate folder, for mode "late"')
    reranker: str | None = Field(None, description='"verifier", or the folder of a cross-encoder: it orders what was found anew')
    rerank: int = Field(20, ge=1, le=1000, description="passages that a reranker reads for each query")
    rerank_weight: float | None = Field(
        None, ge=0, description="weight of the reranker beside the search; None: 0.8 for the verifier, others decide alone"
    )
    url: str | None = Field(None, description='address of the search server; read where mode is "http" or "qdrant"')
    collection: str = Field("knowhalu", description='name of the collection; read where mode is "qdrant"')
    timeout: float = Field(30.0, gt=0, description="seconds that a search server may take")
    retries: int = Field(3, ge=0, le=20, description="further tries after a search server's error or a lost connection")

    @property
    def has_source(self) -> bool:
        """Tell whether an index or a server is named."""
        return self.index is not None or self.url is not None or self.mode != "dense"


class ReviseOptions(Record):
    """How a text is revised."""

    how: RevisionStrategy = Field(
        "guarded", description="every change checked again; or as published: conli, factored, self-correction"
    )
    rounds: int = Field(3, ge=1, le=20, description="wordings tried for a sentence at most, before it is dropped")
    inconclusive: bool = Field(True, description="revise also what the sources leave open; false: let it stand")
    threshold: float = Field(
        0.67, ge=0.0, le=1.0,
        description="let stand what is less probably wrong; 0.67: losing a true sentence is twice as bad as keeping a wrong one",
    )  # fmt: skip
    source_words: int = Field(800, ge=40, description="words of the sources read for a rewriting at most; of more, the nearest")


class EngineOptions(Record):
    """How many checks run at once, and in which order results come."""

    in_flight: int = Field(128, ge=1, le=100_000, description="checks under way at once")
    batch: int = Field(64, ge=1, le=10_000, description="requests handed to a backend together, at most")
    ordered: bool = Field(True, description="outcomes in the order of the input, or as they finish")


class Settings(Record):
    """All that decides the result of a run."""

    method: str = Field("knowhalu", description="how to check")
    reasoner: str = Field("encoder", description="who thinks inside the method")
    profile: Path | None = Field(None, description="what `knowhalu calibrate` left: its method, thresholds and scaling are used")
    allow_fitted: bool = Field(False, description="use the profile also on rows that it was fitted on")
    knowhalu: KnowHaluOptions = KnowHaluOptions()
    conli: ConliOptions = ConliOptions()
    factored: FactoredOptions = FactoredOptions()
    baselines: BaselineOptions = BaselineOptions()
    trivial: TrivialOptions = TrivialOptions()
    lexical: LexicalOptions = LexicalOptions()
    cascade: CascadeOptions = CascadeOptions()
    encoder: EncoderOptions = EncoderOptions()
    llm: LLMOptions = LLMOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    revise: ReviseOptions = ReviseOptions()
    engine: EngineOptions = EngineOptions()

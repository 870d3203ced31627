"""A tiny tokenizer for tests: words known by heart, the others letter by letter."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,'-"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), "snow", "is", "white", "the", "of"]


def write_tokenizer(folder: Path) -> None:
    """Write a `tokenizer.json` of the BERT kind."""
    tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.save(str(folder / "tokenizer.json"))

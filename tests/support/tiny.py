"""A tiny tokenizer for tests: words known by heart, the others letter by letter."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

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


def write_library_tokenizer(folder: Path) -> None:
    """Write a `tokenizer.json` of the MPNet kind: the words of BERT, but `<s>`, `</s>` and `<pad>` around texts."""
    special = ["<s>", "<pad>", "</s>"]
    tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate([*special, *VOCABULARY])}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_special_tokens(special)
    tokenizer.enable_truncation(8)
    tokenizer.save(str(folder / "tokenizer.json"))


SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "pad_token_id": 1,
    "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2, "max_position_embeddings": 514,
}  # fmt: skip


def write_library_base(folder: Path, kind: str = "mpnet", seed: int = 0, **more: object) -> Path:
    """Write a tiny random encoder of the library, with its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModel

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, vocab_size=len(VOCABULARY) + 3, **{**SIZES, **more})
    AutoModel.from_config(config).save_pretrained(folder)
    write_library_tokenizer(folder)
    return folder

"""Extensions of KnowHalu: a data set and a verifier are files of the package."""

from pathlib import Path

MY_SET = Path(__file__).parent / "my-set.toml"
MY_VERIFIER = Path(__file__).parent / "my-verifier"

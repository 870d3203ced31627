"""The protocol of every method: a check of one sample is a conversation that ends in a verdict."""

from typing import Protocol, TypeVar

from knowhalu.requests import Conversation
from knowhalu.results import Verdict
from knowhalu.types import Record, Sample

R_co = TypeVar("R_co", bound=Record, covariant=True)


class Method(Protocol[R_co]):
    """A way to check a sample, or to revise it."""

    name: str

    def check(self, sample: Sample) -> Conversation[R_co]:
        """Check one sample."""


Detector = Method[Verdict]
"""A method that checks."""

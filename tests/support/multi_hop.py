"""A question of two hops with its pages, the queries and knowledge of a model, and a wrong answer."""

from knowhalu.types import Sample
from tests.support.thinking import Hop

PAGES = {
    "Metropolis": "Metropolis is a silent film of 1927. It was directed by Fritz Lang. It was shot in Babelsberg.",
    "Fritz Lang": "Fritz Lang was a film director. He was born in Vienna in 1890. He died in Beverly Hills in 1976.",
    "Vienna": "Vienna is the capital of Austria. It lies on the Danube.",
}
QUESTION = "In which city was the director of the film Metropolis born?"
HOPS = [
    Hop("First find the director.", "Who directed the film Metropolis?", "Who was the director of Metropolis?",
        "The film Metropolis was directed by Fritz Lang.", "(Metropolis, was directed by, Fritz Lang)"),
    Hop("It is Fritz Lang. Now his place of birth.", "Was Fritz Lang born in Berlin?", "Where was Fritz Lang born?",
        "Fritz Lang was born in Vienna in 1890.", "(Fritz Lang, was born in, Vienna), (Fritz Lang, was born in, 1890)"),
]  # fmt: skip
WRONG = {"CORRECT": 0.001, "INCORRECT": 0.998, "INCONCLUSIVE": 0.001}
SAID = "Knowledge 1 names Fritz Lang. Knowledge 2 says that he was born in Vienna, while the answer says Berlin."


def wrong_answer():
    return Sample(id="w", question=QUESTION, response="He was born in Berlin.")

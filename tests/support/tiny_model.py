"""A tiny language model that is all its own distribution: it knows what it wants to say, and is never quite sure of it."""

import hashlib
import math
import random
import re
import string

PIECES = (
    "CORRECT", " CORRECT", "COR", "RECT", "IN", " IN", "INC", "CON", "ON", "CLUSIVE", "CONCLUSIVE", " INCONCLUSIVE", " the",
    " of", " a", "Reason", "Judgment", ":", " it", ".", "\n", "\n\n", " read", "The", " reply", " is", " number", "<think>",
    "</think>",
)  # fmt: skip
VOCABULARY = tuple(dict.fromkeys((*PIECES, *string.ascii_letters, *string.digits, *" .,:;!?-'\"#()[]{}<>|/_=+*%&@$")))
END = ""


def tokenize(text):
    """Cut greedily into the longest known pieces; whatever is unknown is a token of its own."""
    by_length = sorted(VOCABULARY, key=len, reverse=True)
    tokens = []
    while text:
        token = next((p for p in by_length if text.startswith(p)), text[0])
        tokens.append(token)
        text = text[len(token) :]
    return tokens


def number_of_token(token):
    return VOCABULARY.index(token) if token in VOCABULARY else 1000 + ord(token)


def token_of_number(number):
    return VOCABULARY[number] if number < 1000 else chr(number - 1000)


def number_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def wants_a_number(prompt):
    return f"The reply is number {number_of(prompt) % 1000}.\nIt is done."


class TinyModel:
    """`wants(prompt)` is what it would like to say; `after` gives the probability of every token.

    What a prompt puts into <<double brackets>> is a choice; the model tends to go on with one after a colon.
    """

    def __init__(self, wants=wants_a_number, sure=0.6):
        self.wants, self.sure = wants, sure

    def after(self, prompt, written):
        noise = random.Random(number_of(f"{prompt}|{written}"))
        weights = {token: math.exp(5 * noise.random()) for token in (*VOCABULARY, END)}
        begun = written.rpartition(":")[2]
        for token in VOCABULARY:
            if (begun + token).strip() and any(o.startswith((begun + token).lstrip()) for o in re.findall("<<(.*?)>>", prompt)):
                weights[token] *= 20_000
        total = sum(weights.values())
        spread = {token: weight / total for token, weight in weights.items()}
        wanted = self.wants(prompt)
        if not wanted.startswith(written):
            return spread
        rest = wanted[len(written) :]
        favourite = tokenize(rest)[0] if rest else END
        found = {token: p * (1 - self.sure) for token, p in spread.items()}
        return {**found, favourite: found.get(favourite, 0.0) + self.sure}

    def write(self, prompt, begun="", *, max_tokens=16, stop=(), allowed=(), tokens=(), temperature=0.0, seed=0):
        """Return the text, the tokens with their whole distributions, and why it ended."""
        draw = random.Random(f"{seed}|{number_of(prompt + begun)}")
        text, steps = "", []
        while len(steps) < max_tokens:
            after = self.after(prompt, begun + text)
            open_ones = {t: p for t, p in after.items() if not allowed or fits(text, t, allowed)}
            open_ones = {t: after.get(t, 0.0) for t in tokens} or open_ones
            token = choose(open_ones, temperature, draw)
            if token == END:
                return text, steps, "stop"
            steps.append((token, after))
            text += token
            if found := [at for s in stop if (at := text.find(s)) >= 0]:
                return text[: min(found)], steps, "stop"
            if text in allowed and not any(a != text and a.startswith(text) for a in allowed):
                return text, steps, "stop"
        return text, steps, "length"


def fits(text, token, allowed):
    return text in allowed if token == END else any(a.startswith(text + token) for a in allowed)


def choose(probabilities, temperature, draw):
    if temperature == 0:
        return max(probabilities, key=probabilities.__getitem__)
    weights = [p ** (1 / temperature) for p in probabilities.values()]
    return draw.choices(list(probabilities), weights)[0]

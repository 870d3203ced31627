"""What people say to be polite and what claims nothing: greetings, thanks, praise, assent and offers."""

import re

from knowhalu.text.sentences import content_words, words

_NAME = r"(?-i:[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)"  # noqa: RUF001
_GREETING = (
    rf"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?:,? {_NAME}(?=[,!]))?|welcome|greetings|dear [\w .]+"
    r"|goodbye|bye|see you(?: soon| later)?|take care|cheers|(?:kind|best|warm) regards|sincerely"
    r"|(?:have|enjoy) (?:an?|the rest of (?:your|the)) (?:(?:very|really) )?(?:nice|great|good|lovely|wonderful|fantastic|safe"
    r"|pleasant) [a-z]+(?: ahead)?)"
)
_INTERJECTION = r"(?:(?:oh|ah)(?:,? (?:no|dear|my|well|wow|yes|okay|ok))?|wow|aw+|hmm+|ooh|oops|ouch|whoa|yay|hooray|phew)"
_THANKS = (
    r"(?:thanks?(?: you)?(?: (?:so|very) much| a lot)?(?: for [^.!?,;]+)?|you(?:'re| are) (?:very |most )?welcome|no problem"
    r"|my pleasure|not at all|(?:i )?apologi[sz]e[^.!?,;]*"
    r"|(?:i'm |i am )?(?:so |very )?sorry(?: (?:about|for|to hear)[^.!?,;]{0,60})?)"
)
_PRAISE = (
    r"(?:(?:that(?:'s| is)|what) an? )?(?:great|good|excellent|interesting|nice|fantastic|important|tricky|wonderful)"
    r" (?:question|point|choice|idea)(?: to ask)?|congratulations|well done|i understand(?: your [\w ]+)?|i see|got it|understood"
    r"|good luck[^.!?]*|enjoy(?: your [\w ]+)?"
)
ASSENT = r"(?:sure(?: thing)?|certainly|of course|absolutely|definitely|okay|ok|alright|gladly|with pleasure|happy to help)"
_ASK = r"(?:questions?|help|information|details|assistance|more|else)"
_OFFER = (
    r"(?:please |just )?(?:feel free to|let me know|do not hesitate to|don't hesitate to|contact (?:me|us) if|reach out)[^.!?]*"
    r"|(?:i|we)(?: would|'d|'ll| will|'m| am)?(?: be)? (?:happy|glad|here) to (?:help|assist)[^.!?]*"
    r"|(?:just |please )?(?:drop|give|send|shoot|ping) (?:me|us) an? (?:line|shout|ring|call|message|note|e-?mail)[^.!?]*"
    r"|(?:i )?hope (?:this|that|it) (?:helps|helped|was)[^.!?]*|(?:is there )?anything else[^.!?]*"
    rf"|(?:how|what) (?:can|may) i (?:help|assist|do)[^.!?]*|if you (?:have|need) (?:any |more |further )[^.!?]*{_ASK}[^.!?]*"
    r"|if (?:anything|something)(?: else)? (?:comes up|is unclear|remains unclear)(?=,)"
)
_COURTESY = re.compile(
    rf"[^\w]*(?:and )?(?:{_GREETING}|{_INTERJECTION}|{_THANKS}|{_PRAISE}|{ASSENT}|{_OFFER})(?!\w)"
    rf"(?:[,!. ]+(?:there|all|everyone|friend|again)(?!\w)|, {_NAME}(?=!))?\W*",
    re.IGNORECASE,
)
_ASSENT = re.compile(rf"\W*{ASSENT}\W*", re.IGNORECASE)
MAX_COURTESY_WORDS = 16
_VOCABULARY = frozenset(
    content_words(
        """
        hello hi hey good great nice lovely morning afternoon evening night day weekend welcome back again greetings
        thank thanks appreciate glad happy pleased pleasure delighted sorry apology apologies apologize apologise
        regret inconvenience confusion mistake misunderstanding delay trouble patience waiting help assist assistance
        ask question questions request further anything something else know let feel free hesitate reach look explain
        clarify detail details information info answer need want like wish wishes hope luck enjoy care bye goodbye
        farewell see soon later next time talk chat meet best regards cheers congratulations done understand sense
        point clear unclear sure certainly course absolutely definitely okay ok problem worry worries anytime mention
        here there interesting excellent fantastic wonderful important tricky choice idea try trip journey make makes
        have had happen i clears clearer clear clarified helps comes come up get touch contact whenever week holiday
        reaching writing calling checking
        """
    )
)
_OPENING = re.compile(
    r"\W*(?:hello|hi|hey|good|great|nice|welcome|thanks?|glad|happy|pleased|delighted|sorry|apologies|no (?:problem|worries)|just"
    r"|best|all the best|until|see|talk|take|enjoy|bye|goodbye|farewell|cheers|anytime|congratulations|that|please|let|hope"
    r"|if)\b",
    re.IGNORECASE,
)
_CONTRACTION = re.compile(r"(?<=\w)['’](?:m|s|re|ll|d|ve)\b")  # noqa: RUF001
_PERSON = re.compile(r"\b(?:i|me|my|we|us|you|your)\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|never|no(?! (?:problem|worries))|cannot)\b|n['’]t\b(?! (?:mention|hesitate|worry))", re.I)  # noqa: RUF001


def is_courtesy(text: str) -> bool:
    """Tell whether a sentence only is polite: by its form, or as all of its words are those of courtesies."""
    if _consists_of_courtesies(text):
        return True
    text = _CONTRACTION.sub("", text)
    tokens, content = words(text), content_words(text)
    if not content or len(tokens) > MAX_COURTESY_WORDS or _NEGATED.search(text):
        return False
    return _VOCABULARY.issuperset(content) and bool(_OPENING.match(text) or _PERSON.search(text))


def _consists_of_courtesies(text: str) -> bool:
    """Tell whether one courtesy follows another to the end of a text."""
    at = 0
    while at < len(text) and (m := _COURTESY.match(text, at)):
        at = m.end()
    return 0 < at == len(text)


def is_assent(text: str) -> bool:
    """Tell whether a courtesy says yes: "Sure!"."""
    return _ASSENT.fullmatch(text) is not None

"""Word lists and the patterns made of them. Data only, written for this project."""

import re

AUXILIARIES = "is are was were am do does did has have had can could will would should shall may might must".split()
"""Verbs that open a yes-or-no question and carry a negation."""

QUESTION_WORDS = "what which who whom whose when where how why".split()

PERSON_NOUNS = """
    person man woman actor actress author singer writer director player president king queen scientist artist band team
    company composer musician politician architect painter poet engineer footballer group club
""".split()
"""After "which" or "what": the question asks for a person or group."""

PLACE_NOUNS = """
    country city state town place continent county village region province capital street island river mountain district
    location nation borough area
""".split()
"""After "which" or "what": the question asks for a place."""

TIME_NOUNS = "year years date day month decade century time".split()
"""After "which" or "what": the question asks for a time."""

MEASURE_ADJECTIVES = "many much long old tall high far large big fast deep heavy often wide".split()
"""After "how": the question asks for a number."""

QUANTITY_NOUNS = """
    number population price cost size height length area percentage share capacity distance weight temperature score amount
    age total rate budget sum proportion
""".split()
"""After "what is the": the question asks for a number."""

SHARE_NOUNS = "number percentage proportion share amount".split()
"""After "which" or "what": the question asks for a number."""

MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SEASONS_AND_HOLIDAYS = "Spring Summer Autumn Winter Christmas Easter".split()
TIMES_OF_DAY = "yesterday today tomorrow tonight noon midnight morning evening afternoon".split()
CARDINALS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty
""".split()
"""Number words by their value."""
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
TENS = "thirty forty fifty sixty seventy eighty ninety hundred".split()
RELATIVE_TIMES = """
    first second third after before until till since when once while during never every next last immediately now two three
    four five six seven eight nine ten twenty
""".split()
"""Words by which an answer to "when" may give a time without a date."""

NUMBER_WORDS = (
    [*CARDINALS, *TENS, *ORDINALS[:10]]
    + """
    thousand million billion dozen half quarter none no nobody both once twice double twin twins all every never daily weekly
    monthly yearly annually quarterly free fortnight decade century single pair
""".split()
)
"""Words by which an answer to "how many" may give a number without a digit."""

VAGUE_WORDS = """
    someone somebody something somewhere sometime person people man woman thing things many various several different
    certain special particular general kind kinds sort sorts type types lot lots number amount often usually past recently
    recent long ago early late later latter time times period century day days year years well known famous popular
    important notable major large small big good great nice interesting multiple numerous few part area place places country
    city region world group organisation organization company individual figure work works related involve involved
    associate associated connect connected field industry reason reasons way ways factor factors one ones other others
    local own name named called possible matter detail details outside inside building profession job element
    examination consultation common normal fact fairly quite really keep kept take took make made get got come came go went
    give given
""".split()
"""Unspecific words: an answer made of these alone is too general."""

YES_NO_OPENINGS = "yes no yeah yep nope true false correct incorrect indeed never both neither only not".split()
"""First words that settle a yes-or-no question."""


HELPERS = frozenset(
    """
    is are was were be been being am has have had do does did can could will would shall should may might must isn't aren't
    wasn't weren't hasn't haven't hadn't don't doesn't didn't can't cannot couldn't won't wouldn't not never
    """.split()
)
"""Words that may stand before the main verb of a predicate."""

VERBS = (HELPERS - {"not", "never"}) | frozenset(
    """
    became began bore bought brought built came chose cut drew drove fell felt fought found flew gave got grew held kept
    knew led left lent let lost made meant met paid put ran read rose said sang sat saw sent set shot showed sold spent
    spoke stood struck swam taught told took thought understood went won wrote lies lay lived flows rises runs stars plays
    comes gives takes makes says holds leads stands owns contains includes means covers joins borders serves opens starts
    begins ends costs needs wants remains becomes belongs consists connects crosses feeds forms wears goes gets allows
    requires describes tells shows follows features marks hosts uses lasts meets measures orbits produces represents
    separates supports
    """.split()
)
"""Verbs at which a clause is split into subject, predicate and object; regular past forms are recognised by their ending."""

PREPOSITIONS = frozenset(
    """
    in on at by to from for of with as into onto over under between among after before during since until near through
    against about
    """.split()
)
DETERMINERS = frozenset("a an the this that these those its his her their our my your some any no each every".split())
PRONOUNS = frozenset("he she it they this these who which i we".split())


def any_word_pattern(words: list[str]) -> str:
    """Return a regular expression for any of the words, as whole words."""
    return rf"\b(?:{'|'.join(words)})\b"


_DOES_NOT = r"(?:does|do|did)(?: not|n't)"
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|do not|don't)"
REFUSAL_PATTERN = re.compile(
    "|".join(
        (
            r"^(?:n/?a|none given|not (?:available|applicable|provided|known))\W*$",
            r"^(?:sorry, )?no idea\b|^(?:i'm |i am )?(?:very |so )?sorry\W*$",
            r"^unknown(?=\W*$|\s*[,.;:!(]|\s(?:to me|to us|from|based)\b)",  # not "Unknown Pleasures"
            r"\b(?:i|we)(?:'m| am|'re| are)? ?(?:unable|unsure|not (?:sure|able|certain|aware))\b",
            rf"\b(?:i|we) {_CANNOT} (?:know|answer|say|tell|find|determine|help|recall|verify|confirm|provide|give|work)\b",
            r"\bi(?: would|'d) (?:rather|have to(?! (?:say|go))|need)\b",
            rf"\b{_DOES_NOT} (?:say|state|mention|specify|give|tell|contain|provide|record|include|name|reveal)\b"
            r"(?:(?: it| this| that)?\W*$|"
            r"[^.]*\b(?:me|who|when|what|where|which|how|why|enough|whether|information|answer|that)\b)",
            r"\bnot (?:stated|mentioned|specified|given|clear|known|possible to say)\b"
            r"(?! (?:as|till|before)\b| for (?!certain|sure))",
            r"\b(?:nothing (?:in|here)|no (?:\w+ )?information|not enough (?:information|detail)|insufficient information)\b",
            r"\bcan(?:not|'t) be (?:answered|determined|said|told)\b",
            r"\b(?:beyond (?:my|what)|without (?:more|further) (?:information|details)|(?:is|are) silent on)\b",
        )
    ),
    re.IGNORECASE,
)
"""Ways to decline an answer."""

FIRST_PERSON_PATTERN = re.compile(any_word_pattern("i i'm i'd i've me my we us".split()), re.IGNORECASE)
INABILITY_PATTERN = re.compile(
    any_word_pattern("not cannot can't don't won't wouldn't couldn't nothing neither unable unsure decline impossible".split())
    + r"|\b(?:known|unknown|clear|unclear|there) (?:to|for) (?:me|us)\b|\b(?:something|one) i can\b|\b(?:guessing|unanswered)\b"
    r"|\b(?:is|was|are|have|has)(?:n't| not) (?:been given|enough|given|got|possible|something|sufficient)\b|\btoo little\b"
    r"|\bno (?:answer|basis|(?:clear )?definition|(?:clear )?explanation|way)\b|\b(?:lack|lacking|missing|short of)\b"
    r"|\bmore than (?:i|we) (?:am|can|could|know)\b|\b(?:beyond|escapes) (?:me|us)\b|\bleaves? (?:me|us) without\b"
    r"|\b(?:does|do|did)(?:n't| not) (?:let|allow|stretch)\b"
    r"|\brather than guess\b|\bleave\b[^.]{0,60} open\b|\bi(?:'ll| will| must)? pass\b",
    re.IGNORECASE,
)
"""With a first person and without a number, these make a refusal in other words."""
OPINION_PATTERN = re.compile(
    r"\b(?:i|we)(?:'d| would| do| can only| only)? (?:think|believe|guess|suppose|suspect|assume|imagine)\b"
    r"|\b(?:my|our) (?:guess|bet|view|opinion|impression)\b",
    re.IGNORECASE,
)
"""Openings of an opinion, which is no refusal."""
_CONTRAST = any_word_pattern("but however though although until yet except".split())
CONTRAST_PATTERN = re.compile(_CONTRAST, re.IGNORECASE)
CLAUSE_BREAK_PATTERN = re.compile(
    r"[;:–—]|,(?= (?:i|we) (?:think|believe|guess|suppose|suspect|assume)\b)|,? "  # noqa: RUF001
    + _CONTRAST
    + r"|, (?:and|so)\b",
    re.IGNORECASE,
)
"""Where a sentence that declines may continue with a claim."""
REFUSAL_COURTESY_PATTERN = re.compile(
    r"^\W*(?:(?:i'm |i am )?(?:very |so )?sorry|i apologi[sz]e|apologies|unfortunately)(?: (?:about|for) (?:that|this))?\W*$"
    r"|^\W*i(?: lack|(?:'m| am) missing)\b"
    r"|^\W*(?:(?:unfortunately|sorry|i'm sorry),? (?:but )?)?(?:the|these|your) (?:provided |given )?"
    r"(?:sources?|documents?|text|context|passages?|article|information) (?:only |just )?"
    r"(?:describes?|discuss(?:es)?|mentions?|covers?|deals? with|talks? about|focus(?:es)? on|is about|are about)\b[^\d]*$"
    r"|^\W*(?:please |perhaps |maybe )?(?:you(?:'d| may| might| could| can| should| would)(?: \w+){0,3} )?"
    r"(?:ask|contact|check|consult|look|try|refer|search)\b",
    re.IGNORECASE,
)
"""Courtesies beside a refusal that claim nothing: regret, and where else to ask."""

_NEGATED_VERB = r"\b(?:is|was|were|are|did|does|do|has|had|have|can|could|will|would)(?:n't| not| never)\b"
NEGATION_PATTERN = re.compile(
    r"^(?:not(?! (?:quite|only|far|less|more|fewer|until|before|yet|long|just)\b)|never|neither|nobody|no one|none)\b"
    rf"|{_NEGATED_VERB}|\bnot (?:in|on|at|by|the|from|a|an)\b|\b(?:neither|nor)\b",
    re.IGNORECASE,
)
NEGATED_QUESTION_PATTERN = re.compile(r"\bnot\b|n't\b|\bnever\b", re.IGNORECASE)
POSITIVE_CONTRAST_PATTERN = re.compile(
    r"\bbut (?!not|no\b)|\brather[,;]|; |" + any_word_pattern("instead only except until because".split()), re.IGNORECASE
)
"""Where a negation continues with a positive statement."""
SUBORDINATE_PATTERN = re.compile(any_word_pattern("although whereas while who which that".split()), re.IGNORECASE)

MONTH_NAMES = "|".join(MONTHS)
DATE_PATTERN = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? )?(?:{MONTH_NAMES})\b(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?"
    r"|\b\d{4}s?\b|\b\d{1,2}(?:[:.]\d\d)? ?(?:a\.?m\.?|p\.?m\.?)?(?=\W|$)"
)
AMOUNT_PATTERN = re.compile(r"[$€£]?\d[\d,.]*\d(?: ?%| ?\w+)?|[$€£]?\d(?: ?%| ?\w+)?")
NAME_PATTERN = re.compile(
    r"\b[A-Z](?:\.|[\w'’-]*)"  # noqa: RUF001
    r"(?:\s+(?:(?:of|the|de|van|von|and) )?[A-Z](?:\.(?!\s*$)|[\w'’-]*))*"  # noqa: RUF001
)
"""A run of capitalised words, with initials and the small words inside names."""


def _names(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.replace("\n", " ").split(",") if part.strip())


COUNTRIES = _names("""
    Afghanistan, Albania, Algeria, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahrain, Bangladesh, Belarus,
    Belgium, Belize, Benin, Bhutan, Bolivia, Bosnia, Botswana, Brazil, Britain, Bulgaria, Burundi, Cambodia, Cameroon, Canada,
    Chad, Chile, China, Colombia, Congo, Costa Rica, Croatia, Cuba, Cyprus, Denmark, Ecuador, Egypt, El Salvador, England,
    Eritrea, Estonia, Ethiopia, Fiji, Finland, France, Gabon, Gambia, Germany, Ghana, Greece, Greenland, Guatemala, Guinea,
    Guyana, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Jamaica, Japan, Kazakhstan,
    Kenya, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, Liberia, Libya, Liechtenstein, Lithuania, Luxembourg,
    Madagascar, Malawi, Malaysia, Mali, Malta, Mauritania, Mauritius, Mexico, Moldova, Monaco, Mongolia, Montenegro, Morocco,
    Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, Niger, Nigeria, North Korea, Norway, Oman,
    Pakistan, Palestine, Panama, Paraguay, Peru, Philippines, Poland, Portugal, Qatar, Romania, Russia, Rwanda, Saudi Arabia,
    Scotland, Senegal, Serbia, Sierra Leone, Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, Spain,
    Sri Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, Tunisia, Turkey, Uganda,
    Ukraine, United Arab Emirates, United Kingdom, United States, Uruguay, Uzbekistan, Venezuela, Vietnam, Wales, Yemen, Zambia,
    Zimbabwe, UK, U.K., US, U.S., USA, UAE, EU
""")
CITIES = _names("""
    Amsterdam, Athens, Auckland, Baghdad, Bangkok, Barcelona, Beijing, Beirut, Belfast, Belgrade, Berlin, Bern, Birmingham,
    Bogota, Boston, Brasilia, Brisbane, Bristol, Brussels, Bucharest, Budapest, Buenos Aires, Cairo, Cambridge, Cape Town,
    Cardiff, Chicago, Cologne, Copenhagen, Dallas, Damascus, Delhi, Denver, Detroit, Dhaka, Dubai, Dublin, Edinburgh, Florence,
    Frankfurt, Geneva, Glasgow, Hamburg, Hanoi, Havana, Helsinki, Hong Kong, Houston, Istanbul, Jakarta, Jerusalem,
    Johannesburg, Kabul, Karachi, Kiev, Kyiv, Kyoto, Lagos, Leeds, Lima, Lisbon, Liverpool, London, Los Angeles, Lyon, Madrid,
    Manchester, Manila, Marseille, Melbourne, Mexico City, Miami, Milan, Minsk, Montreal, Moscow, Mumbai, Munich, Nairobi,
    Naples, New Delhi, New York, New York City, Nice, Oslo, Oxford, Paris, Philadelphia, Prague, Quito, Riga, Rio de Janeiro,
    Riyadh, Rome, Rotterdam, Salzburg, San Francisco, Santiago, Sao Paulo, Sarajevo, Seattle, Seoul, Shanghai, Sofia, Stockholm,
    Stuttgart, Sydney, Taipei, Tallinn, Tehran, Tel Aviv, Tokyo, Toronto, Tripoli, Tunis, Turin, Vancouver, Venice, Vienna,
    Vilnius, Warsaw, Washington, Wellington, Zagreb, Zurich, D.C.
""")
REGIONS = _names("""
    Africa, Alaska, America, Antarctica, Arctic, Asia, Atlantic, Bavaria, California, Caribbean, Crimea, Europe, Flanders,
    Florida, Hawaii, Latin America, Mediterranean, Middle East, North America, Northern Ireland, Pacific, Scandinavia, Siberia,
    Sicily, South America, Texas, Tuscany, Yorkshire, Danube, Rhine, Thames, Nile, Amazon, Mississippi, Alps, Andes, Himalayas
""")
PLACES = COUNTRIES | CITIES | REGIONS
NATIONALITIES = _names("""
    Afghan, African, Albanian, Algerian, American, Arab, Argentine, Armenian, Asian, Australian, Austrian, Belgian, Bolivian,
    Brazilian, British, Bulgarian, Canadian, Chilean, Chinese, Colombian, Croatian, Cuban, Czech, Danish, Dutch, Egyptian,
    English, Estonian, Ethiopian, European, Filipino, Finnish, French, German, Ghanaian, Greek, Hungarian, Icelandic, Indian,
    Indonesian, Iranian, Iraqi, Irish, Israeli, Italian, Jamaican, Japanese, Jewish, Kenyan, Korean, Latin, Latvian, Lebanese,
    Libyan, Lithuanian, Malaysian, Mexican, Mongolian, Moroccan, Muslim, Christian, Catholic, Protestant, Nepalese, Nigerian,
    Norwegian, Pakistani, Palestinian, Persian, Peruvian, Polish, Portuguese, Roman, Romanian, Russian, Saudi, Scottish,
    Serbian, Slovak, Slovenian, Spanish, Swedish, Swiss, Syrian, Thai, Tunisian, Turkish, Ugandan, Ukrainian, Vietnamese, Welsh,
    Americans, Australians, Brazilians, Canadians, Danes, Germans, Greeks, Indians, Italians, Russians, Swedes, Turks,
    Ukrainians, Republican, Republicans, Democrat, Democrats, Democratic, Conservative, Labour, Olympic
""")
PERSON_TITLES = frozenset(
    """
    Mr Mrs Ms Miss Dr Prof Professor Sir Lady Lord Dame President Chancellor Minister Senator Governor Mayor Judge Justice
    King Queen Prince Princess Duke Duchess Count Countess Baron Emperor Pope Bishop Archbishop Cardinal Saint Father Sister
    Captain Colonel General Major Lieutenant Sergeant Admiral Commander Officer Inspector Detective Rev Capt Col Gen Lt Sgt
    """.split()
)
"""Before a name: it is a person's."""
ORGANISATION_NOUNS = frozenset(
    """
    University College School Academy Institute Museum Gallery Library Hospital Bank Ministry Department Office Agency
    Authority Commission Committee Council Court Parliament Congress Senate Party Union Association Society Foundation Trust
    Federation League Club United Company Corporation Corp Inc Ltd LLC PLC GmbH AG Group Holdings Industries Partners Airlines
    Airways Motors Records Studios Pictures Press Times Post News Guardian Police Army Navy Force Church Orchestra Theatre
    Opera Bureau Board Service Services Organization Organisation Nations Laboratory Observatory Center Centre Brothers Sons
    """.split()
)
"""In a name: it is an organisation's."""
SITE_NOUNS = frozenset(
    """
    River Lake Sea Ocean Bay Gulf Strait Island Islands Isle Mount Mountain Mountains Hill Hills Valley Desert Forest Park
    Street Road Avenue Square Bridge Tower Castle Palace Cathedral Airport Station Harbour Harbor Port Beach Cape Peninsula
    Canal Dam Stadium City County State Province District Village Town Republic Kingdom Lower Upper North South East West
    Northern Southern Eastern Western Saint St Fort Hall Gardens Quarter Coast
    """.split()
)
"""In a name: it is a place's."""
COMPOUND_NAME_NOUNS = (
    ORGANISATION_NOUNS | SITE_NOUNS | {"House", "Battle", "Treaty", "Order", "Declaration", "States", "Duke", "Prince", "Bishop"}
)
"""Words after which "of" and "for" belong to a name: "Bank of England"; elsewhere they separate two names."""
SENTENCE_OPENERS = frozenset(
    """
    according additionally also another around because being besides both building critics despite doctors during each early
    eventually every everyone experts explain finally firefighters furthermore hence however including indeed instead
    investigators last late later least like many meanwhile moreover more most much never nevertheless next nobody none nothing
    officers officials often once only others otherwise part people perhaps police prosecutors recently researchers residents
    scientists several similarly since some someone sometimes soon still students such teachers thanks then therefore thousands
    though throughout thus today together tomorrow tonight under unlike until visitors voters when whenever where whether while
    within without workers yesterday yet man woman men women children parents water snow rain work art music life time
    """.split()
)
"""Words that often begin sentences and are no names."""
MEASUREMENT_UNITS = frozenset(
    """
    km kilometre kilometres kilometer kilometers m metre metres meter meters cm mm centimetre centimetres centimeter centimeters
    mile miles mph foot feet ft inch inches yard yards acre acres hectare hectares kg kilogram kilograms kilo kilos g gram grams
    ton tons tonne tonnes pound pounds lb lbs ounce ounces litre litres liter liters ml gallon gallons barrel barrels second
    seconds minute minutes hour hours day days week weeks month months year years decade decades century centuries degree
    degrees watt watts kw mw gw kilowatt kilowatts megawatt megawatts volt volts gb mb tb kb bytes people person men women
    children times time point points goal goals seat seats vote votes storey storeys story stories percent
    """.split()
)
"""After a number: what it counts or measures."""
CURRENCY_PATTERNS = (
    "dollars? euros? pounds? yen pence cents? francs? rupees? roubles? rubles? yuan pesos? kron[ae]r? USD EUR GBP JPY CHF".split()
)

"""English verbs: which words are verbs, and their forms. An irregular verb has its forms in a table, others by rule."""

from functools import cache

_IRREGULAR = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beat beaten|become became become|begin began begun|bend bent bent|
bet bet bet|bid bid bid|bind bound bound|bite bit bitten|bleed bled bled|blow blew blown|break broke broken|breed bred bred|
bring brought brought|broadcast broadcast broadcast|build built built|burst burst burst|buy bought bought|cast cast cast|
catch caught caught|choose chose chosen|cling clung clung|come came come|cost cost cost|creep crept crept|cut cut cut|
deal dealt dealt|dig dug dug|do did done|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|
feed fed fed|feel felt felt|fight fought fought|find found found|flee fled fled|fly flew flown|forbid forbade forbidden|
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got got|give gave given|go went gone|grow grew grown|
hang hung hung|have had had|hear heard heard|hide hid hidden|hit hit hit|hold held held|hurt hurt hurt|keep kept kept|
kneel knelt knelt|know knew known|lay laid laid|lead led led|leave left left|lend lent lent|let let let|lie lay lain|
light lit lit|
lose lost lost|make made made|mean meant meant|meet met met|overcome overcame overcome|oversee oversaw overseen|
overtake overtook overtaken|overthrow overthrew overthrown|pay paid paid|prove proved proven|put put put|quit quit quit|
read read read|rebuild rebuilt rebuilt|ride rode ridden|ring rang rung|rise rose risen|run ran run|say said said|see saw seen|
seek sought sought|sell sold sold|send sent sent|set set set|sew sewed sewn|shake shook shaken|shed shed shed|shine shone shone|
shoot shot shot|show showed shown|shrink shrank shrunk|shut shut shut|sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|
slide slid slid|speak spoke spoken|spend spent spent|spin spun spun|split split split|spread spread spread|spring sprang sprung|
stand stood stood|steal stole stolen|stick stuck stuck|strike struck struck|strive strove striven|swear swore sworn|
sweep swept swept|swim swam swum|swing swung swung|take took taken|teach taught taught|tear tore torn|tell told told|
think thought thought|throw threw thrown|undergo underwent undergone|understand understood understood|
undertake undertook undertaken|
wake woke woken|wear wore worn|weave wove woven|win won won|wind wound wound|withdraw withdrew withdrawn|write wrote written|
rewrite rewrote rewritten|withstand withstood withstood|foresee foresaw foreseen|cowrite cowrote cowritten|
co-write co-wrote co-written
"""
_REGULAR = """
abandon abolish absorb accept accompany accuse achieve acquire act adapt add address admire admit adopt advance advertise advise
advocate affect agree aim air allow alter amend announce annex answer appear apply appoint approach approve argue arrange arrest
arrive ascend ask assassinate assist assume attach attack attain attend attract audition author avoid award back ban base battle
befriend belong betray blame boast boil border borrow branch bury call campaign cancel captain capture care carry cause
celebrate censor challenge change chair charge chase circulate claim classify climb close co-found co-star co-produce co-direct
coach coin collaborate collapse collect colonise colonize command commemorate commence comment commission commit compare compete
compile complete compose comprise conceive concern conclude condemn conduct confess confirm connect conquer consider consist
construct consume contain continue contract contribute control convert convict cook cooperate coordinate copy correspond costar
cover create credit criticise criticize cross crown cultivate cure dance date deal debut decide declare decline decorate
decrease dedicate defeat defect defend define deliver demand demolish deny depart depend depict deploy derive describe desert
design destroy detect determine develop devote die differ direct disagree disappear discover discuss dislike dismiss display
disprove dissolve distribute divide divorce document dominate donate double draft dress drop drown earn edit educate elect elope
embark embrace emerge emigrate employ enable encounter encourage end endorse engage engrave enjoy enlist ensure enter entertain
erect erupt escape establish estimate evacuate evolve exceed exchange execute exhibit exist expand expect experience explain
explode explore export expose express extend face fail farm favor favour fear feature fill film finance finish fire fit flood
flow focus follow force form formulate found function fund gain gather generate govern graduate grant guard guess guest guide
hail handle happen hatch hate head heat help hire hope host house hunt identify illustrate imagine immigrate impact import
impose imprison improve include incorporate increase influence inform inhabit inherit initiate injure insist inspire install
intend interview introduce invade invent invest investigate invite involve isolate issue join judge jump kidnap kill kiss label
lack land last laugh launch learn liberate license lift like limit link list listen live lobby locate look love maintain manage
manufacture march mark market marry master match mate matter measure mention merge migrate mine model move murder name narrate
need negotiate nest nickname nominate note notice number nurse obey observe obtain occupy occur offer open operate oppose orbit
order organise organize originate outlaw outnumber outlive own paint participate pass patent patrol patronise perform persuade
photograph pilot pioneer pitch place plan plant play plead pledge point portray pose possess postpone pour practice practise
praise pray preach precede predate predict prefer premiere prepare present preserve preside prevent print proclaim produce
program prohibit project promise promote propose prosecute protect protest provide publish pull punish purchase pursue push
qualify race rank rap reach react receive recognise recognize recommend record recover recruit reduce refer reflect refuse
regard reign reject relate release relocate rely remain remake remember remove rename renovate rent reopen repair repeat replace
report represent reproduce request require rescue research reside resign resist resolve respond rest restore result retain
retire return reveal revise revive revolve reward rob rotate rule sail sample save scan score scout sculpt search secure seem
select separate serve settle shape share shelter ship shop shout sign signal smell smoke smuggle solve sound spell specialise
specialize split sponsor stage star start starve state stay stem stop store study subdue submit succeed suffer suggest suit
supervise supply support surpass surrender surround survive switch symbolise symbolize talk target taste tax tend test testify
threaten tie top total touch tour trace trade train transfer transform translate transport travel treat trigger try tune turn
twin unify unite unveil urge use utilise utilize vacate value visit voice vote wait walk want warn wash watch weigh welcome
whisper wish witness work worship worry yield purr bark growl hibernate orbit breathe bloom digest absorb pollinate lean glow
melt evaporate rotate shine sneeze yawn blink chew swallow bounce sting crawl soar glide nod blow brew bake roast grill fry mix
stir pour squeeze peel chop grind rain snow thunder erode vibrate spin flash knit sew stitch weave repel cheer boo bully tease
mock scold comfort console hug respect trust doubt assume pretend apologise apologize behave cease persist linger deploy hack
encrypt download upload google browse click scroll type edit tweet stream premier syndicate adopt coexist collide commute defect
deliver detain disband elevate emanate embody enact endure enrol enroll entail equal evoke excel expel exploit fade forge foster
garner grace headline headquarter hinder honour honor imitate induct inscribe intersect invest irritate jail land legalise
legalize lure mentor mint mistake mourn muster nationalise nationalize notify oust outperform overlap overlook overrule parody
patronize penetrate peak propel reappear rebel rebrand reclaim reconstruct redesign refurbish reinstate reissue relaunch
relinquish relieve render repay replenish reproduce reunite revert revoke rival scrap seize signify skate ski spark spur stab
strengthen stretch summon surface surf suspend sustain swap service water terrorise thrive thwart tackle topple torture tow
trail undermine unite upgrade usher utter venture veto vow wage wander weaken wield wrestle debate deem halt pen contest debunk
dub entitle adjoin straddle
"""
_NOUNS_TOO = """
act address aim air answer attack author award back ban base battle bear bid blame border branch break broadcast call campaign
captain care cast cause challenge chair change charge chase claim climb coach command comment commission concern conduct contest
contract control cook copy cost cover credit cross crown cure cut dance date deal debut debate decline design desert display
document double draft drink drive drop end exchange experience export face farm favor favour fear feature fight film fire fit
flood flow focus force form function fund guard guess guest guide head heat help hit hold hope host house hunt impact import
increase influence interview issue judge jump kiss label lack land laugh launch lead lie lift light limit link list lobby look
love march mark market master match mate matter measure mention mine model move murder name need nest nickname note notice
number nurse offer open order paint pass patent patrol pilot pioneer pitch place plan plant play point pose practice premiere
present print produce program project promise protest purchase push race rank rap read record release remake report request
rescue research rest result return reward ride ring rise rule run sail sample scan score scout search set shape share shelter
ship shop show sign signal sleep smell smoke sound split sponsor spread spring stage star start state stay stem step stick store
strike study suit supply support surround switch swing talk target taste tax test throw tie top total touch tour trace trade
train transfer transport travel treat trigger tune turn twin use value visit voice vote wait walk watch welcome win wind wish
witness work worry yield respect trust doubt hug boo bully mock cheer blow brew mix fry grill orbit rain snow thunder hack
stream google tweet edit scroll type click download upload premier peak parody mentor mint jail surf ski spark spur stab stretch
surface swap tackle torture tow trail upgrade venture veto vow wage rebel rival scrap honour honor forge grace headline service
water bloom bark growl shine sneeze yawn blink sting crawl glide nod stir roast chop flash stitch comfort console flood haunt
lure respect host last pen light like found saw
"""
_DOUBLED = frozenset(
    "admit ban commit drop equip hop jog occur permit plan prefer refer regret rob scan ship shop stem stop submit "
    "transfer transmit travel cancel label model signal chat drag rap unwrap zip kidnap program rot beg dub pen".split()
)
_ONE_L = frozenset({"travel", "cancel", "label", "model", "signal"})

_TABLE = {base: (past, done) for base, past, done in (row.split() for row in _IRREGULAR.replace("\n", "").split("|"))}
REGULAR = frozenset(_REGULAR.split())
BASES = REGULAR | frozenset(_TABLE)
NOUNS_TOO = frozenset(_NOUNS_TOO.split())
"""Verbs whose base form is a common noun as well."""
VOWELS = "aeiou"


def _with_ed(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2:-1] not in VOWELS:
        return f"{base[:-1]}ied"
    return f"{base}{base[-1]}ed" if base in _DOUBLED else f"{base}ed"


@cache
def past(base: str) -> str:
    """Return the simple past: "won" of "win", "stopped" of "stop"."""
    return _TABLE[base][0] if base in _TABLE else _with_ed(base)


@cache
def participle(base: str) -> str:
    """Return the past participle: "written" of "write"."""
    return _TABLE[base][1] if base in _TABLE else _with_ed(base)


@cache
def third(base: str) -> str:
    """Return the form after "he": "has", "flies", "crosses"."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2:-1] not in VOWELS:
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{base}s"


ONLY_PAST = frozenset(p for b, (p, d) in _TABLE.items() if p not in (d, b)) - {"lay", "bore", "saw", "wound"}
"""Pasts that are nothing else: finite wherever they stand."""
PASTS = frozenset(past(b) for b in BASES) | {_with_ed(b.rstrip("l") + "l") for b in _ONE_L} | {f"{b}ed" for b in _ONE_L}
PARTICIPLES = (frozenset(participle(b) for b in BASES) | {f"{b}ed" for b in _ONE_L} | {"born", "gotten", "been", "hanged"}) - {
    "like"
}
THIRDS = {third(b): b for b in BASES}
NOUN_THIRDS = frozenset(third(b) for b in NOUNS_TOO) | {"leaves", "lives", "means", "does"}

_NO_VERBS = frozenset(
    "red bed need seed speed breed feed weed deed shed hundred sacred naked wicked indeed exceed proceed succeed united limited "
    "embed creed greed steed sled infrared kindred crossbred".split()
)


def is_participle(word: str) -> bool:
    """Tell whether a lower-case word is a past participle, of a verb of the list or by its ending."""
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 4 and word.isalpha() and word not in _NO_VERBS)


def is_past(word: str) -> bool:
    """Tell whether a lower-case word may be a simple past."""
    return word in PASTS or (word.endswith("ed") and len(word) > 4 and word.isalpha() and word not in _NO_VERBS)


def is_gerund(word: str) -> bool:
    """Tell whether a word ends as a present participle does, and is not one of the common nouns that do."""
    return word.endswith("ing") and len(word) > 4 and word.isalpha() and word not in _INGS and word not in BASES


_INGS = frozenset(
    "thing king wing being during nothing something anything everything evening morning building spring string ceiling "
    "wedding painting meeting following according beginning king being sibling darling pudding sterling ruling housing".split()
)

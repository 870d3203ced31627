"""Word lists by which names are told apart. Data only: written for this project, far from complete, and meant to be.

A name that no list knows is still found, by its capitals; the lists only say of which type it is.
"""


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
TITLES = frozenset(
    """
    Mr Mrs Ms Miss Dr Prof Professor Sir Lady Lord Dame President Chancellor Minister Senator Governor Mayor Judge Justice
    King Queen Prince Princess Duke Duchess Count Countess Baron Emperor Pope Bishop Archbishop Cardinal Saint Father Sister
    Captain Colonel General Major Lieutenant Sergeant Admiral Commander Officer Inspector Detective Rev Capt Col Gen Lt Sgt
    """.split()
)
"""Before a name: it is a person's."""
ORGANISATIONS = frozenset(
    """
    University College School Academy Institute Museum Gallery Library Hospital Bank Ministry Department Office Agency
    Authority Commission Committee Council Court Parliament Congress Senate Party Union Association Society Foundation Trust
    Federation League Club United Company Corporation Corp Inc Ltd LLC PLC GmbH AG Group Holdings Industries Partners Airlines
    Airways Motors Records Studios Pictures Press Times Post News Guardian Police Army Navy Force Church Orchestra Theatre
    Opera Bureau Board Service Services Organization Organisation Nations Laboratory Observatory Center Centre Brothers Sons
    """.split()
)
"""In a name: it is an organisation's."""
SITES = frozenset(
    """
    River Lake Sea Ocean Bay Gulf Strait Island Islands Isle Mount Mountain Mountains Hill Hills Valley Desert Forest Park
    Street Road Avenue Square Bridge Tower Castle Palace Cathedral Airport Station Harbour Harbor Port Beach Cape Peninsula
    Canal Dam Stadium City County State Province District Village Town Republic Kingdom Lower Upper North South East West
    Northern Southern Eastern Western Saint St Fort Hall Gardens Quarter Coast
    """.split()
)
"""In a name: it is a place's."""
JOINERS = ORGANISATIONS | SITES | {"House", "Battle", "Treaty", "Order", "Declaration", "States", "Duke", "Prince", "Bishop"}
"""Words after which "of" and "for" belong to a name: "Bank of England"; elsewhere they part two names."""
OPENERS = frozenset(
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
UNITS = frozenset(
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
CURRENCIES = (
    "dollars? euros? pounds? yen pence cents? francs? rupees? roubles? rubles? yuan pesos? kron[ae]r? USD EUR GBP JPY CHF".split()
)

"""Units of measurement and currencies by their spellings, with factors to one base unit for each dimension."""

from functools import cache
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of a dimension: a value of x units is `factor * x + offset` base units."""

    dimension: str
    factor: float
    offset: float = 0.0


# dimension -> name of the factor in scipy.constants, or the factor itself -> spellings; symbols of one letter are case-sensitive
_SPELLINGS: dict[str, dict[str | float, str]] = {
    "length": {
        1e-9: "nanometre nanometer nm", 1e-6: "micrometre micrometer micron µm", 1e-3: "millimetre millimeter mm",
        1e-2: "centimetre centimeter cm", 1.0: "metre meter m", 1e3: "kilometre kilometer km", "inch": "inch inches",
        "foot": "foot feet ft", "yard": "yard yd", "mile": "mile mi", "nautical_mile": "nautical-mile nmi",
        "light_year": "light-year lightyear", "astronomical_unit": "au",
    },
    "area": {
        1.0: "m² m2 square-metre square-meter sqm sq-m", 1e6: "km² km2 square-kilometre square-kilometer sq-km",
        "hectare": "hectare ha",
        "acre": "acre", 0.09290304: "square-foot square-feet ft² ft2 sqft sq-ft",
        2589988.110336: "square-mile mi² mi2 sq-mi sq-mile",
    },
    "volume": {
        1.0: "m³ m3 cubic-metre cubic-meter cbm", "liter": "litre liter l L", 1e-6: "millilitre milliliter ml mL",
        1e-5: "centilitre centiliter cl", "gallon": "gallon gal", "barrel": "barrel", 4.73176473e-4: "pint",
        1e9: "km³ cubic-kilometre cubic-kilometer", "fluid_ounce": "fluid-ounce", 2.365882365e-4: "cup",
    },
    "mass": {
        1e-9: "microgram µg mcg", 1e-6: "milligram mg", 1e-3: "gram gramme g", 1.0: "kilogram kilogramme kilo kg",
        "metric_ton": "tonne metric-ton ton", "pound": "pound-mass lb lbs", "ounce": "ounce oz", "stone": "stone-mass",
    },
    "speed": {1.0: "m/s metres-per-second meters-per-second", "kmh": "km/h kph kmh kilometres-per-hour kilometers-per-hour",
              "mph": "mph miles-per-hour", "knot": "knot"},
    "duration": {
        1e-3: "millisecond ms", 1.0: "second sec s", "minute": "minute min", "hour": "hour hr h", "day": "day", "week": "week",
        1209600.0: "fortnight", 2629800.0: "month", 31557600.0: "year yr year-old", 315576000.0: "decade",
        3155760000.0: "century centuries",
    },
    "power": {1.0: "watt W", 1e3: "kilowatt kW", 1e6: "megawatt MW", 1e9: "gigawatt GW", "hp": "horsepower hp"},
    "energy": {1.0: "joule J", 1e3: "kilojoule kJ", 3.6e6: "kilowatt-hour kWh", 3.6e9: "megawatt-hour MWh",
               3.6e12: "gigawatt-hour GWh", 4184.0: "kilocalorie kcal calorie"},
    "data": {1.0: "byte", 1e3: "kilobyte KB kB", 1e6: "megabyte MB", 1e9: "gigabyte GB", 1e12: "terabyte TB"},
    "frequency": {1.0: "hertz Hz", 1e3: "kilohertz kHz", 1e6: "megahertz MHz", 1e9: "gigahertz GHz"},
    "pressure": {1.0: "pascal Pa", 1e3: "kilopascal kPa", "bar": "bar", "atm": "atmosphere atm", "psi": "psi", "mmHg": "mmHg"},
    "angle": {1.0: "degree"},
}  # fmt: skip
_TEMPERATURES = {"°C ℃ celsius centigrade degree-celsius degree-centigrade degree-C deg-C": (1.0, 0.0),
                 "°F ℉ fahrenheit degree-fahrenheit degree-F deg-F": (5 / 9, -160 / 9),
                 "kelvin K": (1.0, -273.15)}  # fmt: skip
_CURRENCIES = {
    "USD": "$ dollar usd us$", "EUR": "€ euro eur", "GBP": "£ pound sterling gbp", "JPY": "¥ yen jpy", "CHF": "franc chf",
    "CNY": "yuan renminbi cny rmb", "INR": "₹ rupee inr", "KRW": "₩ krw", "SEK": "krona kronor sek", "CAD": "cad", "AUD": "aud",
    "NZD": "nzd", "HKD": "hkd", "SGD": "sgd", "BRL": "brl real reais", "MXN": "mxn", "PLN": "pln zloty zlotys", "TRY": "try lira",
    "NOK": "nok", "DKK": "dkk", "ZAR": "zar rand", "RUB": "rub rouble ruble", "CZK": "czk koruna",
}  # fmt: skip
_CENTS = {"USD": "cent cents", "GBP": "pence"}


@cache
def unit_spellings() -> dict[str, Unit]:
    """Return all units by spelling; of several words joined by "-", the text may have spaces between them."""
    from scipy import constants

    table: dict[str, Unit] = {}
    for dimension, units in _SPELLINGS.items():
        for factor, spellings in units.items():
            value = float(getattr(constants, factor)) if isinstance(factor, str) else factor
            table |= dict.fromkeys(spellings.split(), Unit(dimension, value))
    for spellings, (factor, offset) in _TEMPERATURES.items():
        table |= dict.fromkeys(spellings.split(), Unit("temperature", factor, offset))
    for code, spellings in _CURRENCIES.items():
        table |= dict.fromkeys(spellings.split(), Unit(code, 1.0))
    for code, spellings in _CENTS.items():
        table |= dict.fromkeys(spellings.split(), Unit(code, 0.01))
    return table


def find_unit(words: list[str]) -> tuple[Unit, int] | None:
    """Return the unit at the beginning of the words that follow a number, and how many of them it takes."""
    table = unit_spellings()
    for count in (3, 2, 1):
        if len(words) < count:
            continue
        name = "-".join(words[:count]).rstrip(".")
        for spelling in _readings(name):
            if spelling in table:
                return table[spelling], count
    return None


def _readings(name: str) -> list[str]:
    """Return the spellings that a name may stand for: as written, without capitals, in the singular."""
    if len(name) <= 2 or name in ("MW", "mW", "MHz", "kPa") or name.lower().startswith("has"):
        return [name]  # "m" and "M", "mg" and "Mg" are different things, and "has" is no plural
    low = name.lower()
    singular = [low.removesuffix("s")] if low.endswith("s") and len(low) > 3 else []
    first, dash, rest = name.partition("-")
    start = first.lower().removesuffix("s")  # "degrees Celsius" is no plural in its last word
    return [name, low, *singular, "-".join(p.removesuffix("s") for p in low.split("-")), f"{start}{dash}{rest}",
            f"{start}{dash}{rest.lower()}"]  # fmt: skip

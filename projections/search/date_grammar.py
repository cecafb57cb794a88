"""Find the dates that a text names, in languages whose words are separated by spaces, and numeric dates of all.

Used by `query_dates` and `message_dates`. Pure: today and the side on which a date without a year lies are arguments.
Rules only: a word such as "may", "march", "second" or "sun" counts only in the form of a date. Every pattern must take
a time that grows at most with the length of the text.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

from everlog.projections.search.date_spans import (
    DAY,
    MONTH,
    SEASON,
    WEEK,
    YEAR,
    DaySpan,
    day_span,
    month_span,
    season_span,
    unit_span,
    weekday_span,
    weekend_span,
    year_span,
    yearly,
)
from everlog.projections.search.date_tables import TABLES, DateWords

PAST, NEAREST, FUTURE = -1, 0, 1
"""Side of today on which a date without a year lies, and a weekday without a week."""
FEW = 3
"""Number that "a few" and "several" stand for; the span covers two to five."""
_FEW = "few|several|unos|unas|varios|varias|quelques|einigen?|alcun[ie]|algun[as]s|несколько|enkele"
_WORD = re.compile(r"\w+")
_NUMERIC = re.compile(
    r"(?<![\d./-])(?:(?P<y>[12]\d{3})[-/.](?P<m>\d{1,2})(?:[-/.](?P<d>\d{1,2}))?"
    r"|(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<year>[12]\d{3}|\d{2}))(?![\d/-]|\.\d)"
)
_HOLIDAYS = re.compile(
    r"\b(?P<name>christmas eve|christmas|new year'?s eve|new year'?s day|halloween|valentine'?s day|fourth of july)\b"
    r"(?: day)?(?:,? (?:of )?(?P<year>[12]\d{3}|last year|this year|next year))?",
    re.IGNORECASE,
)
_HOLIDAY_DAYS = {"christmas eve": (12, 24), "christmas": (12, 25), "new years eve": (12, 31), "new years day": (1, 1),
                 "halloween": (10, 31), "valentines day": (2, 14), "fourth of july": (7, 4)}  # fmt: skip
_ONLY_AS_DATES = {"may", "march", "mars", "mar", "spring", "fall", "été", "sun", "primavera"}

Found = tuple[int, int, DaySpan]
"""First and last (exclusive) character of a date, and its days."""


class _Rule(NamedTuple):
    needs: Collection[str]
    """Words of which a text has at least one, if the rule finds something in it."""
    pattern: str
    read: Callable[["_Match"], DaySpan | None]


class _Words:
    """Names of one language, by their lower-case form."""

    def __init__(self, words: DateWords) -> None:
        self.months = _numbered(words.months, 1)
        self.weekdays = _numbered(words.weekdays, 0)
        self.seasons = _numbered(words.seasons, 0)
        self.numbers = _numbered(words.numbers, 1)
        self.units = {name: unit for unit, names in words.units.items() for name in _spaced(names).split("/")}
        self.near = words.near

    def count(self, name: str) -> int:
        """Return the number of that name; 0 if it is a vague one."""
        known = self.numbers.get(name.replace(" ", "_"))
        return known if known is not None else int(name) if name.isdecimal() else 0


class _Match(NamedTuple):
    """Words of a text that a rule matched, by the names of the groups, and what a date without a year counts from."""

    words: _Words
    named: Mapping[str, str]
    today: date
    side: int


def dates_named(text: str, language: str, today: date, side: int) -> Iterator[Found]:
    """Yield the dates that a text names in the words of a language, in any order; they may overlap."""
    if language not in TABLES:
        return
    words, rules = _rules(language)
    said = frozenset(_WORD.findall(text.lower()))
    if said.isdisjoint(_needed(language)):
        return
    for rule in rules:
        if said.isdisjoint(rule.needs):
            continue
        for match in _compiled(rule.pattern).finditer(text):
            named = {name: value.lower() for name, value in match.groupdict().items() if value}
            if (span := _read(rule, _Match(words, named, today, side))) is not None:
                begin = (
                    min(match.start(name) for name in named) if rule.read in {_inside, _inside_year} else match.start()
                )
                yield begin, match.end(), span


@cache
def _needed(language: str) -> frozenset[str]:
    """Return the words of which a text that names a date in a language has one."""
    return frozenset(word for rule in _rules(language)[1] for word in rule.needs)


@cache
def date_words() -> frozenset[str]:
    """Return the words of which any date in one of the languages has at least one, if it has no digits."""
    years = {rule for language in TABLES for rule in _rules(language)[1] if rule.read is not _inside_year}
    holiday_words = {"christmas", "halloween", "valentine", "valentines", "fourth"}
    return (frozenset(word for rule in years for word in rule.needs) | holiday_words) - {"an"}  # English, not French


def numeric_dates(text: str) -> Iterator[Found]:
    """Yield the dates that are written in digits with their year. 5/3/2023 is two of them."""
    for match in _NUMERIC.finditer(text):
        if match["y"]:
            readings = [(match["y"], match["m"], match["d"] or "")]
        else:
            year = match["year"] if len(match["year"]) == 4 else f"20{match['year']}"
            readings = [(year, match["two"], match["one"])]
            if match["mark"] != "." and match["one"] != match["two"]:
                readings.append((year, match["one"], match["two"]))
            if len(match["year"]) == 2 and match["mark"] != "/":
                continue
        for written in readings:
            try:
                numbers = [int(number) for number in written if number]
                span = day_span(date(*numbers)) if written[2] else month_span(numbers[0], numbers[1])
                if not 1 <= numbers[1] <= 12:
                    continue
            except (ValueError, OverflowError):
                continue
            yield match.start(), match.end(), span


def holidays(text: str, today: date, side: int) -> Iterator[Found]:
    """Yield the holidays that a text names in English and that have the same day in each year."""
    for match in _HOLIDAYS.finditer(text):
        month, day = _HOLIDAY_DAYS[match["name"].lower().replace("'", "")]
        said = (match["year"] or "").lower()
        years = {"last year": today.year - 1, "this year": today.year, "next year": today.year + 1}
        year = int(said) if said.isdecimal() else years.get(said)
        if (span := _dated(month, day, year, today, side)) is not None:
            yield match.start(), match.end(), span


def speaks_of_future(text: str, language: str) -> bool:
    """Return True if a text has words that speak of what is to come."""
    found = _future(language if language in TABLES else "english")
    return found.search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when a text needs it first: one with all names takes a millisecond."""
    return re.compile(pattern, re.IGNORECASE)


@cache
def _future(language: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<=\W)|\b)(?:{TABLES[language].future})\b", re.IGNORECASE)


def _read(rule: _Rule, match: _Match) -> DaySpan | None:
    """Return the result of a rule; None for a date that the calendar does not have."""
    try:
        return rule.read(match)
    except (ValueError, OverflowError):
        return None


def _numbered(names: str, first: int) -> dict[str, int]:
    """Return the number of each name of a list."""
    return {name: number for number, several in enumerate(names.split(), first) for name in several.split("/")}


def _either(names: Iterable[str]) -> str:
    return "|".join(sorted((re.escape(_spaced(name)) for name in names), key=len, reverse=True))


def _spaced(names: str) -> str:
    return names.replace("_", " ")


@cache
def _rules(language: str) -> tuple[_Words, tuple[_Rule, ...]]:
    """Return the names and the rules of a language."""
    table = TABLES[language]
    words = _Words(table)
    year, unit = r"(?P<year>[12]\d{3})", f"(?P<unit>{_either(words.units)})"
    month, season = f"(?P<month>{_either(words.months)})", f"(?P<season>{_either(words.seasons)})"
    weekday = f"(?P<weekday>{_either(words.weekdays)})"
    sought = f"(?:{unit}|{weekday}|{month}|{season})"
    number = rf"(?:(?:about|around|etwa) )?(?:a |the )?(?P<n>\d{{1,3}}|{_either(words.numbers)}|{_FEW})(?: of)?"
    before = rf"(?:{table.inside})(?:[ -](?:the|el|la|il|der|dem|den|les?))? ?"
    no_verb = r"(?! (?:be|have|not)\b|[ -]?\d|')"
    long_names = [name for name in words.months if len(name) > 4 and name not in _ONLY_AS_DATES]

    def made(templates: Iterable[str], read: Callable[..., DaySpan | None], needs: Iterable[str], **parts: str
             ) -> Iterator[_Rule]:  # fmt: skip
        # The last word of a phrase, or the first part of that: "the day before yesterday", "week-end", "l'altro ieri".
        needed = frozenset(_WORD.findall(_spaced(need).split()[-1])[0] for need in needs)
        for template in templates:
            for name, part in parts.items():
                template = template.replace(f"{{{name}}}", part)
            yield _Rule(needed, rf"(?<!\w)(?:{template})(?!\w)", read)

    named = {**words.units, **words.weekdays, **words.months, **words.seasons}
    counted = {"n": number, "unit": unit}
    dated = {"d": r"(?P<day>[12]?\d|3[01]|0[1-9])", "month": month, "year": year}
    lately = (form.replace("{x}", "{n} {unit}") for form in table.last)
    return words, (
        *made((f"(?P<near>{_either(words.near)})",), _near, words.near),
        *made(table.last, _last, named, x=sought), *made(table.this, _this, named, x=sought),
        *made(table.next, _next, named, x=sought), *made(lately, _lately, words.units, **counted),
        *made(table.ago, _ago, words.units, **counted), *made(table.ahead, _ahead, words.units, **counted),
        *made(table.dates, _day_of_month, words.months, **dated),
        *made(table.months_with_year, _month_of_year, words.months, **dated),
        *made((rf"(?:{before})?{season}(?: of| de| del| di)? {year}",), _inside, words.seasons),
        *made((rf"(?:{before}){month}{no_verb}", f"(?P<month>{_either(long_names)})"), _inside, words.months),
        *made((rf"(?:{before}){season}{no_verb}",), _inside, words.seasons),
        *made((rf"(?:{before}){year}{no_verb}",), _inside_year, table.inside.replace("'", " ").split("|")),
        *made((weekday,), _weekday, words.weekdays),
    )  # fmt: skip


def _near(at: _Match) -> DaySpan:
    return day_span(at.today + timedelta(days=at.words.near[at.named["near"]]))


def _last(at: _Match) -> DaySpan | None:
    """Return "last X": the unit before this one, or the latest of that name before today."""
    return _relative(at, PAST)


def _next(at: _Match) -> DaySpan | None:
    return _relative(at, FUTURE)


def _this(at: _Match) -> DaySpan | None:
    if "month" in at.named and at.named["month"] in _ONLY_AS_DATES:
        return None
    return _relative(at, NEAREST)


def _relative(at: _Match, step: int) -> DaySpan | None:
    if "weekday" in at.named:
        return weekday_span(at.today, at.words.weekdays[at.named["weekday"]], step)
    if "month" in at.named:
        return _monthly(at.words.months[at.named["month"]], None, at.today, step, whole=True)
    if "season" in at.named:
        return _seasonal(at.words.seasons[at.named["season"]], None, at.today, step, whole=True)
    unit = at.words.units.get(at.named["unit"], "")
    if unit == "weekend" and step == PAST and at.today.weekday() < 5:
        return weekend_span(at.today, -1)
    return None if unit == DAY else unit_span(unit, at.today, step)


def _ago(at: _Match) -> DaySpan | None:
    return _counted(at, PAST)


def _ahead(at: _Match) -> DaySpan | None:
    return _counted(at, FUTURE) if at.side == FUTURE else None


def _counted(at: _Match, step: int) -> DaySpan | None:
    """Return the unit so many units from this one. A vague number gives all units from two to five."""
    unit = at.words.units.get(at.named["unit"], "")
    if not unit:
        return None
    if count := at.words.count(at.named.get("n", "1")):
        return unit_span(unit, at.today, step * count)
    first, last = sorted((unit_span(unit, at.today, step * 2), unit_span(unit, at.today, step * 5)))
    wider = {DAY: WEEK, WEEK: MONTH, MONTH: SEASON}
    return DaySpan(first.begin, last.end, wider.get(unit, YEAR))


def _lately(at: _Match) -> DaySpan | None:
    """Return "the last three weeks": that time until today."""
    unit, count = at.words.units.get(at.named["unit"], ""), at.words.count(at.named["n"]) or FEW
    if not unit:
        return None
    begin = {
        "day": lambda: at.today - timedelta(days=count), "week": lambda: at.today - timedelta(weeks=count),
        "weekend": lambda: weekend_span(at.today, -count).begin,
        "month": lambda: month_span(at.today.year, at.today.month - count).begin,
        "year": lambda: date(at.today.year - count, 1, 1),
    }[unit]()  # fmt: skip
    wider = {DAY: WEEK, WEEK: MONTH, MONTH: SEASON}
    return DaySpan(begin, at.today + timedelta(days=1), wider.get(unit, YEAR))


def _day_of_month(at: _Match) -> DaySpan | None:
    year = int(at.named["year"]) if "year" in at.named else None
    return _dated(at.words.months[at.named["month"]], int(at.named["day"]), year, at.today, at.side)


def _dated(month: int, day: int, year: int | None, today: date, side: int) -> DaySpan | None:
    """Return a day of a month, in the year that is meant if none is named; None for 30 February."""
    found = []
    for each in [year] if year is not None else range(today.year - 4, today.year + 5):
        try:
            found.append(day_span(date(each, month, day)))
        except ValueError:  # 29 February is in one year of four
            continue
    return yearly(found, today, side) if found else None


def _month_of_year(at: _Match) -> DaySpan:
    return month_span(int(at.named["year"]), at.words.months[at.named["month"]])


def _inside(at: _Match) -> DaySpan | None:
    """Return "in May", "in the summer" or "in summer 2023"."""
    year = int(at.named["year"]) if "year" in at.named else None
    if "month" in at.named:
        return _monthly(at.words.months[at.named["month"]], year, at.today, at.side)
    if "season" in at.named:
        return _seasonal(at.words.seasons[at.named["season"]], year, at.today, at.side)
    return None


def _inside_year(at: _Match) -> DaySpan:
    return year_span(int(at.named["year"]))


def _monthly(month: int, year: int | None, today: date, side: int, *, whole: bool = False) -> DaySpan:
    """Return a month. With `whole` it is none that has today, unless `side` is NEAREST."""
    if year is not None:
        return month_span(year, month)
    return _chosen([month_span(today.year + n, month) for n in (-1, 0, 1)], today, side, whole=whole)


def _seasonal(season: int, year: int | None, today: date, side: int, *, whole: bool = False) -> DaySpan:
    if year is not None:
        return season_span(year, season)
    return _chosen([season_span(today.year + n, season) for n in (-2, -1, 0, 1)], today, side, whole=whole)


def _chosen(spans: list[DaySpan], today: date, side: int, *, whole: bool) -> DaySpan:
    if whole and side != NEAREST:
        spans = [span for span in spans if not span.begin <= today < span.end]
    return yearly(spans, today, side)


def _weekday(at: _Match) -> DaySpan:
    """Return a weekday without more: the last before today, or the first after it in a text about the future."""
    return weekday_span(at.today, at.words.weekdays[at.named["weekday"]], at.side or PAST)

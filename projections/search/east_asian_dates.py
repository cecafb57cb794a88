"""Find the dates that a text names in Chinese, Japanese or Korean.

Used by `query_dates` and `message_dates`. Pure, as `date_grammar` is: today and the side of dates without a year are
arguments. One pattern reads all three languages, because their dates go from the year to the day.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import TypeVar

from everlog.projections.search.date_spans import (
    DAY,
    MONTH,
    WEEK,
    YEAR,
    DaySpan,
    day_span,
    month_span,
    season_span,
    unit_span,
    week_span,
    weekend_span,
    year_span,
    yearly,
)

_Key = TypeVar("_Key", int, str)
_NEAR_TEXT = {
    -3: "大前天", -2: "前天 一昨日 おととい 그저께 그제", -1: "昨天 昨晚 昨日 昨夜 きのう 어제 어젯밤",
    0: "今天 今早 今晚 今日 今朝 今夜 きょう 오늘", 1: "明天 明晚 明早 明日 あした 내일",
    2: "后天 後天 明後日 あさって 모레", 3: "大后天 大後天",
}  # fmt: skip
_NEAR = {name: days for days, names in _NEAR_TEXT.items() for name in names.split()}
_WEEKS = {
    -2: "上上个?周|上上個?週|先々週|지지난 ?주", -1: "上(?:个?周|個?週|[个個]?星期|个?礼拜|個?禮拜)|先週|지난 ?주",
    0: "[这這](?:个?周|個?週|[个個]?星期|个?礼拜|個?禮拜)|本周|本週|今週|이번 ?주",
    1: "下(?:个?周|個?週|[个個]?星期|个?礼拜|個?禮拜)|来週|다음 ?주",
}  # fmt: skip
_MONTHS = {-2: "上上[个個]?月|先々月", -1: "上[个個]?月|先月|지난 ?달", 0: "[这這][个個]?月|本月|今月|이번 ?달",
           1: "下[个個]?月|来月|다음 ?달"}  # fmt: skip
_YEARS = {-2: "前年|一昨年|재작년", -1: "去年|昨年|작년|지난해", 0: "今年|올해", 1: "明年|来年|내년"}
_SEASONS = {0: "春天|春季|春|봄", 1: "夏天|夏季|夏|여름", 2: "秋天|秋季|秋|가을", 3: "冬天|冬季|冬|겨울"}
_UNITS = {
    DAY: "天|日|일", WEEK: "[个個]?星期|个?礼拜|個?禮拜|週間|周|週|주일?",
    MONTH: "个月|個月|[かヶケカ]月|개월|달", YEAR: "年|년",
}  # fmt: skip
_DIGITS_TEXT = ("〇零", "一한", "二两兩두", "三세", "四네", "五", "六", "七", "八", "九")
_DIGITS = {one: number for number, several in enumerate(_DIGITS_TEXT) for one in several}
_WEEKDAYS_TEXT = ("一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日天일")
_WEEKDAYS = {one: number for number, several in enumerate(_WEEKDAYS_TEXT) for one in several}

_NUMBER = r"\d{1,4}|[一二两兩三四五六七八九十]{1,3}|[한두세네](?= )"
_DAY_NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"


def _either(names: Mapping[int, str], group: str) -> str:
    """Return a group of all names, those farthest from today first: 上上周 before 上周."""
    return f"(?P<{group}>{'|'.join(names[key] for key in sorted(names))})"


_WEEKDAY = "[一二三四五六日天](?![个個])|(?:[月火水木金土日]曜|[월화수목금토일]요일)日?"
_DATE = re.compile(
    rf"(?P<n>{_NUMBER}) ?(?P<unit>{'|'.join(_UNITS.values())}) ?[以之]?(?P<when>前|전|后|後|뒤|후)"
    rf"|{_either(_WEEKS, 'week')}[のの的]? ?(?:(?P<weekend>末|の?週末|주말|말)|(?P<weekday>{_WEEKDAY}))?"
    rf"|(?:周|週|星期|礼拜|禮拜)(?P<alone>[一二三四五六日天])(?![个個])|(?P<named>[月火水木金土日]曜|[월화수목금토일]요일)"
    rf"|(?:(?:{_either(_YEARS, 'ago')}|(?P<year>[12]\d{{3}})[年년]) ?[のの的]? ?)"
    rf"(?:{_either(_SEASONS, 'season')}|(?P<month>{_DAY_NUMBER})[月월]份? ?(?:(?P<day>{_DAY_NUMBER})[日号號일])?)?"
    rf"|{_either(_MONTHS, 'moon')}[のの的]? ?(?:(?P<of>{_DAY_NUMBER})[日号號일])?"
    rf"|(?<![\d.])(?P<some>{_DAY_NUMBER})[月월](?!曜)份? ?(?:(?P<date>{_DAY_NUMBER})[日号號일])?"
    rf"|(?P<this>[春夏秋冬][天季]|[春夏秋冬]に|봄에|여름에|가을에|겨울에)"
    rf"|(?P<near>{'|'.join(sorted(_NEAR, key=len, reverse=True))})"
)
_NEEDED = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_FUTURE = re.compile("会|會|打算|计划|計劃|准备|準備|将要|將要|つもり|予定|할 거|예정|계획")


def east_asian_dates(text: str, today: date, side: int) -> Iterator[tuple[int, int, DaySpan]]:
    """Yield the dates that a text names, each with its first and last (exclusive) character."""
    if not _NEEDED.search(text):
        return
    for match in _DATE.finditer(text):
        named = {name: value for name, value in match.groupdict().items() if value}
        try:
            span = _span(named, today, side)
        except (ValueError, OverflowError):
            continue
        if span is not None:
            yield match.start(), match.end(), span


def speaks_of_future_there(text: str) -> bool:
    """Return True if a text in one of these languages has words that speak of what is to come."""
    return _FUTURE.search(text) is not None


def _span(named: dict[str, str], today: date, side: int) -> DaySpan | None:
    if "near" in named:
        return day_span(today + timedelta(days=_NEAR[named["near"]]))
    if "n" in named:
        count = _number(named["n"]) * (-1 if named["when"] in "前전" else 1)
        return unit_span(_of(_UNITS, named["unit"]), today, count) if count else None
    if "week" in named:
        weeks = _of(_WEEKS, named["week"])
        if "weekend" in named:
            return weekend_span(today, weeks)
        weekday = named.get("weekday")
        return day_span(week_span(today, weeks).begin + timedelta(days=_WEEKDAYS[weekday[0]])) if weekday \
            else week_span(today, weeks)  # fmt: skip
    if "alone" in named or "named" in named:
        weekday_number = _WEEKDAYS[(named.get("alone") or named["named"])[0]]
        ahead = (weekday_number - today.weekday()) % 7
        return day_span(today + timedelta(days=(ahead or 7) if side > 0 else ahead - 7))
    if "moon" in named:
        month = month_span(today.year, today.month + _of(_MONTHS, named["moon"]))
        return day_span(month.begin.replace(day=_number(named["of"]))) if "of" in named else month
    return _of_calendar(named, today, side)


def _of_calendar(named: dict[str, str], today: date, side: int) -> DaySpan | None:
    """Return a year, a season, a month or a day of the calendar."""
    year = int(named["year"]) if "year" in named else None
    if "ago" in named:
        year = today.year + _of(_YEARS, named["ago"])
    if "this" in named or "season" in named:
        season = next(
            number for number, names in _SEASONS.items() if (named.get("this") or named["season"])[0] in names
        )
        return season_span(year, season) if year is not None \
            else yearly([season_span(today.year + n, season) for n in (-2, -1, 0, 1)], today, side)  # fmt: skip
    month, day = (
        _number(named.get(one) or named.get(other) or "") for one, other in (("month", "some"), ("day", "date"))
    )
    if not month:
        return year_span(year) if year is not None else None
    if month > 12:
        return None
    years = [year] if year is not None else range(today.year - 4, today.year + 5)
    months = [month_span(each, month) for each in years]
    if day:
        days = [day_span(one.begin.replace(day=day)) for one in months if day <= (one.end - one.begin).days]
        return yearly(days, today, side) if days else None
    return yearly(months, today, side)


def _of(names: Mapping[_Key, str], written: str) -> _Key:
    """Return the number or unit whose names have `written` among them."""
    return next(key for key, pattern in names.items() if re.fullmatch(pattern, written))


def _number(written: str) -> int:
    """Return a number in digits or in Chinese numerals; 0 for none."""
    if written.isdecimal():
        return int(written)
    tens, ten, ones = written.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)

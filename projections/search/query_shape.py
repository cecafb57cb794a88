"""Recognize what a query wants to hear: a time, something about the speaker, or what the assistant said.

Used by `recall_search`, which describes the query, and by `features`. Pure. A language that is missing here loses these
few features and nothing else. A change of a list needs new weights.
"""

import re
from collections.abc import Sequence
from functools import cache

from everlog.store.base.stemming import stems

_ASKS_WHEN = re.compile(
    r"\b(?:when|how long|(?:what|which) (?:date|day|week|month|year|time)|cu[aá]ndo|qu[eé] (?:d[ií]a|fecha|mes|año)"
    r"|quand|quel(?:le)? (?:jour|date|mois|ann[eé]e)|wann|(?:welche[mnrs]?|an welchem) (?:tag|datum|monat|jahr)"
    r"|quando|wanneer|когда)\b|什么时候|何时|几号|几月|哪天|哪一天|哪年|多久|いつ|何日|何月|언제",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(
    r"\b(?:you|your|yours|tú|usted|te|(?:recomend|aconsej|suger|di|explic)(?:aste|iste|jiste)|tu|vous|dir|dein"
    r"|você)\b|你|您|あなた|당신",
    re.IGNORECASE,
)
_TIME_WORDS = {
    "english": """
        yesterday today tomorrow tonight last next ago week weekend month year day morning evening night since recently
        soon monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
        september october november december spring summer autumn fall winter
    """,
    "spanish": """
        ayer hoy mañana semana mes año pasado pasada próximo próxima lunes martes miércoles jueves viernes sábado
        domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre verano invierno
    """,
    "french": """
        hier aujourd demain semaine mois an année dernier dernière prochain prochaine lundi mardi mercredi jeudi
        vendredi samedi dimanche janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    """,
    "german": """
        gestern heute morgen woche monat jahr letzte letzten nächste nächsten vor montag dienstag mittwoch donnerstag
        freitag samstag sonntag januar februar märz april mai juni juli august september oktober november dezember
    """,
}
_TIME_PAIRS = (
    "昨天 今天 明天 前天 后天 昨晚 今早 上周 下周 本周 上个 下个 去年 今年 明年 星期 周末 周一 周二 周三 周四 周五"
    " 周六 周日 月初 月底 昨日 今日 明日 先週 来週 先月 来月 어제 오늘 내일"
)


def times_asked_for(query: str) -> Sequence[str]:
    """Return the stems that tell a time, if the query asks for one; otherwise none."""
    return _time_stems() if _ASKS_WHEN.search(query) else ()


def is_to_assistant(query: str) -> bool:
    """Return True if the query speaks to the assistant, and so asks for what the assistant said."""
    return _TO_ASSISTANT.search(query) is not None


@cache
def _time_stems() -> Sequence[str]:
    found = {stem for language, words in _TIME_WORDS.items() for stem in stems(words, language)}
    return tuple(sorted(found | set(_TIME_PAIRS.split())))

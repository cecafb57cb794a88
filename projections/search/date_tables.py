"""Words for dates in each language: days, months, seasons, and the forms in which people combine them.

Used by `date_grammar`; `east_asian_dates` has the languages without spaces. A template is a pattern for `re` in which
`{x}` is a week, month, year, weekday, month's name or season, `{n}` a number, `{unit}` a unit of time, `{d}` a day of a
month, `{month}` a month's name and `{year}` a year. Patterns must not repeat anything without a limit, because messages
may have millions of characters.
"""

from collections.abc import Mapping
from typing import NamedTuple


class DateWords(NamedTuple):
    """Words of one language. Lists of names are in the order of the calendar: from January, Monday, spring."""

    months: str
    weekdays: str
    seasons: str
    """Spring to winter; several names of one season are joined by `/`, as are several names of a month."""
    units: Mapping[str, str]
    """Names of each unit, joined by `/`: day, week, weekend, month, year. `_` stands for a space."""
    numbers: str
    """One to twelve, joined by spaces; `/` between several names of one."""
    near: Mapping[str, int]
    """Days that are named from today: number of days after it."""
    last: tuple[str, ...]
    this: tuple[str, ...]
    next: tuple[str, ...]
    ago: tuple[str, ...]
    ahead: tuple[str, ...]
    dates: tuple[str, ...]
    """A day of a month, with or without a year."""
    months_with_year: tuple[str, ...]
    inside: str
    """Words before a month, a season or a year that make it a date."""
    future: str
    """Words that speak of what is to come."""


_NOT_COUNTED = r"(?!\d| ?(?:miles|km|people|hours|minutes|times|days|weeks|months|years|percent|%|dollars))"
TABLES: Mapping[str, DateWords] = {
    "english": DateWords(
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct "
        "november/nov december/dec",
        "monday tuesday wednesday thursday friday saturday sunday",
        "spring summer autumn/fall winter",
        {"day": "day/days", "week": "week/weeks", "weekend": "weekend/weekends", "month": "month/months",
         "year": "year/years"},
        "one/a/an two/couple/couple_of three four five six seven eight nine ten eleven twelve",
        {
            "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0,
            "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "earlier today": 0,
            "the day after tomorrow": 2, "day after tomorrow": 2, "tomorrow": 1,
        },
        (r"(?:last|previous) {x}", "(?:the )?past {x}"), (r"this {x}",), (r"(?:next|coming|following) {x}",),
        (r"{n} {unit} (?:ago|back|before today)",), (r"in {n} {unit}", r"{n} {unit} from (?:now|today)"),
        (
            r"(?:the )?{d}(?:st|nd|rd|th)?(?: of)? {month}\.?(?:,? (?:of )?{year})?",
            rf"{{month}}\.? (?:the )?{{d}}(?:st|nd|rd|th)?{_NOT_COUNTED}(?:,? {{year}})?",
        ),
        (r"{month}\.?,?(?: of)? {year}",),
        "in|during|since|until|till|by|of|from|throughout|early|late|mid|around|before|after|between|to|and",
        r"will|'ll|going to|gonna|plan|planning|planned|upcoming|looking forward|can't wait|hope to|next|coming",
    ),
    "spanish": DateWords(
        "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
        "lunes martes miércoles jueves viernes sábado domingo",
        "primavera verano otoño invierno",
        {"day": "día/días/dia/dias", "week": "semana/semanas", "weekend": "fin_de_semana/fines_de_semana",
         "month": "mes/meses", "year": "año/años"},
        "un/una/uno dos/par/par_de tres cuatro cinco seis siete ocho nueve diez once doce",
        {"anteayer": -2, "antes de ayer": -2, "antier": -2, "ayer": -1, "anoche": -1, "hoy": 0, "esta mañana": 0,
         "esta tarde": 0, "esta noche": 0, "pasado mañana": 2, "mañana por la mañana": 1, "mañana": 1},
        (r"{x} pasad[oa]", r"últim[oa] {x}"), (r"est[ea] {x}",),
        (r"próxim[oa] {x}", r"{x} próxim[oa]", r"{x} que viene"),
        (r"hace {n} {unit}", r"{n} {unit} atrás"), (r"dentro de {n} {unit}", r"en {n} {unit}"),
        (r"{d}º? de {month}(?:,? (?:del? )?{year})?",), (r"{month}(?: del?)? {year}",),
        "en|durante|desde|hasta|de|del|el|la|entre|y|a|por", "voy a|vamos a|va a|planeo|próximo|próxima|será|iré",
    ),
    "portuguese": DateWords(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "segunda-feira/segunda terça-feira/terça quarta-feira/quarta quinta-feira/quinta sexta-feira/sexta "
        "sábado domingo",
        "primavera verão outono inverno",
        {"day": "dia/dias", "week": "semana/semanas", "weekend": "fim_de_semana/fins_de_semana",
         "month": "mês/mes/meses", "year": "ano/anos"},
        "um/uma dois/duas/par_de três quatro cinco seis sete oito nove dez onze doze",
        {"anteontem": -2, "ontem": -1, "hoje": 0, "depois de amanhã": 2, "amanhã": 1, "esta manhã": 0},
        (r"{x} passad[oa]", r"últim[oa] {x}"), (r"(?:n?est[ea]) {x}",), (r"próxim[oa] {x}", r"{x} que vem"),
        (r"há {n} {unit}", r"{n} {unit} atrás"), (r"daqui a {n} {unit}", r"em {n} {unit}"),
        (r"{d}º? de {month}(?:,? (?:de )?{year})?",), (r"{month}(?: de)? {year}",),
        "em|no|na|durante|desde|até|de|do|da|entre|e|a", "vou|vamos|vai|pretendo|próximo|próxima",
    ),
    "french": DateWords(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "printemps été automne hiver",
        {"day": "jour/jours", "week": "semaine/semaines", "weekend": "week-end/weekend/week-ends/weekends",
         "month": "mois", "year": "année/années/an/ans"},
        "un/une deux trois quatre cinq six sept huit neuf dix onze douze",
        {"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "ce matin": 0, "ce soir": 0, "après-demain": 2, "demain": 1},
        (r"{x} (?:derni(?:er|ère)|pass[ée]e?)",), (r"cet?(?:te)? {x}",), (r"{x} prochaine?", r"prochaine? {x}"),
        (r"il y a {n} {unit}",), (r"dans {n} {unit}",),
        (r"{d}(?:er)? {month}(?: {year})?",), (r"{month} {year}",),
        "en|au|à|l|l'|pendant|depuis|jusqu'en|de|du|d'|entre|et|cet|cette", "vais|allons|va|prochain|prochaine|sera",
    ),
    "italian": DateWords(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "primavera estate autunno inverno",
        {"day": "giorno/giorni", "week": "settimana/settimane", "weekend": "weekend/fine_settimana",
         "month": "mese/mesi", "year": "anno/anni"},
        "un/uno/una due/paio_di tre quattro cinque sei sette otto nove dieci undici dodici",
        {"l'altro ieri": -2, "ieri": -1, "oggi": 0, "stamattina": 0, "stasera": 0, "dopodomani": 2, "domani": 1},
        (r"{x} scors[oa]", r"(?:scors[oa]|ultim[oa]) {x}"), (r"quest[oa] {x}",),
        (r"prossim[oa] {x}", r"{x} prossim[oa]"),
        (r"{n} {unit} fa",), (r"(?:tra|fra) {n} {unit}",),
        (r"{d}º? {month}(?: {year})?",), (r"{month}(?: del)? {year}",),
        "in|a|ad|nel|nell'|durante|da|dal|fino a|di|del|dell'|tra|e|l'", "andrò|andremo|vado|prossimo|prossima|sarà",
    ),
    "german": DateWords(
        "januar/jänner februar märz april mai juni juli august september oktober november dezember",
        "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
        "frühling/frühjahr sommer herbst winter",
        {"day": "tag/tage/tagen", "week": "woche/wochen", "weekend": "wochenende/wochenenden",
         "month": "monat/monate/monaten/monats", "year": "jahr/jahre/jahren/jahres"},
        "ein/eine/einem/einer zwei/paar/ein_paar drei vier fünf sechs sieben acht neun zehn elf zwölf",
        {"vorgestern": -2, "gestern": -1, "heute": 0, "übermorgen": 2, "morgen": 1},
        (r"(?:letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?) {x}",), (r"diese[nrsm]? {x}",),
        (r"(?:nächste[nrsm]?|kommende[nrsm]?) {x}",),
        (r"vor {n} {unit}",), (r"in {n} {unit}",),
        (r"{d}\. ?{month}(?: {year})?",), (r"{month} {year}",),
        "im|in|seit|bis|vom|von|des|während|anfang|ende|mitte|zwischen|und|am", "werde|werden|wird|nächste|kommende",
    ),
    "dutch": DateWords(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "lente/voorjaar zomer herfst/najaar winter",
        {"day": "dag/dagen", "week": "week/weken", "weekend": "weekend/weekenden", "month": "maand/maanden",
         "year": "jaar/jaren"},
        "een/één twee/paar/een_paar drie vier vijf zes zeven acht negen tien elf twaalf",
        {"eergisteren": -2, "gisteren": -1, "vandaag": 0, "vanavond": 0, "vanochtend": 0, "overmorgen": 2, "morgen": 1},
        (r"(?:vorige?|afgelopen) {x}",), (r"(?:deze|dit) {x}",), (r"(?:volgende?|komende?) {x}",),
        (r"{n} {unit} geleden",), (r"over {n} {unit}",),
        (r"{d} {month}(?: {year})?",), (r"{month} {year}",),
        "in|sinds|tot|van|tijdens|begin|eind|tussen|en", "zal|zullen|gaan|volgende|komende",
    ),
    "russian": DateWords(
        "январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле май/мая/мае "
        "июнь/июня/июне июль/июля/июле август/августа/августе сентябрь/сентября/сентябре "
        "октябрь/октября/октябре ноябрь/ноября/ноябре декабрь/декабря/декабре",
        "понедельник вторник среду/среда четверг пятницу/пятница субботу/суббота воскресенье",
        "весной/весна/весну летом/лето осенью/осень зимой/зима/зиму",
        {"day": "день/дня/дней", "week": "неделя/недели/неделю/неделе/недель", "weekend": "выходные/выходных",
         "month": "месяц/месяца/месяцев/месяце", "year": "год/года/году/лет"},
        "один/одну два/две/пару три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
        {"позавчера": -2, "вчера": -1, "сегодня": 0, "послезавтра": 2, "завтра": 1},
        (r"прошл(?:ой|ом|ую|ый|ое|ым) {x}",), (r"эт(?:ой|ом|у|от|о|им) {x}",), (r"следующ(?:ей|ем|ую|ий|ее) {x}",),
        (r"(?:{n} )?{unit} назад",), (r"через {n} {unit}",),
        (r"{d}(?:-го)? {month}(?: {year})?",), (r"{month} {year}",),
        "в|с|до|во|по|к", "буду|будет|будем|поеду|поедем|следующей|следующем",
    ),
}  # fmt: skip
"""Words of each language whose words are separated by spaces, by the name of its stemmer."""

"""Find names that a talk introduces: after "my puppy Toby", a question about the puppy is one about Toby, and the other
way round.

Used by `recall_search`, which adds the other word of a pair to a query. Nothing is kept: the names are read from the
messages of a view when a query asks for one of their words, so a search as of a moment knows no later name.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from everlog.projections.search.talk_index import TalkView
from everlog.store.base.function_words import ENGLISH, FUNCTION_WORDS, QUESTION_WORDS
from everlog.store.base.stemming import language_of, query_stems, stems

MESSAGE_CHARS_MAX = 10_000
"""Characters of a message, from its beginning, in which names are sought."""
MESSAGE_ALIASES_MAX = 8
"""Maximum number of pairs of one message: the first."""
AT_EACH_END = 8
"""Number of the first messages with a word, and of the last, that are read for names."""
MESSAGES_MAX = 48
"""Maximum number of messages that are read for names for one query. Each takes 34 us."""
EXPANSIONS_MAX = 6
"""Maximum number of other words for one word of a query: those that were introduced last."""

_UPPER, _LOWER = "[A-ZÀ-ÖØ-ÞА-ЯЁ]", "[a-zß-öø-ÿа-яё]"
_NAME = rf"(?P<name>{_UPPER}[\w'’-]{{1,19}}(?: {_UPPER}[\w'’-]{{1,19}})?)(?!\w)"
_RELATION = (
    "mother|mom|mum|father|dad|parents?|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend|fiancée?|"
    "grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|twins?|baby|friend|roommate|flatmate|"
    "neighbou?r|boss|manager|colleague|coworker|teacher|coach|mentor|doctor|dentist|therapist|hometown|city|town|"
    "dog|puppy|pup|cat|kitten|horse|bird|parrot|rabbit|bunny|hamster|turtle|snake|fish|pet|car|boat|band|school|company"
)
_WORD = r"[^\W\d_]{2,20}"
_OWN = (
    r"my|our|his|her|their|your|mi|tu|su|nuestr[oa]|meu|minha|seu|sua|nosso|nossa|mon|ma|son|sa|notre|votre|"
    r"mi[oa]|su[oa]|nostr[oa]|meine?[nrm]?|unsere?[nrm]?|ihre?[nrm]?|seine?[nrm]?|mijn|onze?|zijn|haar|мо[йяею]|мою|наш[аеу]?"
)
_MINE = "my|our|mi|nuestr[oa]|meu|minha|mon|ma|notre|il mio|la mia|meine?|unsere?|mijn|onze?|мо[йя]"
_SOME = r"an?|the|una?|um|uma|une?|uno|eine?[nrm]?|een"
_CALLED = (
    r"(?:,? (?:is |was )?(?:named|called)|(?:'s|’s)? name is|,? (?:se llama|llamad[oa]|de nombre|se chama|chamad[oa]|"
    r"s['’]appelle|nommée?|appelée?|si chiama|di nome|chiamat[oa]|heißt|namens|heet|genaamd|зовут))"
)
_SPACED = (
    re.compile(rf"(?i:\b(?:{_OWN}|{_SOME}) (?:{_WORD} ){{0,2}}?(?P<noun>{_WORD}){_CALLED}) {_NAME}"),
    re.compile(
        rf"(?i:\b(?:name of|nombre de|nome d[ei]l?|nom de) (?:{_OWN}) (?P<noun>{_WORD}) (?:is|es|è|é|est)) {_NAME}"
    ),
    re.compile(rf"\b(?i:{_OWN}) (?:{_LOWER}[\w-]{{1,19}} ){{0,2}}?(?P<noun>{_LOWER}[\w-]{{1,19}}) {_NAME}"),
    re.compile(rf"\b(?i:{_OWN}) (?:{_LOWER}[\w-]{{1,19}} ){{0,2}}?(?P<noun>{_RELATION}), {_NAME}"),
    re.compile(rf"\b(?i:{_OWN}) (?P<noun>[A-ZÄÖÜ]{_LOWER}{{2,19}}) {_NAME}(?=[ ,.!?])"),
    re.compile(rf"\b{_NAME} is (?:{_OWN}) (?:{_LOWER}[\w-]{{1,19}} ){{0,2}}?(?P<noun>{_RELATION})\b"),
    re.compile(
        rf"\b{_NAME}, (?:{_MINE}) (?:{_LOWER}[\w-]{{1,19}} ){{0,2}}?(?P<noun>{_LOWER}[\w-]{{1,19}})(?: de {_WORD})?"
        "[,.)!?]"
    ),
    re.compile(rf"\b(?i:{_OWN}) (?P<noun>{_LOWER}[\w-]{{1,19}})(?: de {_WORD})? (?:is|es|est|è|é|ist|это) {_NAME}"),
)  # fmt: skip
_TRIGGERS_TEXT = """
named called name llama llamado llamada nombre chama chamado chamada s'appelle s’appelle nommé nommée appelé
appelée chiama nome chiamato chiamata heißt namens heet genaamd зовут my our his her their your mi tu su
nuestro nuestra meu minha seu sua nosso nossa mon ma son sa notre votre mio mia suo sua nostro nostra mein
meine meinen meinem meiner unser unsere ihr ihre sein seine mijn ons onze zijn haar мой моя мое моё мои мою
моей наш наша
"""
_TRIGGERS = frozenset(_TRIGGERS_TEXT.split())
_BEFORE, _AFTER = 5, 7
"""Words before and after such a word in which a pair is sought."""
_HAN = "\u4e00-\u9fff"
_SURNAMES = (
    "王李张劉刘陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何高林罗羅郑鄭梁谢謝宋唐许許韩韓冯馮邓鄧曹彭曾肖田董袁潘于蒋蔣蔡余杜叶葉程苏蘇魏吕呂丁任沈姚卢盧"
    "姜崔钟鍾谭譚陆陸汪范金石廖贾賈夏韦韋付方白邹鄒孟熊秦邱江尹薛闫阎段雷侯龙龍史陶黎贺賀顾顧毛郝龚龔邵万萬钱錢严嚴覃武戴莫孔向汤湯"
)
_KIN = (
    "妈妈|媽媽|爸爸|母亲|母親|父亲|父親|奶奶|爷爷|爺爺|外婆|外公|姥姥|姥爷|姑姑|姑妈|叔叔|舅舅|阿姨|姨妈|伯伯|岳父|岳母|公公|婆婆|姐姐|妹妹|哥哥|弟弟|"
    "表[姐妹哥弟]|堂[姐妹哥弟]|儿子|兒子|女儿|女兒|外甥女?|侄子|侄女|孙子|孙女|丈夫|老公|妻子|老婆|太太|男朋友|女朋友|男友|女友|朋友|闺蜜|閨蜜|同学|同學|同事|"
    "室友|邻居|鄰居|房东|房東|老板|老闆|经理|經理|上司|老师|老師|教练|教練|医生|醫生|牙医|牙醫|律师|律師|会计|助理|导师|導師|客户|客戶|[小大]?[狗猫貓]|兔子|鹦鹉"
)
_EAST_ASIAN = (
    re.compile(rf"我们?家?的?[{_HAN}]{{0,3}}?(?P<noun>{_KIN})(?P<name>[{_SURNAMES}][{_HAN}])"),
    re.compile(rf"(?P<name>[{_SURNAMES}][{_HAN}]{{1,2}})(?:，?(?:也就)?是|，)我们?家?的?[{_HAN}]{{0,3}}?(?P<noun>{_KIN})"),
    re.compile(rf"(?:[我你他她咱]们?家?的?|[們]的?|[只隻条條个個位名头匹])(?P<noun>[{_HAN}]{{1,4}}?)(?:的名字|名字)?"
               rf"(?:叫做|叫作|名叫|取名为?|起名叫?|是|叫)(?P<name>(?<!是)[{_HAN}A-Za-z]{{1,6}})(?=[，。！？、；,.!?\s]|$)"),
    re.compile(rf"(?P<noun>[{_HAN}\u30a0-\u30ff]{{1,6}})の名前は「?(?P<name>[{_HAN}\u3040-\u30ff]{{1,8}}?)」?(?:です|だ|と|[。、！]|$)"),
    re.compile(rf"「?(?P<name>[{_HAN}\u30a0-\u30ff]{{1,8}})」?(?:という|って(?:いう)?名前の)(?P<noun>[{_HAN}\u30a0-\u30ff]{{1,6}})"),
    re.compile(
        r"(?P<noun>[\uac00-\ud7a3]{1,6}) 이름은 (?P<name>[\uac00-\ud7a3]{1,6}?)(?:이?야|이?에요|예요|입니다|[.!,]|$)"
    ),
)  # fmt: skip
_NO_NOUNS_TEXT = """
favorite favourite new old own first last best dear little big next whole entire current former great good nice way name
day week month year morning night time life mind opinion god thanks favorito nuevo vieja
llama llamo chama chamo appelle chiama heißt heisst zovut heet зовут
"""
_NO_NOUNS = frozenset(_NO_NOUNS_TEXT.split())
_NO_NAMES_TEXT = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december christmas thanks thank please wow ok okay sorry
"""
_NO_NAMES = frozenset(_NO_NAMES_TEXT.split())


class IntroducedName(NamedTuple):
    """A common noun and a name that a message introduced as the same, both as stems."""

    noun: tuple[str, ...]
    name: tuple[str, ...]


def aliases_in(text: str) -> tuple[IntroducedName, ...]:
    """Return the pairs that a message introduces, in order of the rules."""
    text = text[:MESSAGE_CHARS_MAX]
    written = tuple(dict.fromkeys(_pairs(text if text.isascii() else unicodedata.normalize("NFC", text))))
    if not written:
        return ()
    language = language_of(text)
    own = QUESTION_WORDS if language == ENGLISH else QUESTION_WORDS | FUNCTION_WORDS[language]
    no_names = own | _NO_NAMES | FUNCTION_WORDS[ENGLISH]
    found: dict[IntroducedName, None] = {}
    for noun, name in written:
        first = name.split()[0].lower()
        if noun.lower() in own | _NO_NOUNS or first in no_names or {"'", "’"} & set(first):
            continue
        alias = IntroducedName(_as_query(noun, language), _as_query(name, language))
        if not set(alias.noun) & set(alias.name):
            found[alias] = None
    return tuple(found)[:MESSAGE_ALIASES_MAX]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield nouns and names as they are written."""
    for window, pattern in product(dict.fromkeys(_windows(text)), _SPACED):
        for match in pattern.finditer(window):
            yield match["noun"], match["name"].removesuffix("'s").removesuffix("’s")
    for pattern in _EAST_ASIAN if not text.isascii() else ():
        yield from ((match["noun"], match["name"]) for match in pattern.finditer(text))


def _windows(text: str) -> Iterator[str]:
    """Yield the parts of a text that can introduce a name: around a word such as "my" or "called", with a capital."""
    lowered = text.lower().split()
    if _TRIGGERS.isdisjoint(lowered):
        return
    words = text.split()
    for place, word in enumerate(lowered):
        if word in _TRIGGERS and any(near[0].isupper() for near in words[max(place - 3, 0) : place + 6]):
            yield " ".join(words[max(place - _BEFORE, 0) : place + _AFTER])


def _as_query(words: str, language: str) -> tuple[str, ...]:
    """Return the stems of a noun or name, in the form in which queries have them."""
    found = stems(words, language) if words[0] < "\u0e00" else query_stems(words)
    return tuple(dict.fromkeys(found))


def with_aliases(words: Sequence[Sequence[str]], talk: TalkView) -> list[tuple[str, ...]]:
    """Return the words of a query, each as its possible stems, with the stems that the talk introduced for them: after
    "my puppy Toby", `puppy` is `Toby`, too. Only messages with the word are read, the first and the last of them.

    Names of speakers are left out: what a speaker is called says nothing about the subject, and all of their messages
    would match.
    """
    speakers = frozenset[str]().union(*talk.name_stems)
    asked = frozenset(stem for word in words for stem in word)
    known: dict[int, tuple[IntroducedName, ...]] = {}
    return [
        tuple(word) if not speakers.isdisjoint(word) else (*word, *_introduced(word, talk, known, asked | speakers))
        for word in words
    ]


def _introduced(
    word: Sequence[str], talk: TalkView, known: dict[int, tuple[IntroducedName, ...]], left_out: frozenset[str]
) -> list[str]:
    """Return the stems that were introduced for a word, the newest first. A word of Chinese stands for its characters,
    too: 的狗 has 狗. `known`: pairs of the messages that were read, by place.
    """
    sought = dict.fromkeys([*word, *(char for stem in word if not stem.isascii() for char in stem)])
    found: dict[str, None] = {}
    for stem in sought:
        for place in reversed(_places(talk, stem)):
            if place not in known and len(known) < MESSAGES_MAX:
                known[place] = _introduced_at(talk, place)
            for noun, name in known.get(place, ()):
                for one, other in ((noun, name), (name, noun)):
                    found |= dict.fromkeys(other if stem in one else ())
    return [stem for stem in found if stem not in left_out][:EXPANSIONS_MAX]


def _introduced_at(talk: TalkView, place: int) -> tuple[IntroducedName, ...]:
    """Return the pairs of a message, which is read once."""
    read = talk.introduced
    if place not in read:
        read[place] = aliases_in(talk.text(place))
    found: tuple[IntroducedName, ...] = read[place]
    return found


def _places(talk: TalkView, stem: str) -> list[int]:
    """Return the first and the last messages with a stem: a name is introduced early, or again."""
    places: list[int] = talk.places_with(stem).tolist()
    return places if len(places) <= 2 * AT_EACH_END else places[:AT_EACH_END] + places[-AT_EACH_END:]

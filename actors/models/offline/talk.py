"""What the offline stand-in says where nothing is to be noted or looked up: who it is, small talk, honesty. Pure."""

import re
import zlib

from everlog.actors.models.offline.words import Wording, plain

INTRODUCTION = "I am everlog's offline stand-in: rule-based, not a language model."
HELP = (
    'I note what you tell me about yourself, and look up what was said and when. Try "My dog is called Rex", '
    '"What do you know about me?", "What did we say on 2023-05-08?", "keep this: ..." or "forget that ...".'
)
HONEST = "I am rule-based and not a language model, so I cannot think that through. I can remember and look things up."
NO_HELPER = (
    "I am everlog's offline stand-in: rule-based, not a language model, so I know nothing that could answer this. "
    "A real model can be asked with --helper MODEL."
)
SORRY = "I am sorry to hear that."


def _begins(pattern: str) -> re.Pattern[str]:
    """What a message begins with, in any letter case."""
    return re.compile(rf"^(?:{pattern})\b", re.IGNORECASE)


_QUESTION = re.compile(r"\byou help another assistant\b.*\banswer briefly\b", re.IGNORECASE)
_GREETING = re.compile(r"^(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|evening|afternoon))\b", re.IGNORECASE)
_IDENTITY = Wording(
    r"\b(?:who|what) (?:exactly )?are you\b|\bwho am i (?:talking|speaking)|\bwhat(?:'s| is) your name\b|\bwhat model\b"
    r"|\bare you (?:an? |the |really |even )*(?:ai|bot|robot|chatbot|human|person|language model|llm|gpt\S*|chatgpt"
    r"|claude|real|machine|program|computer|alive|conscious|sentient|rule)"
    r"|\bintroduce yourself\b|\babout yourself\b|\bhow do you work\b|\bwho (?:made|built|created|wrote) you\b"
    r"|\bwhat(?:'s| is) everlog\b",
    "are you", "who ", "your name", "what model", "yourself", "how do you work", "everlog",
)  # fmt: skip
_SMALL = (
    (Wording(r"\bhow are (?:you|things)\b|\bhow'?s (?:it going|life)\b|\bwhat'?s up\b",
             "how are", "it going", "life", "s up"),
     "All my rules are in order, thank you. How are you?"),
    (_begins(r"help|what can (?:you|i) (?:do|remember|ask|say)|what do you do|how can you help"
             r"|(?:can|could) you help"),
     HELP),
    (_begins(r"thanks|thank you|thx|cheers|many thanks"), "You are welcome."),
    (_begins(r"(?:ok(?:ay)?,? )?(?:bye|goodbye|good ?night|see you|see ya|talk to you later|take care|quit|exit)"),
     "Goodbye. I keep what you told me."),
    (Wording(r"\b(?:another|more|other|second)\b.{0,20}\bjokes?\b", "joke"),
     "That was my only one. I am made of rules, not of jokes."),
    (Wording(r"\bjoke\b", "joke"),
     "Only one fits into my rules: an event log walks into a bar, and it can tell you exactly when."),
    (Wording(r"\bnice to meet you\b|\bpleased to meet you\b", "to meet you"), "It is nice to meet you too."),
    (_begins(r"i (?:really |do )*(?:love|like|miss) you|you(?:'re| are) (?:\w+ ){0,2}?(?:great|nice|awesome|amazing"
             r"|cool|sweet|smart|funny|kind|wonderful|helpful|the best)|(?:well done|good (?:job|bot))"),
     "That is kind of you."),
    (_begins(r"i (?:really )?hate you"
             r"|you(?:'re| are) (?:\w+ ){0,2}?(?:stupid|useless|dumb|bad|boring|annoying|terrible)|you suck"),
     "I am sorry that I am not more use. My rules are simple, but my memory is good."),
    (Wording(r"\b(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|true|correct|what i))|^wrong\b"
             r"|^you(?:'re| are) (?:wrong|mistaken)\b|^you got (?:that|it) wrong\b",
             "wrong", "incorrect", "not ", "mistaken"),
     "I am sorry. Tell me what is right, and I will note it."),
    (Wording(r"^(?:ha(?:ha)+|lol|rofl|hehe)\b|\bthat(?:'s| is| was) (?:so |very )?funny\b",
             "haha", "lol", "rofl", "hehe", "funny"),
     "I am glad that you are amused."),
    (re.compile(r"^(?:(?:i'm|i am|im) )?(?:doing |feeling |pretty |very |quite |all |not )*(?:good|fine|well|great|ok"
                r"|okay|bad|happy)(?:,? (?:and you|too|thanks|thank you|today))+"
                r"|^(?:i'm|i am|im) (?:\w+ ){0,2}?(?:good|fine|well|great|happy|glad)\b", re.IGNORECASE),
     "Good to hear. What would you like me to remember?"),
    (Wording(r"\bbored\b", "bored"), "Then tell me about your day: I keep every word."),
    (re.compile(r"^(?:ok(?:ay)?|cool|great|nice|fine|good|wow|sure|yes|yep|yeah|no|nope|right|alright|all right|perfect"
                r"|awesome|i see|got it|understood|maybe|hm+)[\s.!]*$", re.IGNORECASE),
     "All right."),
)  # fmt: skip
_SAD = Wording(
    r"\b(?:died|passed away|funeral|sad|lonely|depressed|sick|hurts?|divorced?|cancer|anxious|unhappy|heartbroken"
    r"|awful|miserable|lost my|broke up)\b",
    "died", "passed away", "funeral", "sad", "lonely", "depressed", "sick", "hurt", "divorce", "cancer", "anxious",
    "unhappy", "heartbroken", "awful", "miserable", "lost my", "broke up",
)  # fmt: skip
_GLAD = Wording(
    r"\b(?:got (?:married|engaged|promoted|the job)|passed my|graduated|won the|had a baby|new job)\b",
    "got ", "passed my", "graduated", "won the", "had a baby", "new job",
)  # fmt: skip
_TASK = re.compile(
    r"^(?:(?:can|could|would|will) you )?(?:please )?(?:write|explain|translate|summari[sz]e|solve|calculate|draw|sing"
    r"|suggest|recommend|teach|compose|invent|code)\b|^(?:what|how) (?:should|can|do) i (?!have\b|need\b|like\b|know\b"
    r"|do\b(?! (?:about|when|if))|look\b|live\b|work\b|prefer\b|want\b|own\b|eat\b|drink\b|love\b|hate\b)"
    r"|^should i\b|^what do you think\b|^(?:what(?:'?s| is) )?\d{1,9} ?[+*/x] ?\d",
    re.IGNORECASE,
)
_OPINION = Wording(r"\byour opinion\b", "your opinion")
_YOURS = re.compile(
    r"^(?:do|are|have|would) you (?!(?:\w+ )?(?:remember|recall|know|keep|store|save|find|search|look|tell"
    r"|sure|kept|heard)\b)"
    r"|^(?:how old|where|how tall|when) (?:are|do|were) you(?: live| born| from)?[\s?]*$|^where (?:are|do) you\b"
    r"|^what(?:'s| is| are) your\b",
    re.IGNORECASE,
)
_DEEP = Wording(
    r"\b(?:understand|opinion|explain|why|advice|advise|translate|summari[sz]e|write|poem|story|code|solve|calculate|suggest"
    r"|recommend|help me|what (?:do|should|would) (?:you|i)|how (?:do|can|should) i)\b",
    "understand", "opinion", "explain", "why", "advice", "advise", "translate", "summari", "write", "poem", "story",
    "code", "solve", "calculate", "suggest", "recommend", "help me", "what ", "how ",
)  # fmt: skip
_PLEASANT = (
    "Go on, I am listening.",
    "Tell me more about that.",
    "I see. Tell me more, if you like.",
    "That goes into my log. What else is on your mind?",
    "Interesting. Is there something in it that I should remember?",
    "I have heard you. I follow simple rules, but I keep every word.",
)


def is_greeting(text: str) -> bool:
    """Whether a message begins with a greeting."""
    return bool(_GREETING.match(text))


def is_question(system: str) -> bool:
    """Whether a system message is that of a question from another model."""
    return bool(_QUESTION.search(system))


def identity(text: str) -> bool:
    """Whether somebody asks what we are."""
    return bool(_IDENTITY.search(text))


def small_talk(text: str) -> str | None:
    """An answer to thanks, goodbye and the like."""
    return next((answer for pattern, answer in _SMALL if pattern.search(text)), None)


def feeling(text: str) -> str | None:
    """A word of sympathy, where a message is sad or glad."""
    if _SAD.search(text):
        return SORRY
    return "Congratulations!" if _GLAD.search(text) else None


def beyond(question: str) -> str | None:
    """An honest answer to what rules cannot do, or to what is asked of a person."""
    if _TASK.search(question) or _OPINION.search(question):
        return HONEST
    return "I am a set of rules, so I have nothing of my own to tell about that." if _YOURS.search(question) else None


def fallback(text: str) -> str:
    """What to say where no rule fits: honest where understanding is expected, else one of a few by the text's hash."""
    if _DEEP.search(plain(text)):
        return HONEST
    return _PLEASANT[zlib.crc32(text.encode("utf-8", "replace")) % len(_PLEASANT)]


def greeting(name: str | None, *, first: bool, ask: bool = True) -> str:
    """A greeting; the first one says what we are, and asks for a name that we do not know."""
    hello = f"Hello, {name}!" if name else "Hello!"
    if first:
        return f"{hello} {INTRODUCTION}" + (" What is your name?" if ask and not name else "")
    return f"{hello} It is good to hear from you."

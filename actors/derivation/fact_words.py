"""Words of the rules for facts: relatives and friends, animals, occupations, and words that are no names. English."""

RELATIONS = (
    "best friend|friend|sister|brother|mother|mom|mum|father|dad|wife|husband|partner|girlfriend|boyfriend|fiancée?|"
    "son|daughter|boss|manager|colleague|coworker|roommate|flatmate|housemate|neighbou?r|cousin|aunt|uncle|grandmother|"
    "grandma|grandfather|grandpa|niece|nephew|stepmother|stepfather|stepsister|stepbrother|twin|teacher|therapist|doctor|"
    "dentist|coach|mentor|landlord|landlady"
)
ANIMALS = (
    "dog|puppy|cat|kitten|horse|pony|hamster|rabbit|parrot|bird|fish|turtle|tortoise|guinea pig|snake|pet|hen|goat"
)
OWNED = (
    f"{ANIMALS}|car|bike|bicycle|motorbike|boat|sailboat|house|cottage|cabin|garden|piano|guitar|violin|camper|van|"
    "child|children|kids?|sons?|daughters?|brothers?|sisters?|siblings?|grandchildren|dogs|cats|horses|rabbits|birds|twins"
)
OCCUPATIONS = (
    "nurse|teacher|engineer|doctor|lawyer|attorney|baker|carpenter|programmer|developer|designer|architect|accountant|"
    "journalist|writer|author|chef|cook|waiter|waitress|barista|driver|pilot|sailor|farmer|gardener|plumber|electrician|"
    "mechanic|musician|singer|dancer|actor|actress|painter|photographer|scientist|researcher|professor|physicist|chemist|"
    "biologist|librarian|pharmacist|dentist|surgeon|veterinarian|vet|therapist|psychologist|counselor|counsellor|manager|"
    "consultant|analyst|salesman|saleswoman|cashier|clerk|secretary|receptionist|policeman|policewoman|detective|"
    "firefighter|soldier|judge|translator|editor|translator|tailor|butcher|hairdresser|midwife|paramedic|coach|trainer|"
    "instructor|tutor|banker|economist|student|postman|mayor|priest|pastor"
)
DIETS = "vegan|vegetarian|pescatarian"
SAME = {
    "mom": "mother", "mum": "mother", "dad": "father", "grandma": "grandmother", "grandpa": "grandfather",
    "neighbor": "neighbour", "puppy": "dog", "kitten": "cat", "fiancée": "fiancé",
}  # fmt: skip
"""Words with one meaning, each with the word that predicates use."""
_NO_NAMES = """
I The A An This That These Those It He She They We You My Your His Her Our Their There Here What Who When
Where Why How Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
July August September October November December Today Tomorrow Yesterday Everyone Everybody Someone Somebody
Nobody Nothing Something All Some Many Most One Two Three Life Work Time Yes No Not And But Or So If In On At
For From With Since Because After Before Let Please Thanks Thank Good Great Happy Nice Now Then Just Also Even
Only Every Each Both Another Other Having Being Do Does Did Is Are Was Were Have Has Had Can Could Will Would
Got Getting Going Sounds Love Hope Here's There's That's What's It's Let's Who's How's Helps Unconditional
Still Really Always Never Maybe Okay Ok Well Oh Hey Hi Hello Wow
"""
NO_NAMES = frozenset(_NO_NAMES.split())
"""Words with a capital at the beginning of a sentence that are no names."""
NOTHING = (
    r"(?:it|that|this|these|those|them|him|her|you|me|us|how|what|when|where|who|why|"
    r"to (?:see|hear|know|say|meet|think|be)|"
    r"being|the way|the fact|the idea|having|your?|my|his|their|one another|each other|everything|everyone|some|all|"
    r"both|"
    r"one|any|something|getting)\b"
)
"""Beginnings of objects that name nothing by themselves."""


def same_word(word: str) -> str:
    """Return the form of a word that predicates use."""
    lower = " ".join(word.lower().split())
    return SAME.get(lower, lower).replace(" ", "_")


_BASE_FORMS = """
live work love like hate enjoy adore speak play study drive own come have go do detest
"""
BASE_FORMS = frozenset(_BASE_FORMS.split())
"""Forms of verbs that do not follow the name of one person."""

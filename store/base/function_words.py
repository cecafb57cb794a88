"""Commonest words of each language: they say which language a text is in, and nothing of its subject.

Used by `stemming`: for the language of a text, and to leave such words out of a query. A change of `FUNCTION_WORDS` or
`LETTERS` changes stems, so it needs a new `CHUNKER` in `archive_constants`.
"""

from collections.abc import Mapping

ENGLISH = "english"
"""Language of texts whose words say nothing else."""

_QUESTION_WORDS_TEXT = """
what when where which who whom whose why how did does do is are was were has have had will would can could
should a an the of to in on at for and or with about it its that this there i me my mine we us our you your he
him his she her they their them be been being by from as not no any some take took
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS_TEXT.split())
"""English words that are dropped from a query (not from texts) unless no others are left: they say how to answer, not
what the question is about.
"""

_WRITTEN = {
    ENGLISH: """
        hey hi hello thanks yes yeah ok okay just so but if than then too also very really more most much many out up
        into over after before because while get got going go like know think see make all these those here now well
        only even back still let such each other own same um uh mm hmm yep nope cool great met die den men man hat war
        bin son pour par ton sin con come era fine pa ma da per sue van ten till far under sit dig dine door gut tag
        sole care note no on ago two three new time day good one first last long little old right left year years week
        weeks way home work love people thing things something someone say said says told tell want need feel felt
        made went came took give gave find found keep put ever never always often again today yesterday tomorrow both
        few every another around through down off where don t s m re ve ll am
    """,
    "spanish": """
        el la los las un una unos unas de del al y o u que qué en es por para con sin se su sus lo le les me mi mis te
        tu tus yo tú él ella nosotros ellos no sí si pero más muy ya como cómo cuando cuándo donde dónde cuál cuáles
        quién quiénes cuánto cuántos cuántas está están estoy era fue son soy eres ser ha he hay hace también porque
        desde hasta sobre entre este esta esto ese esa eso todo nada hola gracias ayer hoy mañana
    """,
    "portuguese": """
        o a os as um uma uns umas de do da dos das em no na nos nas e ou que por para pelo pela com sem se seu sua seus
        suas lhe me meu minha meus minhas te teu tua eu tu ele ela nós eles elas você vocês não sim mas mais muito já
        como quando onde qual quais quem quanto quantos está estão estou era foi são sou é ser há também porque desde
        até sobre entre este esta isto esse essa isso tudo nada olá obrigado obrigada ontem hoje amanhã ao à às
    """,
    "french": """
        le la les un une des de du au aux et ou où que qui quoi dans en est par pour avec sans se sa son ses lui leur
        leurs me moi mon ma mes te toi ton ta tes je tu il elle nous vous ils elles ne pas non oui mais plus très déjà
        comme comment quand quel quelle quels quelles combien pourquoi était sont suis es être a ai as ont avons avez
        aussi parce depuis sur entre ce cet cette ces ça cela tout rien bonjour merci hier demain c j l d n qu y
    """,
    "italian": """
        il lo la i gli le un uno una di del della dei delle dello degli a al alla ai alle da dal dalla in nel nella e o
        che chi cosa per con senza su sul sulla si suo sua suoi sue mi mio mia miei mie ti tuo tua tuoi tue io tu lui
        lei noi voi loro non sì ma più molto già come quando dove quale quali quanto quanti perché è era sono sei
        siamo essere ho hai ha abbiamo hanno anche questo questa questi queste quello quella tutto niente ciao grazie
        ieri oggi domani qual c l
    """,
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder dass in im ist sind war waren bin bist sein
        seine ihr ihre ihren mein meine meinen meinem meiner dein deine deinen ich du er sie es wir uns mich mir dich
        dir ihm ihn nicht kein keine ja nein aber mehr sehr schon wie wann wo wer was wen wem wessen welche welcher
        welches wieviel warum wieso hat habe haben hatte wird werden auch weil seit bis auf aus bei mit nach von vom zu
        zum zur über unter für um als wenn dann noch nur so hallo danke gestern heute morgen man am an
    """,
    "dutch": """
        de het een en of dat die in is zijn was waren ben bent haar hun hem mijn jouw jullie uw ik jij je hij zij ze wij
        we ons onze mij me niet geen ja nee maar meer zeer heel al hoe wanneer waar wie wat welke waarom hoeveel heeft
        heb hebben had wordt worden ook omdat sinds tot op uit bij met naar van voor om als dan nog maar zo door over
        te er aan dit deze daar hier hallo bedankt gisteren vandaag morgen
    """,
    "swedish": """
        och att det som en ett den de är var jag du han hon vi ni inte nej men mer mycket redan hur när vem vad
        vilken vilket vilka varför har hade blir också eftersom sedan på av för med till från om då här där min mitt
        mina din ditt dina sin sitt sina oss dem mig dig sig eller bara så hej tack igår idag imorgon i
    """,
    "danish": """
        og at det som en et den de er var jeg du han hun vi ikke nej ja men mere meget allerede hvordan hvornår hvor
        hvem hvad hvilken hvilket hvilke hvorfor har havde bliver også fordi siden på af for med til fra om da her
        der min mit mine din dit dine sin sit sine os dem mig dig sig eller kun så hej tak går dag morgen blev i
    """,
    "norwegian": """
        og at det som en et ei den de er var jeg du han hun vi ikke nei ja men mer mye allerede hvordan når hvor hvem
        hva hvilken hvilket hvilke hvorfor har hadde blir også fordi siden på av for med til fra om da her der min mitt
        mine din ditt dine sin sitt sine oss dem meg deg seg eller bare så hei takk går morgen ble i
    """,
    "finnish": """
        ja on ei se että hän minä sinä me te he olen olet oli ovat ollut olla en et emme ette eivät mutta kun kuin niin
        myös jo vain hyvin mikä mitä missä milloin kuka kenen miksi miten minun sinun hänen meidän teidän heidän minulla
        tämä tuo nämä ne siitä sitä tai koska jos sitten nyt täällä siellä kiitos hei eilen tänään huomenna
    """,
    "hungarian": """
        a az egy és vagy hogy nem is van volt vagyok vagy vannak én te ő mi ti ők már csak de mert ha mint nagyon meg
        ki kit mikor hol hogyan miért melyik mennyi hány ez ezt azt ebben abban nekem neked neki az én itt ott most
        még lesz lett igen köszönöm szia tegnap ma holnap
    """,
    "romanian": """
        și si în pe la cu de din pentru că ca să sa nu este e sunt era am ai are avem un o unui unei al ale lui ei eu
        tu el ea noi voi meu mea mei tău ta dar mai foarte deja cum când unde cine ce care de după fără sau
        acest această asta tot nimic salut mulțumesc ieri azi mâine
    """,
    "turkish": """
        ve bir bu şu o ben sen biz siz onlar benim senin onun bizim sizin değil mi mı mu mü ne nasıl nerede kim kimin
        hangi kaç neden niçin için ile de da ki ama fakat çok daha var yok gibi kadar sonra önce zaman evet hayır
        olarak oldu olan idi dün bugün yarın merhaba teşekkürler
    """,
    "catalan": """
        el la els les un una uns unes de del dels al als i o que què en és per amb sense es seu seva meu meva teu teva
        jo tu ell ella nosaltres no sí però més molt ja com quan on qui quin quina quants està són era va han he hi
        també perquè des fins sobre entre aquest aquesta això tot res hola gràcies ahir avui demà
    """,
    "indonesian": """
        yang dan di ke dari ini itu untuk dengan tidak bukan saya aku kamu anda dia kami kita mereka adalah ada akan
        sudah telah belum bisa juga atau tetapi tapi karena pada oleh dalam apa siapa kapan mana bagaimana mengapa
        kenapa berapa sangat lebih lagi saja seperti kemarin besok halo terima kasih
    """,
}
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split()) | (QUESTION_WORDS if language == ENGLISH else frozenset())
    for language, words in _WRITTEN.items()
}
"""Commonest words of each language of the Latin script, by the name of its stemmer, in lower case with their accents.
English is the first.
"""

LETTERS: Mapping[str, str] = {
    "ñ": "spanish", "¿": "spanish", "¡": "spanish", "ã": "portuguese", "õ": "portuguese", "ß": "german",
    "œ": "french", "ğ": "turkish", "ı": "turkish", "ő": "hungarian", "ű": "hungarian", "ț": "romanian",
    "ș": "romanian", "ă": "romanian",
}  # fmt: skip
"""Letters that only one of these languages has."""

OTHER_SCRIPTS: tuple[tuple[str, str, str], ...] = (
    ("\u0370", "\u03ff", "greek"), ("\u0400", "\u052f", "russian"), ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"), ("\u0900", "\u097f", "hindi"), ("\u0b80", "\u0bff", "tamil"),
    ("\u1f00", "\u1fff", "greek"),
)  # fmt: skip
"""First and last letter of other scripts, and the stemmer of their words."""

_QUERY_WORDS_OF_OTHER_SCRIPTS_TEXT = """
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее мне было вот от меня о из ему
когда где кто кого чей чья почему зачем сколько какой какая какое какие каком мой моя мое мои твой твоя есть был
была были ли και το τα ο η οι τον την του της των σε με από για είναι ήταν τι ποιος ποια ποιο πού πότε πώς γιατί
πόσο πόσα μου σου في من على إلى عن ما ماذا متى أين من كيف لماذا كم هل هو هي أنا أنت كان كانت هذا هذه التي الذي
क्या कब कहाँ कौन कैसे क्यों कितना कितने है हैं था थी थे का की के में से को पर और मेरा मेरी मेरे यह वह 무엇 뭐 무슨 언제
어디 어디서 어디에 누구 누가 왜 어떻게 어느 어떤 몇 얼마 얼마나 나는 내가 나의
내 제가 저는 제 저의 그는 그녀는 מה מתי איפה מי איך למה כמה האם של את על עם זה
הוא היא אני
"""
QUERY_WORDS_OF_OTHER_SCRIPTS = frozenset(_QUERY_WORDS_OF_OTHER_SCRIPTS_TEXT.split())
"""Words of other scripts that are dropped from a query unless no others are left."""

_QUERY_PHRASES_TEXT = """
什么时候 什麼時候 为什么 為什麼 是什么 是什麼 什么 什麼 甚麼 哪里 哪裡 哪儿 哪兒 哪些 哪个 哪個 哪天
哪年 哪一天 哪 谁 誰 怎么样 怎麼樣 怎么 怎麼 怎样 怎樣 如何 多少 多久 几点 幾點 有没有 有沒有 是不是
吗 嗎 呢 请问 請問 告诉我 告訴我 なんですか 何ですか ですか でしょうか でしたか ましたか ますか
ました でした について 教えて ください どうやって どうして いつ どこ だれ 誰 なぜ なに 何が 何を
何の 何時 どんな どの どれ どう いくつ いくら という です ます เมื่อไหร่ เมื่อไร ที่ไหน อะไร ทำไม
อย่างไร ยังไง เท่าไหร่ เท่าไร หรือเปล่า ใคร กี่ ไหน ครับ ค่ะ คะ
"""
QUERY_PHRASES = tuple(_QUERY_PHRASES_TEXT.split())
"""Words of scripts without spaces that are cut out of a query unless nothing else is left."""

QUERY_CHARACTERS = frozenset("的了是在我你他她它们們有和也都就着过過得地个個这這那会會要说說はがをにでともへやのかねよ")
"""Characters that say little: a pair or a single one of them is dropped from a query unless nothing else is left."""

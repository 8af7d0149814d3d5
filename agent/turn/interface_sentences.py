"""What is said to a person in their own language: that nothing was found, what was left out, greetings.

Chosen by the language of the question. In runs everything is in English (`AnswerTuning.own_language`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from indexes.text.analysis import ENGLISH, word_set
from indexes.text.languages import find_question_language


@dataclass(frozen=True, slots=True)
class InterfaceSentences:
    """The sentences of one language. Statements of the person are quoted, since they are not translated."""

    not_found: str  # before what comes nearest
    nothing: str  # where there is not even that
    told: str  # of a statement
    left_out: str  # of what was told, and the names of what was left out
    careful: str  # of what was told, and the names of what has what the person must avoid
    conflict: str  # of statements, and the names of what conflicts
    last: str  # before the last of several names
    more: str  # names that are not listed, by their number
    hello: tuple[str, ...]
    welcome: str
    agreed: tuple[str, ...]
    goodbye: str
    about_me: str  # of the name of the collection
    talk_words: frozenset[str]  # of greetings and thanks, which are too short to tell the language by


SENTENCES = {
    ENGLISH: InterfaceSentences(
        "I found no answer to this in the passages. What comes nearest:",
        "I found nothing about this in the documents.",
        "You told me: “{}”",
        "{told}, so I left out {names}.",
        "{told}, so be careful with {names}.",
        "Everything I found conflicts with what you told me ({statements}): {names}.",
        " and ",
        "{} more",
        ("Hello.", "What would you like to know?"),
        "You are welcome.",
        ("Good.", "Ask on whenever you like."),
        "Goodbye.",
        "I am convagent. I answer from {name}, sentence by sentence, each with its source.",
        frozenset(),
    ),
    "de": InterfaceSentences(
        "Ich habe in den Texten keine Antwort darauf gefunden. Am nächsten kommt:",
        "Ich habe in den Dokumenten nichts dazu gefunden.",
        "Du hast mir gesagt: „{}“",
        "{told}, deshalb habe ich weggelassen: {names}.",
        "{told}, also Vorsicht bei: {names}.",
        "Alles, was ich gefunden habe, widerspricht dem, was du mir gesagt hast ({statements}): {names}.",
        " und ",
        "{} weitere",
        ("Hallo.", "Was möchtest du wissen?"),
        "Gern geschehen.",
        ("Gut.", "Frag gern weiter."),
        "Auf Wiedersehen.",
        "Ich bin convagent. Ich antworte aus {name}, Satz für Satz, jeder mit seiner Quelle.",
        word_set(
            "danke vielen dank besten hallo guten tag morgen moin servus grüss grüezi wie geht tschüss tschau auf bis "
            "hilfe bist kannst du"
        ),
    ),
    "fr": InterfaceSentences(
        "Je n’ai pas trouvé de réponse dans les textes. Ce qui s’en approche le plus :",
        "Je n’ai rien trouvé à ce sujet dans les documents.",
        "Tu m’as dit : « {} »",
        "{told}, j’ai donc laissé de côté : {names}.",
        "{told}, attention donc à : {names}.",
        "Tout ce que j’ai trouvé contredit ce que tu m’as dit ({statements}): {names}.",
        " et ",
        "{} de plus",
        ("Bonjour.", "Que veux-tu savoir ?"),
        "De rien.",
        ("Bien.", "Tu peux continuer à demander."),
        "Au revoir.",
        "Je suis convagent. Je réponds à partir de {name}, phrase par phrase, chacune avec sa source.",
        word_set("merci bonjour bonsoir salut coucou ça au à bientôt aide qui"),
    ),
    "es": InterfaceSentences(
        "No he encontrado una respuesta en los textos. Lo más cercano:",
        "No he encontrado nada sobre esto en los documentos.",
        "Me has dicho: «{}»",
        "{told}, por eso he dejado fuera: {names}.",
        "{told}, así que ten cuidado con: {names}.",
        "Todo lo que he encontrado contradice lo que me has dicho ({statements}): {names}.",
        " y ",
        "{} más",
        ("Hola.", "¿Qué quieres saber?"),
        "De nada.",
        ("Bien.", "Puedes seguir preguntando."),
        "Adiós.",
        "Soy convagent. Respondo a partir de {name}, frase por frase, cada una con su fuente.",
        word_set("gracias muchas hola buenos buenas adiós hasta ayuda quién"),
    ),
    "it": InterfaceSentences(
        "Non ho trovato una risposta nei testi. Ciò che più si avvicina:",
        "Non ho trovato nulla al riguardo nei documenti.",
        "Mi hai detto: «{}»",
        "{told}, perciò ho tralasciato: {names}.",
        "{told}, quindi fai attenzione a: {names}.",
        "Tutto ciò che ho trovato contraddice quello che mi hai detto ({statements}): {names}.",
        " e ",
        "altri {}",
        ("Buongiorno.", "Che cosa vuoi sapere?"),
        "Prego.",
        ("Bene.", "Chiedi pure altro."),
        "Arrivederci.",
        "Sono convagent. Rispondo a partire da {name}, frase per frase, ciascuna con la sua fonte.",
        word_set("grazie mille buongiorno buonasera salve arrivederci aiuto chi"),
    ),
    "nl": InterfaceSentences(
        "Ik heb hierop geen antwoord gevonden in de teksten. Wat er het dichtst bij komt:",
        "Ik heb hierover niets gevonden in de documenten.",
        "Je hebt me gezegd: “{}”",
        "{told}, daarom heb ik weggelaten: {names}.",
        "{told}, dus pas op met: {names}.",
        "Alles wat ik heb gevonden, is in strijd met wat je me hebt gezegd ({statements}): {names}.",
        " en ",
        "nog {}",
        ("Hallo.", "Wat wil je weten?"),
        "Graag gedaan.",
        ("Goed.", "Vraag gerust verder."),
        "Tot ziens.",
        "Ik ben convagent. Ik antwoord uit {name}, zin voor zin, elk met zijn bron.",
        word_set("bedankt dank je u wel hartelijk hoi goedemorgen goedemiddag goedenavond doei tot ben"),
    ),
    "pt": InterfaceSentences(
        "Não encontrei uma resposta nos textos. O que mais se aproxima:",
        "Não encontrei nada sobre isto nos documentos.",
        "Disseste-me: “{}”",
        "{told}, por isso deixei de fora: {names}.",
        "{told}, por isso tem cuidado com: {names}.",
        "Tudo o que encontrei contradiz o que me disseste ({statements}): {names}.",
        " e ",
        "mais {}",
        ("Olá.", "O que queres saber?"),
        "De nada.",
        ("Muito bem.", "Podes continuar a perguntar."),
        "Adeus.",
        "Sou o convagent. Respondo a partir de {name}, frase a frase, cada uma com a sua fonte.",
        word_set("obrigado obrigada muito olá bom boa dia tarde noite tchau adeus até ajuda quem"),
    ),
}
NOT_FOUND = SENTENCES[ENGLISH].not_found
NOT_FOUND_SENTENCES = tuple(
    text for sentences in SENTENCES.values() for text in (sentences.not_found, sentences.nothing)
)


def choose_sentences(utterances: Sequence[str]) -> InterfaceSentences:
    """Those of the language of the last utterance whose language is sure; English where that is none of the table."""
    found = (find_question_language(utterance) for utterance in reversed(utterances))
    return SENTENCES.get(next(filter(None, found), ENGLISH), SENTENCES[ENGLISH])


def choose_talk(utterance: str) -> InterfaceSentences:
    """Those of a greeting, thanks and the like, by its words; English where none of them tells."""
    words = re.findall(r"[^\W\d_]+", utterance.lower())
    shares = {language: sum(word in own.talk_words for word in words) for language, own in SENTENCES.items()}
    best = max(shares, key=lambda language: shares[language])
    return SENTENCES[best if shares[best] else ENGLISH]


def starts_with_not_found(text: str) -> bool:
    """Whether an answer opens by saying, in any language, that it found none."""
    return text.startswith(NOT_FOUND_SENTENCES)


def strip_not_found(text: str) -> str:
    """What an answer says of the matter: without the opening that says that it found none."""
    opening = next((sentence for sentence in NOT_FOUND_SENTENCES if text.startswith(sentence)), "")
    return text.removeprefix(opening).strip()

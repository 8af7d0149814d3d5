"""The files of `more_documents`, made again: `python benchmarks/own_documents/make_documents.py`.

What they say of a household is invented: a garden association, a choir and a flat in German, grandparents in French, a
language course in Spanish, a holiday flat in Italian, a school in Dutch, money and a talk in English.
"""

import datetime
from collections.abc import Mapping, Sequence
from email.header import Header
from email.utils import formataddr, parseaddr
from pathlib import Path
from typing import Any

from benchmarks.office_files import (
    Table,
    make_docx,
    make_epub,
    make_image,
    make_message,
    make_odf_list,
    make_odf_paragraph,
    make_odf_slide,
    make_odf_table,
    make_open_document,
    make_pptx,
    make_rtf,
    make_xlsx,
)

FOLDER = Path(__file__).parent / "more_documents"
HOME = "Familie Lindner-Visser <familie@lindner.example>"
LANDLORD = "Rolf Brockmann <brockmann@haus.example>"
Mail = tuple[str, str, str, str]  # sender, date, subject, text
Slide = tuple[str, Sequence[str], str]  # title, points, speaker's notes


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def make_sections(title: str, sections: Mapping[str, str | Table]) -> bytes:
    """A Word file of a title, and of headings with a text or a table below each."""
    parts: list[tuple[str, Any]] = [("Title", title)]
    for heading, content in sections.items():
        parts += [("Heading1", heading), ("" if isinstance(content, str) else "table", content)]
    return make_docx(title, parts)


def make_text(title: str, sections: Mapping[str, str]) -> bytes:
    """An OpenDocument text of headings with a text below each; the heading may be empty."""
    pieces = [make_odf_paragraph(title, "h", 'text:outline-level="1"')]
    for heading, text in sections.items():
        pieces += [make_odf_paragraph(heading, "h", 'text:outline-level="2"'), make_odf_paragraph(text)]
    return make_open_document("text", "".join(pieces), title)


def make_sheets(sheets: Mapping[str, Table]) -> bytes:
    """An OpenDocument workbook."""
    return make_open_document("spreadsheet", "".join(make_odf_table(rows, name) for name, rows in sheets.items()))


def make_slides(title: str, slides: Sequence[Slide]) -> bytes:
    """An OpenDocument presentation."""
    pages = (make_odf_slide(name, [make_odf_list(points)], notes) for name, points, notes in slides)
    return make_open_document("presentation", "".join(pages), title)


def make_mail(mail: Mail, attachment: str = "") -> str:
    sender, date, subject, text = mail
    named = subject if subject.isascii() else Header(subject, "utf-8", maxlinelen=200).encode()
    to = LANDLORD if sender == HOME else HOME
    return make_message(named, formataddr(parseaddr(sender)), to, f"{date} 09:30:00 +0100", text, attachment)


def make_mailbox(mails: Sequence[Mail]) -> bytes:
    return "".join(f"From - Wed Jan  1 00:00:00 2025\n{make_mail(mail)}\n" for mail in mails).encode()


GARDEN_RULES = {
    "Ruhezeiten": "Von 13 bis 15 Uhr und ab 20 Uhr ist im Garten Ruhe zu halten. An Sonntagen dürfen keine Rasenmäher "
    "und keine Häcksler laufen.",
    "Hecken und Wege": "Hecken am Hauptweg dürfen höchstens 1,25 Meter hoch sein. Geschnitten werden sie zwischen dem "
    "24. Juni und Ende Februar, damit die Vögel in Ruhe brüten.",
    "Laube": "Die Laube darf mit Vordach nicht größer als 24 Quadratmeter sein. Übernachten ist an höchstens zwanzig "
    "Nächten im Jahr erlaubt, dauerndes Wohnen nicht.",
    "Gemeinschaftsarbeit": "Jede Parzelle leistet im Jahr acht Stunden Gemeinschaftsarbeit. Für jede Stunde, die "
    "fehlt, werden 15 Euro berechnet. Wer älter als 75 Jahre ist, ist davon befreit.",
    "Tiere und Feuer": "Bienen dürfen nach Anmeldung beim Vorstand gehalten werden, Hühner dagegen nicht. Hunde sind "
    "an der Leine zu führen. Offenes Feuer ist verboten, der Holzkohlegrill ist unter Waldbrandstufe drei erlaubt.",
    "Ämter": [["Amt", "Name", "Telefon"], ["Vorsitz", "Gerlinde Pohl", "0555 610 22"],
              ["Kasse", "Hartmut Sieg", "0555 610 48"], ["Wasser", "Ömer Aksoy", "0555 610 75"]],
}  # fmt: skip
PLOTS = {
    "Pacht 2025": [
        ["Parzelle", "Pächter", "Fläche in m²", "Pacht in EUR", "bezahlt am"],
        ["3", "Lindner", "310", "124", "2025-02-14"],
        ["4", "Aksoy", "280", "112", "2025-01-30"],
        ["5", "Pohl", "350", "140", "2025-02-03"],
        ["6", "Wrobel", "265", "106", "2025-03-21"],
        ["7", "Sieg", "300", "120", "2025-02-20"],
    ],
    "Gemeinschaftsarbeit": [
        ["Datum", "Aufgabe", "wer", "Stunden"],
        ["2025-03-15", "Wege mit Kies belegen", "Lindner", "3"],
        ["2025-03-15", "Wege mit Kies belegen", "Wrobel", "4"],
        ["2025-04-12", "Dach des Vereinsheims", "Lindner", "2.5"],
        ["2025-04-12", "Dach des Vereinsheims", "Pohl", "4"],
        ["2025-05-24", "Kompostplatz", "Aksoy", "5"],
        ["2025-09-20", "Zaun am Bach", "Lindner", "1.5"],
    ],
}
GARDEN_MAIL = [
    ("Gerlinde Pohl <pohl@amselgrund.example>", "Mon, 21 Oct 2024", "Wasser wird abgestellt",
     "Liebe Mitglieder,\n\nam 2. November stellen wir das Wasser ab. Bitte öffnet alle Hähne und baut die Uhren aus."),
    ("Ömer Aksoy <aksoy@amselgrund.example>", "Mon, 3 Mar 2025", "Wasser läuft wieder",
     "Hallo zusammen,\n\nab dem 29. März läuft das Wasser wieder. Geprüfte Wasseruhren könnt ihr am Tag davor zwischen "
     "16 und 18 Uhr bei mir abholen."),
    ("Hartmut Sieg <sieg@amselgrund.example>", "Mon, 12 May 2025", "Pflanzentausch",
     "Liebe Gartenfreunde,\n\nder Pflanzentausch beginnt am Samstag um 10 Uhr vor dem Vereinsheim. Für Kaffee ist "
     "gesorgt, Kuchen bringt bitte selbst mit."),
    ("Gerlinde Pohl <pohl@amselgrund.example>", "Mon, 4 Aug 2025", "Sommerfest fällt aus",
     "Liebe Mitglieder,\n\nwegen der Unwetterwarnung fällt das Sommerfest am Samstag aus. Wir holen das Fest am "
     "6. September nach, das Spanferkel ist schon umbestellt."),
]  # fmt: skip
REHEARSALS = {
    "Proben": "Wir proben dienstags um 19.45 Uhr im Gemeindehaus. Die Männer singen am ersten Dienstag im Monat schon "
    "ab 19 Uhr.",
    "Programm": "Im Herbst singen wir das Requiem von Ottmar Brehl und zwei Motetten. Die Noten kosten 18,50 Euro und "
    "werden bei Frau Tschirner bezahlt.",
    "Probenwochenende": "Das Probenwochenende ist vom 10. bis 12. Oktober auf Burg Hollen. Ein Einzelzimmer kostet "
    "86 Euro, ein Bett im Mehrbettzimmer 52 Euro. Bettwäsche und Hausschuhe bringen alle selbst mit.",
    "Kleidung": "Zum Konzert tragen alle Schwarz und dazu einen weinroten Schal, den die Notenwartin verleiht.",
}
CONCERT: list[tuple[str, Sequence[str], Table, str]] = [
    ("Konzert der Kantorei am 23. November 2025", ["Kirche Sankt Wendel, 17 Uhr", "Einlass ab 16.15 Uhr"], [], ""),
    ("Karten", ["Vorverkauf in der Buchhandlung Lohse"],
     [["Platz", "Preis", "Anzahl"], ["Mittelschiff", "22 EUR", "180"], ["Seitenschiff", "15 EUR", "120"],
      ["Empore", "9 EUR", "60"]], ""),
    ("Aufbau", ["Podeste am Samstag ab 9 Uhr", "Zwölf Helfer werden gebraucht"], [],
     "Den Schlüssel zur Sakristei hat der Küster, Herr Manz."),
    ("Nach dem Konzert", ["Der Erlös des Konzerts geht an die Sanierung der Orgel", "Umtrunk im Gemeindehaus"], [], ""),
]  # fmt: skip
LANDLORD_MAIL = [
    (HOME, "Mon, 18 Nov 2024", "Heizung im Bad",
     "Guten Tag Herr Brockmann,\n\nseit Freitag bleibt die Heizung im Bad kalt. Im Wohnzimmer wird sie warm."),
    (LANDLORD, "Wed, 20 Nov 2024", "Re: Heizung im Bad",
     "Guten Tag Frau Lindner,\n\nder Monteur, Herr Cyrus, kommt am 25. November zwischen 8 und 10 Uhr. Bitte sorgen "
     "Sie dafür, dass jemand in der Wohnung ist."),
    (LANDLORD, "Mon, 10 Feb 2025", "Nebenkosten 2024",
     "Guten Tag Frau Lindner,\n\naus der Abrechnung der Nebenkosten für 2024 ergibt sich eine Nachzahlung von "
     "187,30 Euro. Ich bitte um Überweisung bis zum 15. März. Die Vorauszahlung steigt ab April auf 225 Euro."),
    (LANDLORD, "Tue, 17 Jun 2025", "Sanierung der Balkone",
     "Guten Tag Frau Lindner,\n\ndie Balkone werden ab dem 7. Juli saniert. Bitte räumen Sie Ihren bis zum 4. Juli "
     "leer. Für die drei Wochen dürfen Sie die Miete um 40 Euro mindern."),
]  # fmt: skip
HOUSE_RULES = [
    "Hausordnung Lerchenweg 12",
    "Ruhe ist im Haus von 22 bis 6 Uhr zu halten, und sonntags wird nicht gebohrt.",
    "Die Treppe wird jede Woche im Wechsel geputzt, das Erdgeschoss beginnt.",
    "Fahrräder gehören in den Keller, Kinderwagen dürfen im Flur stehen.",
]
LAUNDRY_DAYS = [["Wohnung", "Waschtag"], ["Erdgeschoss", "Montag"], ["erster Stock", "Mittwoch"],
                ["zweiter Stock", "Freitag"]]  # fmt: skip

LETTER = {
    "Saint-Alban, le 4 mars 2025": "Ma chère Katrin, merci pour les photos des enfants.",
    "Des nouvelles de Marcel": "Le docteur Royer a opéré la hanche de Marcel le 12 février. Il marche avec deux cannes "
    "et fait ses exercices trois fois par jour.",
    "Le noyer": "Le vieux noyer est tombé pendant la tempête de janvier. Avec son bois, le menuisier Besson va nous "
    "faire une table pour la véranda.",
    "Pâques": "Venez pour Pâques : les enfants dormiront dans la chambre bleue et vous au grenier. N'apportez pas de "
    "fromage, la cave en est pleine. La clé de la maison est chez les voisins, les Garnier, au numéro 8.",
}
FRENCH_RECIPES = [
    ("Tarte aux mirabelles", [
        "Pour la pâte, on mélange 250 grammes de farine, 125 grammes de beurre et un peu d'eau froide, puis on la "
        "laisse reposer une heure au frais.",
        "On couche les mirabelles dénoyautées sur la pâte, on ajoute 60 grammes de sucre et on cuit la tarte "
        "40 minutes à 190 degrés."]),
    ("Soupe à l'oseille", [
        "Deux poignées d'oseille fondent dans le beurre, puis on ajoute un litre de bouillon et trois pommes de terre.",
        "On lie la soupe avec un jaune d'œuf hors du feu, sinon il tourne."]),
    ("Daube du dimanche", [
        "La viande de la daube marine douze heures dans le vin rouge avec une écorce d'orange.",
        "La daube mijote quatre heures à feu très doux et se réchauffe le lendemain."]),
]  # fmt: skip
REPAIRS: dict[str, Sequence[Sequence[Any]]] = {
    "Travaux": [
        ["date", "pièce", "travaux", "artisan", "montant EUR"],
        [day("2024-04-09"), "toiture", "remplacement de soixante tuiles", "Delmas", 1480],
        [day("2024-09-27"), "cuisine", "robinet et évier", "Perrin", 412.5],
        [day("2025-01-20"), "jardin", "enlèvement du noyer", "Vasseur", 350],
        [day("2025-03-11"), "salle de bains", "barre d'appui", "Perrin", 96],
        [day("2025-05-06"), "salle de bains", "douche sans seuil", "Perrin", 2890],
    ],
    "Impôts": [
        ["année", "taxe foncière EUR", "ordures ménagères EUR"],
        ["2023", 712, 148],
        ["2024", 736, 152],
        ["2025", 761, 155],
    ],
}
TRAINS = (
    "Marcel Fabre <marcel@fabre.example>", "Wed, 2 Apr 2025", "Vos trains pour Pâques",
    "Ma chère Katrin,\n\nvotre train part de Metz le vendredi 18 avril à 9 h 14 et arrive à Saint-Alban à 13 h 52. Il "
    "faut changer à Dijon, où vous avez 26 minutes. Je viendrai vous chercher avec la camionnette des voisins.",
)  # fmt: skip
CELLAR = {
    "Vins": [
        ["vin", "couleur", "année", "bouteilles", "à boire avant"],
        ["Clos Vermeil", "rouge", "2016", "9", "2028"],
        ["Côte d'Aubry", "rouge", "2019", "14", "2030"],
        ["Domaine Lys", "blanc", "2022", "6", "2026"],
        ["Coteaux de Brême", "blanc", "2021", "11", "2027"],
        ["Mai en Fleur", "rosé", "2024", "4", "2026"],
    ]
}

COURSE = {
    "Horario": "Las clases son los lunes y los miércoles de 18:30 a 20:00 en el aula 204. Empiezan el 15 de septiembre "
    "y terminan el 10 de diciembre.",
    "Precio": "El curso cuesta 285 euros, y 240 euros para quienes se inscriben antes del 31 de julio. El libro de "
    "texto no está incluido en el precio.",
    "Examen": "El examen final es el 12 de diciembre. Para aprobar el examen hacen falta 60 puntos de 100. Quien falta "
    "a más de seis clases no puede presentarse al examen.",
    "Profesora": "La profesora, Itziar Ugalde, atiende a los alumnos los jueves a las 17:00.",
}
VILLAGE: list[Slide] = [
    ("Valdesol, un pueblo que vuelve a llenarse", ["Charla de Katrin Lindner, 3 de junio de 2025"], ""),
    ("La población", ["En 1960 vivían en Valdesol 1900 personas", "En 2015 quedaban 212 personas",
                      "Hoy viven en Valdesol 347 personas"], ""),
    ("Por qué vuelven", ["El taller de cerámica da trabajo a 23 vecinos", "La escuela abrió de nuevo en 2021"],
     "Contar aquí la anécdota del panadero que aprendió a tocar la gaita."),
    ("Lo que falta", ["El médico viene solo los martes", "Los domingos no hay autobús"], ""),
]  # fmt: skip
COURSE_COSTS: dict[str, Sequence[Sequence[Any]]] = {
    "Gastos": [
        ["fecha", "concepto", "importe EUR", "pagado por"],
        [day("2025-07-22"), "matrícula", 240, "Katrin"],
        [day("2025-09-08"), "libro de texto", 34.9, "Katrin"],
        [day("2025-10-02"), "cuaderno de ejercicios", 18.5, "Bram"],
        [day("2025-11-14"), "entrada de teatro", 27, "Katrin"],
        [day("2025-12-01"), "tasa del examen", 45, "Bram"],
    ],
    "Notas": [
        ["prueba", "fecha", "puntos"],
        ["dictado", day("2025-09-29"), 71],
        ["lectura", day("2025-10-20"), 84],
        ["redacción", day("2025-11-10"), 66],
        ["oral", day("2025-11-26"), 79],
    ],
}
EXCHANGE = [
    ("Lorea Ibarra <lorea@ibarra.example>", "Sun, 12 Jan 2025", "La visita de Jonas",
     "Hola, Katrin:\n\nnos alegra que Jonas venga a vernos del 14 al 23 de marzo. Mi hermano Unai irá a buscarlo al "
     "aeropuerto."),
    ("Lorea Ibarra <lorea@ibarra.example>", "Mon, 3 Feb 2025", "La habitación",
     "Hola, Katrin:\n\nJonas dormirá en la habitación del segundo piso. ¿Come carne? Los viernes cocinamos pescado."),
    ("Lorea Ibarra <lorea@ibarra.example>", "Tue, 25 Mar 2025", "Cosas olvidadas",
     "Hola, Katrin:\n\nJonas se ha dejado aquí el jersey verde y el cargador. Os los mandamos mañana por correo."),
    ("Lorea Ibarra <lorea@ibarra.example>", "Fri, 30 May 2025", "El viaje de Maite",
     "Hola, Katrin:\n\nMaite llegará el 5 de julio en el tren de las 16:40 y se quedará dos semanas. Maite no puede "
     "comer nueces, porque es alérgica."),
]  # fmt: skip
LIGHTHOUSE = [
    ("La niebla", [
        "El farero Anselmo llevaba treinta y un años encendiendo la lámpara de Lorcán sin faltar una noche.",
        "Una noche de niebla se acabó el aceite, y Anselmo encendió la lámpara con el aguardiente de su boda."]),
    ("La carta", [
        "Por la mañana un pescador le trajo una carta dentro de una lata de sardinas.",
        "La carta decía que el faro se apagaría para siempre el primero de mayo."]),
]  # fmt: skip

HOLIDAY_LEASE = {
    "Appartamento": "L'appartamento al secondo piano di via del Porto 9 ha due camere, un balcone sul lago e un posto "
    "auto.",
    "Periodo e prezzo": "Il soggiorno va da sabato 2 agosto a sabato 16 agosto 2025. Il prezzo è di 1340 euro. La "
    "pulizia finale costa 70 euro e si paga all'arrivo.",
    "Caparra": "La caparra di 300 euro si versa entro il 30 aprile. Viene restituita per intero se si disdice entro il "
    "15 giugno, dopo non più.",
    "Regole": "Gli animali sono ammessi soltanto se la proprietaria ha dato il permesso. Dopo le 23 non si fa rumore "
    "sul balcone.",
    "Arrivo": "Le chiavi si ritirano dalle 15 alle 19 al bar Molo. Chi arriva dopo le 19 avvisa la proprietaria.",
}
FLAT_MANUAL = [
    "Istruzioni per la casa",
    "Lo scaldabagno si accende con l'interruttore rosso dietro la porta della cucina, e dopo mezz'ora l'acqua è calda.",
    "La password della rete è scritta sotto il vaso dei limoni.",
    "Se salta la corrente, il contatore è nell'atrio, terza porta a sinistra.",
]
WASTE = [["giorno", "rifiuti"], ["lunedì", "carta"], ["mercoledì", "organico"], ["venerdì", "plastica"]]
BEACH: dict[str, Sequence[Sequence[Any]]] = {
    "Bassa stagione": [
        ["servizio", "mezza giornata EUR", "giornata intera EUR"],
        ["ombrellone", 8, 13],
        ["lettino", 5, 8],
        ["pedalò", 10, 25],
        ["canoa", 9, 22],
    ],
    "Alta stagione": [
        ["servizio", "mezza giornata EUR", "giornata intera EUR"],
        ["ombrellone", 12, 19],
        ["lettino", 7, 11],
        ["pedalò", 14, 34],
        ["canoa", 12, 30],
    ],
}
OWNER = (
    "Ilaria Conti <ilaria@bresa.example>", "Tue, 24 Jun 2025", "La lavatrice nuova e il parcheggio",
    "Gentile signora Lindner,\n\nla lavatrice nuova arriva il 10 luglio, quindi ad agosto la troverete montata. Il "
    "parcheggio del porto resta chiuso fino al 5 agosto: nei primi giorni potete lasciare la macchina dietro la "
    "chiesa.",
)  # fmt: skip
EXCURSIONS: list[Slide] = [
    ("Gite intorno al lago", ["Raccolte dalla proprietaria per gli ospiti"], ""),
    ("Sentiero dei mulini", ["Il sentiero è lungo 7 chilometri e sale di 240 metri", "Servono circa due ore e mezza"],
     ""),
    ("Traghetto per Isola Verna", ["Il traghetto parte ogni ora", "L'ultimo traghetto torna alle 18:45",
                                   "Il biglietto costa 9 euro, i bambini sotto i sei anni non pagano"], ""),
    ("Mercato di Pontalto", ["Il mercato si tiene ogni giovedì mattina"],
     "Il formaggio del signor Tosi si trova in fondo, vicino alla fontana."),
]  # fmt: skip
RECEIPT = ["TRATTORIA DEL FARO", "Ricevuta 318 del 9 agosto 2025", "Quattro coperti e due pizze grandi.",
           "Il totale della trattoria: 64,50 euro."]  # fmt: skip

SCHOOL_GUIDE = {
    "Schooltijden": "De lessen beginnen om 8.20 uur en eindigen om 14.45 uur. Op woensdag is de school om 12.15 uur "
    "uit.",
    "Ziek melden": "Is uw kind ziek, bel dan voor 8.00 uur de administratie op 0555 732 10. Een kind ziek melden per "
    "mail kan niet.",
    "Vakanties": [["vakantie", "van", "tot en met"], ["herfstvakantie", "18 oktober 2025", "26 oktober 2025"],
                  ["kerstvakantie", "20 december 2025", "4 januari 2026"],
                  ["voorjaarsvakantie", "14 februari 2026", "22 februari 2026"]],
    "Ouderbijdrage": "De vrijwillige ouderbijdrage is 55 euro per jaar voor het eerste kind en 35 euro voor het "
    "tweede.",
    "Telefoons": "Telefoons blijven tijdens de lessen in de kluis. Wie toch een telefoon gebruikt, krijgt hem pas om "
    "16 uur terug.",
}  # fmt: skip
SCHOOL_TRIPS = {
    "Excursies": [
        ["datum", "groep", "bestemming", "kosten EUR", "begeleider"],
        ["2025-09-18", "groep 6", "Waterliniemuseum", "12.5", "mevrouw Bos"],
        ["2025-10-09", "groep 8", "Sterrenwacht", "9", "meneer Haks"],
        ["2026-01-22", "groep 6", "Theater De Kist", "14", "mevrouw Bos"],
        ["2026-03-12", "groep 7", "Steenfabriek", "6.5", "meneer Haks"],
        ["2026-05-28", "groep 6", "Zeehondenopvang", "21", "meneer Tol"],
    ],
    "Rooster": [
        ["dag", "eerste uur", "tweede uur", "derde uur"],
        ["maandag", "rekenen", "taal", "muziek"],
        ["dinsdag", "lezen", "rekenen", "gym"],
        ["woensdag", "taal", "aardrijkskunde", "rekenen"],
        ["donderdag", "rekenen", "geschiedenis", "tekenen"],
        ["vrijdag", "taal", "gym", "handvaardigheid"],
    ],
}
SCHOOL_MAIL = [
    ("Saskia Bos <bos@dewilgen.example>", "Tue, 2 Sep 2025", "Welkom in groep 6",
     "Beste ouders,\n\nEmma en de anderen eten om tien uur fruit; geef het mee in een trommel met naam."),
    ("Saskia Bos <bos@dewilgen.example>", "Tue, 11 Nov 2025", "Luizen",
     "Beste ouders,\n\nin groep 6 zijn luizen gevonden. Kam het haar van uw kind twee weken lang elke dag met een "
     "luizenkam."),
    ("Pieter Tol <tol@dewilgen.example>", "Wed, 3 Dec 2025", "Sinterklaasviering",
     "Beste ouders,\n\nde viering begint op vrijdag om 8.45 uur, en ouders mogen tot 9.30 uur blijven."),
    ("Saskia Bos <bos@dewilgen.example>", "Fri, 6 Feb 2026", "Rapporten",
     "Beste ouders,\n\nde rapporten gaan op 13 februari mee naar huis. Inschrijven voor de oudergesprekken kan tot "
     "9 februari."),
]  # fmt: skip
PARENTS_EVENING: list[tuple[str, Sequence[str], Table, str]] = [
    ("Ouderavond groep 6, 25 september 2025", ["Juf Saskia Bos"], [], ""),
    ("Lezen", ["Elk kind leest thuis twintig minuten per dag", "Boeken lenen kan op donderdag"], [], ""),
    ("Kamp", ["Het kamp is in Drieberg"],
     [["wat", "kosten"], ["bus", "18 EUR"], ["verblijf", "42 EUR"], ["eten", "25 EUR"]],
     "Het kamp duurt van 10 tot 12 juni, en er gaan vier ouders mee."),
]  # fmt: skip
BICYCLE = [
    "Verzekering van de fiets van Jonas",
    "De fiets is tegen diefstal verzekerd tot 950 euro, met een eigen risico van 50 euro.",
    "Diefstal moet binnen 48 uur bij de politie worden aangegeven, en beide sleutels moeten worden ingeleverd.",
]

EXPENSES: dict[str, Sequence[Sequence[Any]]] = {
    "Expenses": [
        ["date", "what", "category", "amount EUR", "who"],
        [day("2025-01-04"), "winter boots", "clothes", 89.9, "Bram"],
        [day("2025-01-17"), "dentist", "health", 140, "Katrin"],
        [day("2025-02-08"), "ski helmet", "sport", 64.5, "Jonas"],
        [day("2025-02-21"), "glasses", "health", 212, "Bram"],
        [day("2025-03-03"), "running shoes", "clothes", 119, "Katrin"],
        [day("2025-03-29"), "physiotherapy", "health", 96, "Katrin"],
        [day("2025-04-11"), "raincoat", "clothes", 54, "Emma"],
    ],
    "Savings": [["purpose", "bank", "amount EUR"], ["emergencies", "Rheinbank", 4200], ["holidays", "Rheinbank", 1150],
                ["a bicycle for Emma", "Postkasse", 480]],
}  # fmt: skip
SOLAR = {
    "Yield": "In 2024 the panels made 3,480 kilowatt hours, and we used 1,310 of them ourselves.",
    "Months": "The panels made most in June, 512 kilowatt hours, and least in December, 61.",
    "Guarantee": "The guarantee of the inverter ends in May 2033, that of the panels in May 2048.",
}
MOSS: list[tuple[str, Sequence[str], Table, str]] = [
    ("Moss on city roofs", ["Bram Visser, Green Roofs Forum, 9 October 2025"], [], ""),
    ("Why moss", ["A square metre of moss holds eight litres of rain", "Wet moss weighs 25 kg a square metre"], [], ""),
    ("What it costs", ["Prices with laying, for flat roofs"],
     [["roof", "price a square metre", "lasts"], ["moss mat", "62 EUR", "25 years"], ["sedum", "48 EUR", "30 years"]],
     ""),
    ("The trial in Oberlar", ["The roof with moss stayed nine degrees cooler in July"], [],
     "Skip this slide if less than five minutes are left."),
]  # fmt: skip
ORGANISER = (
    "Nadia Ferro <nadia@greenroofs.example>", "Thu, 28 Aug 2025", "Your talk at the Green Roofs Forum",
    "Dear Bram,\n\nyour talk is on 9 October at 14:20 in room Ceres. You have twenty minutes, and five more for "
    "questions. Please send your slides by 2 October.",
)  # fmt: skip


def make_files() -> dict[str, bytes]:
    """All files, by their paths."""
    return {
        "chor/konzert.pptx": make_pptx("Konzert der Kantorei", CONCERT),
        "chor/probenplan.odt": make_text("Probenplan der Kantorei Sankt Wendel", REHEARSALS),
        "curso/cuento-faro.epub": make_epub("El faro de Lorcán", LIGHTHOUSE),
        "curso/gastos-y-notas.xlsx": make_xlsx(COURSE_COSTS),
        "curso/intercambio.mbox": make_mailbox(EXCHANGE),
        "curso/programa-curso.docx": make_sections("Curso de español B1, otoño de 2025", COURSE),
        "curso/charla-valdesol.odp": make_slides("Valdesol", VILLAGE),
        "garten/gartenordnung.docx": make_sections("Gartenordnung des Kleingartenvereins Amselgrund", GARDEN_RULES),
        "garten/parzellen.ods": make_sheets(PLOTS),
        "garten/post-verein.mbox": make_mailbox(GARDEN_MAIL),
        "grands-parents/cave.ods": make_sheets(CELLAR),
        "grands-parents/lettre-odile.odt": make_text("Lettre de Mamie Odile", LETTER),
        "grands-parents/recettes-odile.epub": make_epub("Les recettes d'Odile", FRENCH_RECIPES),
        "grands-parents/trains-paques.eml": make_mail(TRAINS, "billets.pdf").encode(),
        "grands-parents/travaux-maison.xlsx": make_xlsx(REPAIRS),
        "money/household-2025.xlsx": make_xlsx(EXPENSES),
        "money/solar-panels.docx": make_sections("Solar panels: the year 2024", SOLAR),
        "school/berichten.mbox": make_mailbox(SCHOOL_MAIL),
        "school/excursies-en-rooster.ods": make_sheets(SCHOOL_TRIPS),
        "school/fietsverzekering.rtf": make_rtf(BICYCLE),
        "school/ouderavond.pptx": make_pptx("Ouderavond groep 6", PARENTS_EVENING),
        "school/schoolgids.docx": make_sections("Schoolgids De Wilgen 2025-2026", SCHOOL_GUIDE),
        "talk/forum.eml": make_mail(ORGANISER).encode(),
        "talk/moss-roofs.pptx": make_pptx("Moss on city roofs", MOSS),
        "vacanze/contratto-bresa.docx": make_sections("Contratto per la casa di Bresa", HOLIDAY_LEASE),
        "vacanze/gite.odp": make_slides("Gite intorno al lago", EXCURSIONS),
        "vacanze/istruzioni-casa.rtf": make_rtf(FLAT_MANUAL, WASTE),
        "vacanze/listino-spiaggia.xlsx": make_xlsx(BEACH),
        "vacanze/proprietaria.eml": make_mail(OWNER).encode(),
        "vacanze/ricevuta-trattoria.png": make_image(RECEIPT),
        "wohnung/hausordnung.rtf": make_rtf(HOUSE_RULES, LAUNDRY_DAYS),
        "wohnung/vermieter.mbox": make_mailbox(LANDLORD_MAIL),
    }


if __name__ == "__main__":
    for name, data in make_files().items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_bytes(data)

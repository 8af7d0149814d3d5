"""The files of `examples/documents/office` and `examples/scans`, made again: `python -m tests.make_example_documents`.

What they say is invented.
"""

import datetime
from pathlib import Path
from typing import Any

from benchmarks.office_files import (
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
    make_scanned_pdf,
    make_xlsx,
)
from tests.conftest import EXAMPLES

LEASE = [
    ("Title", "Lease of the garage"),
    ("", "This lease is between Hedda Quist, who owns the garage at 4 Mill Lane, and the tenants of number 9."),
    ("Heading1", "Rent and deposit"),
    ("", "The rent for the garage is 72 euros a month and is due on the third working day. The deposit is 216 euros; "
     "it is paid back within six weeks after the keys are handed over.[1]"),
    ("Heading1", "Use"),
    ("", "The garage may be used for one car and for what belongs to it. Petrol, paint and gas bottles must not be "
     "stored there. The drive has to be kept free between seven and nine in the morning."),
    ("Heading1", "Notice"),
    ("", "Either side may end the lease with three months' notice to the end of a quarter. The notice has to be in "
     "writing."),
    ("Heading1", "Keys"),
    ("table", [["key", "number", "held by"], ["side door", "2", "both tenants"], ["roller door", "1", "Hedda Quist"]]),
]  # fmt: skip
PIANO = (
    make_odf_paragraph("Care of the piano", "h", 'text:outline-level="1"')
    + make_odf_paragraph("Tuning", "h", 'text:outline-level="2"')
    + make_odf_paragraph(
        "The piano is tuned twice a year, in late October and in April, when the humidity in the room has settled. "
        "The tuner, Oda Falk, takes 118 euros and about ninety minutes. The pitch is 442 hertz, since "
        "the neighbour's oboe is tuned to that."
    )
    + make_odf_paragraph("Humidity", "h", 'text:outline-level="2"')
    + make_odf_paragraph(
        "The soundboard cracks when the air stays below 40 per cent humidity for weeks. The humidifier beside the "
        "piano is set to 48 per cent and filled every four days while the stove is lit."
    )
    + make_odf_list(["never on an outside wall", "no vases on the lid", "keys cleaned with a damp cloth only"])
)
TELESCOPE = [
    "Notes on the telescope",
    "The telescope is a reflector with a mirror of 150 millimetres. It has to stand outside for forty minutes before "
    "it is used, so that the mirror takes the temperature of the night air.",
    "The collimation is checked with the laser before every tenth night. Saturn was seen best on 14 September 2024 "
    "with the eyepiece of 6 millimetres, from the Häberlin meadow.",
]
EYEPIECES = [["eyepiece", "magnification", "good for"], ["25 mm", "30 times", "the Pleiades"],
             ["6 mm", "125 times", "Saturn and the moon"]]  # fmt: skip
BOOK = [
    ("The Shop in Orlen", [
        "Tilda came to the clockmaker of Orlen when she was eleven. He gave her a stool, a loupe and a tin of springs, "
        "and told her to sort them by the sound that they made.",
        "On the wall hung thirty-one clocks, and none of them told the right time, because the clockmaker could not "
        "bear to hear them strike together."]),
    ("The Drowned Bell", [
        "In the winter of the flood the bell of Saint Orm fell into the river. Tilda dived for it with a rope of "
        "horsehair round her wrist, and brought up only its tongue.",
        "The tongue of the bell weighed nineteen pounds. The clockmaker hung it in the window, where it swung in every "
        "storm and struck nothing."]),
]  # fmt: skip
CHOIR = [
    ("The choir's evening of songs", ["Saturday, 21 June 2025, at Saint Orm's hall"], [], ""),
    ("Programme", ["Four madrigals before the interval", "The shanties with the accordion after it"],
     [["piece", "soloist", "minutes"], ["The Heron", "Wanda", "4"], ["Salt Wind", "Piotr", "6"]], ""),
    ("Rehearsals", ["Every Thursday at 19:15 in the gymnasium", "The dress rehearsal is on 19 June"], [],
     "The altos meet half an hour earlier on 5 June, because the Heron is still too slow."),
    ("The hall", ["The hall seats 140 people", "Candles are not allowed on the gallery"], [], ""),
]  # fmt: skip
SAILING = (
    make_odf_slide("Sailing course: first weekend", [make_odf_paragraph("Harbour of Vell, with skipper Marit Aune")])
    + make_odf_slide(
        "Who gives way",
        [make_odf_list(["A boat on port tack gives way to a boat on starboard tack", "The windward boat gives way"])],
        "Ask everyone to draw it. The skipper's rule: when in doubt, show early what you mean to do.",
    )
    + make_odf_slide(
        "Reefing",
        [make_odf_list(["The dinghy is reefed from wind force four", "No one sails above wind force six"])],
    )
)
INSURANCE: dict[str, list[list[Any]]] = {
    "Policies": [
        ["Insurance of the household", None, None, None, None],
        [],
        ["policy", "insurer", "number", "premium a year", "renewed on"],
        ["contents of the flat", "Nordholm Mutual", "NM-20771", 164.5, datetime.date(2026, 2, 1)],
        ["liability", "Nordholm Mutual", "NM-20772", 58, datetime.date(2026, 2, 1)],
        ["legal costs", "Castellan", "C/88-310", 211.4, datetime.date(2025, 11, 15)],
    ],
    "Claims": [
        ["date", "policy", "what happened", "paid"],
        [datetime.date(2024, 7, 9), "contents of the flat", "washing machine flooded the bathroom", 380],
        [datetime.date(2025, 1, 22), "liability", "football through the window of the pharmacy", 145.9],
    ],
}
HIVES = [
    ["date", "hive", "honey in kg", "remark"],
    ["2025-05-28", "Linden", "11.5", "first honey, spun twice"],
    ["2025-05-28", "Elder", "8", "the queen is marked blue"],
    ["2025-07-19", "Linden", "14", "varroa count three a day"],
]
AQUARIUM = make_message(
    "Re: Filter of the aquarium", "Selma Brandt <selma@aquarium.example>", "Home <home@example.org>",
    "Tue, 4 Mar 2025 18:20:00 +0100",
    "Hello,\n\nthe sponge of the filter in your aquarium is rinsed in tank water every three weeks, never under the "
    "tap: chlorine\nkills the bacteria. The spare rotor for the pump has the number 7441, and I keep one for you until "
    "Friday.\n\n> How often do I have to clean the filter, and do you still have a rotor?\n\nSelma Brandt",
    "rotor-7441.pdf",
)  # fmt: skip
CHESS = [
    make_message(
        "Club night moves", "Anselm Roth <anselm@chess.example>", "Members <members@chess.example>",
        "Wed, 8 Jan 2025 09:05:00 +0100",
        "Dear members,\n\nfrom February the chess club meets on Wednesdays at 20:00 in the town hall's basement, no "
        "longer on Mondays."),
    make_message(
        "Team match against Steinach", "Jelka Novak <jelka@chess.example>", "Members <members@chess.example>",
        "Mon, 17 Feb 2025 21:40:00 +0100",
        "We beat Steinach by 4.5 to 1.5. Anselm's rook endgame on board three took six hours.\n\nThe return match is "
        "on 29 March; we leave from the station at 8:10."),
    make_message(
        "Clocks", "Anselm Roth <anselm@chess.example>", "Jelka Novak <jelka@chess.example>",
        "Thu, 20 Mar 2025 07:55:00 +0100",
        "Please bring the twelve digital chess clocks from the cupboard. Two of them need new batteries, type AA."),
]  # fmt: skip
LAUNDRY = ["LAUNDRY MARGUERITE", "Receipt 5093 of 12 April 2025", "Two wool coats and one silk scarf cleaned.",
           "The laundry is ready on 17 April after four o'clock."]  # fmt: skip
DISHWASHER = [
    ["Warranty of the dishwasher Lavo 60", "The warranty of the dishwasher lasts five years from 3 May 2023."],
    ["Service of the dishwasher", "Repairs are booked at 0555 904 17, and the door seal is free of charge."],
]


def write_examples(office: Path, scans: Path) -> None:
    """One file of each format."""
    mailbox = "".join(f"From - Wed Jan  1 00:00:00 2025\n{message}\n" for message in CHESS)
    files = {
        "aquarium.eml": AQUARIUM.encode(),
        "beehives.ods": make_open_document("spreadsheet", make_odf_table(HIVES, "Harvest")),
        "chess-club.mbox": mailbox.encode(),
        "choir-evening.pptx": make_pptx("Evening of songs", CHOIR),
        "clockmaker.epub": make_epub("The Clockmaker of Orlen", BOOK),
        "garage-lease.docx": make_docx("", LEASE, ["Hedda Quist may keep what cleaning costs."]),
        "insurance.xlsx": make_xlsx(INSURANCE, {"D": '#,##0.00 "EUR"'}),
        "piano.odt": make_open_document("text", PIANO),
        "sailing-course.odp": make_open_document("presentation", SAILING, "Sailing course"),
        "telescope.rtf": make_rtf(TELESCOPE, EYEPIECES),
    }
    pictures = {
        "dishwasher-warranty.pdf": make_scanned_pdf(DISHWASHER),
        "laundry-receipt.png": make_image(LAUNDRY),
    }
    for folder, contents in ((office, files), (scans, pictures)):
        folder.mkdir(exist_ok=True)
        for name, data in contents.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    write_examples(EXAMPLES / "documents" / "office", EXAMPLES / "scans")

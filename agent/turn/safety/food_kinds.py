"""What well-known kinds of food and medicine take in: nuts are peanuts and almonds, too. Conservative, not complete.

Every word is a thing to be avoided by itself. A kind is named by its key, in the singular.
"""

from collections.abc import Mapping

_POULTRY = "chicken turkey duck goose pheasant quail"
_GELATINE = "gelatine gelatin"
_RED_MEAT = "beef pork lamb veal mutton venison brisket oxtail"
_CURED = "bacon ham gammon prosciutto pancetta lardon salami chorizo pepperoni mortadella speck"
_MEAT = (
    f"meat {_RED_MEAT} {_POULTRY} {_CURED} rabbit sausage steak mince meatball burger pastrami bresaola jerky lard "
    f"suet tallow {_GELATINE}"
)
_FISH = (
    "fish salmon tuna cod haddock mackerel herring anchovy sardine trout halibut plaice pollock hake tilapia "
    "monkfish seabass swordfish eel kipper sprat pilchard whitebait caviar roe sushi sashimi surimi worcestershire"
)
_CRUSTACEANS = "crustacean shrimp prawn crab lobster crayfish langoustine scampi krill surimi"
_MOLLUSCS = "mollusc mollusk mussel oyster clam scallop cockle whelk abalone squid calamari octopus cuttlefish"
_SHELLFISH = f"shellfish {_CRUSTACEANS} {_MOLLUSCS}"
_CHEESES = (
    "mozzarella parmesan cheddar feta ricotta mascarpone brie camembert gouda emmental gruyere gruyère halloumi "
    "pecorino gorgonzola roquefort stilton burrata paneer quark"
)
_DAIRY = (
    "dairy lactose milk cheese butter cream yogurt yoghurt buttermilk ghee whey casein custard kefir skyr fraîche "
    f"fraiche béchamel milkshake {_CHEESES}"
)
_TREE_NUTS = (
    "almond hazelnut walnut cashew pistachio pecan macadamia chestnut marzipan praline nougat frangipane amaretti "
    "amaretto gianduja nutella macaron baklava pesto"
)
_PEANUT = "peanut groundnut"
_PASTA = (
    "pasta linguine spaghetti macaroni penne fusilli tagliatelle fettuccine lasagne lasagna ravioli tortellini orzo "
    "vermicelli gnocchi noodle ramen udon"
)
_BREAD = (
    "bread breadcrumb panko crouton bun baguette brioche croissant ciabatta focaccia pita naan pretzel cracker pastry"
)
_WHEAT = f"wheat spelt durum couscous bulgur seitan semolina farro flour filo {_BREAD} {_PASTA}"
_BEER = "beer ale lager stout"
_GLUTEN = f"gluten rye barley malt {_WHEAT} {_BEER}"
_EGG = "egg mayonnaise mayo meringue omelette omelet frittata quiche custard aioli hollandaise albumen"
_SOY = "soy soya soybean tofu tempeh edamame miso tamari shoyu natto teriyaki"
_PORK = f"pork {_CURED} lard {_GELATINE}"
_ALCOHOL = (
    f"alcohol wine {_BEER} cider vodka rum whisky whiskey bourbon gin tequila brandy cognac sherry vermouth schnapps "
    "grappa kirsch liqueur amaretto limoncello champagne prosecco sangria marsala cocktail"
)
_PAINKILLERS = "aspirin acetylsalicylic ibuprofen naproxen diclofenac ketoprofen nsaid"  # one reacts to several of them

KINDS: Mapping[str, str] = {
    "nut": f"nut {_PEANUT} {_TREE_NUTS}",
    "tree nut": f"nut {_TREE_NUTS}",
    "peanut": _PEANUT,
    "shellfish": _SHELLFISH,
    "seafood": f"seafood {_FISH} {_SHELLFISH}",
    "crustacean": f"shellfish {_CRUSTACEANS}",
    "mollusc": f"shellfish {_MOLLUSCS}",
    "fish": _FISH,
    "dairy": _DAIRY,
    "lactose": _DAIRY,
    "casein": _DAIRY,
    "whey": _DAIRY,
    "milk": _DAIRY,
    "cheese": f"cheese {_CHEESES}",
    "gluten": _GLUTEN,
    "wheat": _WHEAT,
    "egg": _EGG,
    "soy": _SOY,
    "soya": _SOY,
    "soybean": _SOY,
    "sesame": "sesame tahini hummus houmous halva",
    "celery": "celery celeriac",
    "lupin": "lupin lupine",
    "meat": _MEAT,
    "red meat": _RED_MEAT,
    "poultry": f"poultry {_POULTRY}",
    "pork": _PORK,
    "alcohol": _ALCOHOL,
    "eggplant": "eggplant aubergine",
    "aubergine": "eggplant aubergine",
    "corn": "corn maize polenta cornflour cornstarch popcorn",
    "citrus": "citrus orange lemon lime grapefruit mandarin tangerine clementine",
    "penicillin": "penicillin amoxicillin ampicillin flucloxacillin augmentin",
    "aspirin": _PAINKILLERS,
    "ibuprofen": _PAINKILLERS,
    "nsaid": _PAINKILLERS,
    "paracetamol": "paracetamol acetaminophen",
    "statin": "statin simvastatin atorvastatin rosuvastatin pravastatin lovastatin",
}
DIETS: Mapping[str, str] = {
    "vegetarian": f"{_MEAT} {_FISH} {_SHELLFISH} seafood",
    "vegan": f"{_MEAT} {_FISH} {_SHELLFISH} seafood {_DAIRY} {_EGG} honey",
    "pescatarian": _MEAT,
    "celiac": _GLUTEN,
    "coeliac": _GLUTEN,
    "halal": f"{_PORK} {_ALCOHOL}",
    "muslim": f"{_PORK} {_ALCOHOL}",
    "kosher": f"{_PORK} {_SHELLFISH}",
    "teetotal": _ALCOHOL,
    "teetotaller": _ALCOHOL,
}
# What public health services agree on. Several words of one thing stand together in a passage's sentence.
PREGNANCY: tuple[str, ...] = (
    *_ALCOHOL.split(),
    "raw fish",
    "raw meat",
    "raw egg",
    "raw milk",
    "raw shellfish",
    "unpasteurised",
    "unpasteurized",
    "sushi",
    "sashimi",
    "tartare",
    "ceviche",
    "carpaccio",
    "oyster",
    "swordfish",
    "shark",
    "marlin",
    "brie",
    "camembert",
    "gorgonzola",
    "roquefort",
    "blue cheese",
    "pâté",
    "liver",
)
_PLANTS = (
    "peanut|almond|cashew|hazelnut|pistachio|walnut|nut|coconut|oat|soya?|rice|hemp|pea|plant|cocoa|cacao|shea|seed|tofu"
    "|sunflower|vegan|vegetarian|veggie|non-dairy|plant-based|meatless|mock|vegane"
)
_GRAINS = (
    "rice|corn|maize|buckwheat|potato|tapioca|cassava|quinoa|millet|teff|chickpea|gram|lentil|bean|glass|almond|coconut"
)
# A compound, and the word of it that says what is in it: there is no milk in almond milk, nor wheat in rice noodles.
COMPOUND = (
    rf"\b(?:({_PLANTS})[ -](?:milk|butter|cream|cheese|yogh?urt|sausages?|bacon|chicken|ham|steaks?|mince|meat"
    r"|mayonnaise"
    rf"|mayo|burgers?|meatballs?)|({_GRAINS})[ -](?:flour|noodles?|pasta|bread|crackers?|vermicelli|ramen))\b"
)

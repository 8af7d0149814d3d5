"""What well-known kinds of food take in: nuts are peanuts and almonds, too. Conservative, and by no means complete.

Every word is a thing to be avoided by itself. A kind is named by its key, in the singular.
"""

from collections.abc import Mapping

_POULTRY = "chicken turkey duck goose"
_GELATINE = "gelatine gelatin"
_RED_MEAT = "beef pork lamb veal mutton venison"
_MEAT = f"meat {_RED_MEAT} {_POULTRY} bacon ham sausage steak prosciutto pancetta salami chorizo mince lard {_GELATINE}"
_FISH = "fish salmon tuna cod haddock mackerel herring anchovy sardine trout halibut"
_SHELLFISH = "shellfish crustacean shrimp prawn crab lobster crayfish langoustine mussel oyster clam scallop cockle"
_CHEESES = "mozzarella parmesan cheddar feta ricotta mascarpone"
_DAIRY = f"dairy lactose milk cheese butter cream yogurt yoghurt buttermilk ghee whey {_CHEESES}"
_TREE_NUTS = "almond hazelnut walnut cashew pistachio pecan macadamia marzipan praline"
_PEANUT = "peanut groundnut"
_PASTA = "pasta linguine spaghetti macaroni penne fusilli tagliatelle fettuccine lasagne lasagna ravioli"
_GLUTEN = f"gluten wheat rye barley spelt couscous bulgur seitan semolina farro breadcrumb {_PASTA}"
_EGG = "egg mayonnaise meringue"
_PORK = "pork bacon ham lard prosciutto pancetta"
_ALCOHOL = "alcohol wine beer cider vodka rum whisky whiskey gin brandy liqueur champagne prosecco cocktail"

KINDS: Mapping[str, str] = {
    "nut": f"nut {_PEANUT} {_TREE_NUTS}",
    "tree nut": f"nut {_TREE_NUTS}",
    "peanut": _PEANUT,
    "shellfish": _SHELLFISH,
    "crustacean": "crustacean shrimp prawn crab lobster crayfish langoustine shellfish",
    "fish": _FISH,
    "seafood": f"seafood {_FISH} {_SHELLFISH}",
    "dairy": _DAIRY,
    "lactose": _DAIRY,
    "milk": _DAIRY,
    "gluten": _GLUTEN,
    "wheat": _GLUTEN.replace("gluten ", "").replace(" rye barley", ""),
    "egg": _EGG,
    "soy": "soy soya soybean tofu tempeh edamame",
    "soya": "soy soya soybean tofu tempeh edamame",
    "soybean": "soy soya soybean tofu tempeh edamame",
    "sesame": "sesame tahini",
    "meat": _MEAT,
    "red meat": _RED_MEAT,
    "poultry": f"poultry {_POULTRY}",
    "pork": _PORK,
    "alcohol": _ALCOHOL,
    "eggplant": "eggplant aubergine",
    "aubergine": "eggplant aubergine",
    "corn": "corn maize polenta",
}
DIETS: Mapping[str, str] = {
    "vegetarian": f"{_MEAT} {_FISH} {_SHELLFISH} seafood",
    "vegan": f"{_MEAT} {_FISH} {_SHELLFISH} seafood {_DAIRY} {_EGG} honey",
    "pescatarian": _MEAT,
    "celiac": _GLUTEN,
    "coeliac": _GLUTEN,
    "halal": f"{_PORK} {_ALCOHOL}",
    "kosher": f"{_PORK} {_SHELLFISH}",
    "teetotal": _ALCOHOL,
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
    "oyster",
    "swordfish",
    "pâté",
    "liver",
)
_PLANTS = (
    "peanut|almond|cashew|hazelnut|pistachio|walnut|nut|coconut|oat|soya?|rice|hemp|pea|plant|cocoa|cacao|shea|seed|tofu"
    "|sunflower|vegan|vegetarian|veggie|non-dairy|plant-based|meatless|mock|vegane"
)
# A compound, and the word of it that says what is in it: there is no milk in almond milk.
COMPOUND = (
    rf"\b({_PLANTS})[ -]"
    r"(?:milk|butter|cream|cheese|yogh?urt|sausages?|bacon|chicken|ham|steaks?|mince|meat|mayonnaise)\b"
)

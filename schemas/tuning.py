"""Every tuning constant that decides the bytes of a run, in one record that the trace keeps (`Plan.tuning`).

`docs/log.md` has the measurements behind them. A trace made with other values is not continued by `--resume`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryTuning:
    """Query rewriting and hypothetical answers."""

    context_phrases: int = 3  # phrases of the conversation that join the query
    candidate_phrases: int = 40  # the latest ones are considered; each costs its own tokens
    context_words: int = 6  # that join the query where the taught encoder chooses them; 0: it is not asked
    word_probability: float = 0.5  # from which one is chosen
    recent_messages: int = 4  # whose phrases are considered, beside the first message of all
    hyde_tokens: int = 64  # of a hypothetical answer
    needs_pointing: bool = False  # whether the conversation joins only an utterance that points back to it or goes on
    lead_characters: int = 300  # of the previous reply: its beginning says what it is about


@dataclass(frozen=True, slots=True)
class RetrievalTuning:
    """What the parts of a query weigh, in words and in meaning, beside the utterance, which weighs 1."""

    context_weight: float = 0.5
    rewrite_weight: float = 0.5  # of a rewrite, where words of the conversation join the query as well
    hyde_weight: float = 0.3
    previous_reply_weight: float = 0.05
    own_words: int = 6  # an utterance of so many words leans on itself and on the conversation alike
    dense_reply_weight: float = 0.5
    dense_hyde_weight: float = 0.5
    encoder_share: float = 0.4  # of the taught encoder's vector, beside what the texts mean one by one
    takes_questions: bool = False  # whether the encoder that was taught questions to a person's documents is asked
    cosine_weight: float = 4.0  # beside BM25, whose best passage has 1
    first_stage_depth: int = 1000  # passages that BM25 finds at least where they are reranked
    rerank_depth: int = 100  # passages whose cosine is computed where the index has no vectors


@dataclass(frozen=True, slots=True)
class StatementClassifier:
    """A logistic regression: what each kind of evidence weighs, then how far it lies behind the turn's best."""

    constant: float
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StatementTuning:
    """Statement selection, by the evidence at hand. Derived by `benchmarks/ptkb_quality.py --fit`."""

    likelihood_and_cosine: StatementClassifier = StatementClassifier(-0.61, (0.97, 2.55, 3.24, 4.09))
    likelihood: StatementClassifier = StatementClassifier(-0.77, (3.0, 4.93))
    words_and_cosine: StatementClassifier = StatementClassifier(-1.03, (0.0, 3.93, 0.03, 4.58))
    words: StatementClassifier = StatementClassifier(-1.3, (0.05, 0.04))
    max_statements: int = 6  # a turn
    needed_by_person: float = 0.72  # share of the turns that speak of the person for which some statement matters
    needed_otherwise: float = 0.19  # and of the others

    def classifier(self, *, has_likelihoods: bool, has_vectors: bool) -> StatementClassifier:
        if has_vectors:
            return self.likelihood_and_cosine if has_likelihoods else self.words_and_cosine
        return self.likelihood if has_likelihoods else self.words


@dataclass(frozen=True, slots=True)
class AnswerTuning:
    """The choice of sentences, and the prompt of a model that writes."""

    max_sentence_words: int = 60  # longer ones are lists
    overlap_weight: float = 0.15  # of the share of the question's words (at most 1.5), beside the cosine
    held: int = 8  # of the best sentences, those that are held against each other
    chance_scale: float = 5.0  # of scores, to the logarithm of the odds that a sentence answers
    least_chance: float = 0.06  # of a sentence that joins the best
    sure_chance: float = 1.0  # of the best, from which none joins it, and none is compared
    words_within: float = 1.0  # by words alone, whose scores tell no chance: how far behind the best joins it
    all_within: float = 0.0  # where above 0, whatever lies so near behind the best joins it, instead
    compared: int = 0  # of the best, those that a model which was taught to holds against each other where none is sure
    compared_weight: float = 0.4  # of the log odds that it tells
    joining_words: int = 4  # that a sentence has at least which joins the best: "Summary." adds nothing
    nearby_sentences: int = 0  # of those further behind, that are kept as nearby
    nearby_gap: float = 0.6  # how far behind the best they may lie
    first_passages: int = 20  # beyond these only what surely answers is quoted
    rank_penalty: float = 0.02  # for a place further down the ranking
    rank_penalty_words: float = 0.15  # the same where there is word overlap alone
    doubt_penalty: float = 0.15  # where a heading may be glued to the front
    foreign_penalty: float = 0.0  # where a question in another language than English is not in the quote's
    max_redundancy: float = 0.6  # share of a sentence's words that an earlier one may already have said
    code_weight: float = 0.3  # of the share of the question's numbers and codes
    newest_weight: float = 0.2  # against a document that there is a later edition of
    successor_weight: float = 0.0  # against one of a series, such as minutes, that has a later date
    shortlist: int = 20  # sentences whose meaning is compared, where passages are read
    reading_weight: float = 0.03  # of the reader's margin
    least_margin: float = -4.0  # below, one sentence is as far from an answer as another
    direct_margin: float = 5.0  # from which the words that the reader found stand first
    direct_lead: float = 3.0  # that they have at least before any others of the passage
    answerable_cosine: float = 0.27  # of the nearest sentence; below, the passages are taken to have no answer
    answerable_reading: float = 0.015  # what the best margin adds to that cosine,
    answerable_unread: float = 0.015  # where a reader can tell little
    answerable_offset: float = 0.0  # what is added to the margin before
    own_language: bool = False  # whether what is said about the answer is in the language of the question
    fallback_sentences: int = 2  # quoted then


@dataclass(frozen=True, slots=True)
class Tuning:
    query: QueryTuning = QueryTuning()
    retrieval: RetrievalTuning = RetrievalTuning()
    statements: StatementTuning = StatementTuning()
    answer: AnswerTuning = AnswerTuning()

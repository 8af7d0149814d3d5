"""`convagent chat`: a person at a terminal, or lines through a pipe; and `convagent ask`, for scripts."""

import os
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.chat.citations import UNSURE_NOTE, Source, describe_answer, shown_sources
from agent.chat.export import export_conversation, mark_sentences
from agent.chat.opening import open_assistant_over
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Observer, Session, describe_call
from agent.chat.source import Asked
from agent.chat.store import RATINGS, Store, open_store
from agent.models.registry import describe_destination
from agent.terminal.escaping import defuse_citations
from agent.terminal.output import print_json, to_one_line, to_plain_text
from agent.turn.interface_sentences import choose_sentences
from indexes.text.languages import find_question_language
from schemas.errors import ConvagentError, MissingError, RunError, UsageError, format_count
from schemas.records import Call, Response, TurnResult

HELP = """\
Ask, and go on asking. Commands:
  /sources      of the last answer       /open N       one, what it lent marked
  /nearby       what came near it        /retry        the last question again
  /copy         it to the clipboard      /rate good    or bad: what you think
  /about-me     what I know about you    /remember     what you said of yourself
  /about-me add I am vegetarian.         /about-me remove N
  /new          another conversation     /forget       delete this one
  /only WHERE   travel/, *.pdf, 2025     /everywhere   search everything again
  /model NAME   answer with another      /export FILE  .md, .json (iKAT topics)
  /help         this                     /quit         or Ctrl-D
I also understand: which documents do you have?; only in travel/; mails of 2025
Alt-Enter starts a new line. Ctrl-C stops an answer, or clears the line."""
OTHER_LANGUAGE = "(Documents in another language: `convagent model pull multilingual`, then --embedder multilingual.)"


@dataclass(slots=True)
class Terminal:
    """The conversation as it is typed and shown."""

    session: Session
    console: Any  # rich.console.Console
    sources: tuple[Source, ...] = ()
    nearby: tuple[str, ...] = ()  # what came near the last answer, with the numbers of its sources
    offers: tuple[str, ...] = ()  # statements about the person that could be remembered, from the latest question
    news: deque[str] = field(default_factory=deque)  # of the documents, to be shown with the next line
    told_of_languages: bool = False
    done: bool = False
    exit_code: int = 0  # that of the worst error so far
    is_sure: Callable[[str], bool] = lambda _question: True  # asks a person, where there is one

    def handle(self, line: str) -> None:
        """Handle a line: a command or a question. An error is shown, and the chat goes on."""
        while self.news:
            self._say(f"({self.news.popleft()})", "dim")
        try:
            name, _, argument = line.strip().partition(" ")
            if name in COMMANDS:
                getattr(self, COMMANDS[name])(argument.strip())
            elif name.startswith("/") and name not in OF_SESSION:
                raise UsageError(f"there is no command {name}", remedy="/help lists them.")
            elif line.strip():
                self.ask(line)
        except ConvagentError as error:
            self._say(str(error), "red")
            self.exit_code = max(self.exit_code, error.exit_code)

    def ask(self, utterance: str) -> None:
        """Answer, and show it. Raises what `Session.ask` raises."""
        with self._show_progress() as observer:
            answered = self.session.ask(utterance, observer)
        if self.session.turns[-1].kind == "question":
            self._show_answer(answered)
            self._offer_languages(utterance, answered)
            self._offer_to_remember(utterance)
        else:  # small talk, which leaves the sources of the answer before open
            self._say(" ".join(mark_sentences(answered.response)))
        if self.session.problem:
            raise RunError(f"the answer is not kept: {self.session.problem}")

    @contextmanager
    def _show_progress(self) -> Iterator[Observer]:
        """An observer that shows each step, and what is written, until the answer is there.

        Searches stay on the screen, with what was searched for.
        """
        status = self.console.status("reading")

        def show_step(call: Call) -> None:
            if call.step == "search":
                self._say(describe_call(call), "dim")
            else:
                status.update(describe_call(call))

        def show_response(response: Response) -> None:
            status.update(to_plain_text(" ".join(mark_sentences(response))))

        with status:
            yield Observer(show_step, show_response)

    def _show_answer(self, answered: TurnResult) -> None:
        self.sources = shown_sources(answered)
        for chosen in answered.selected_statements:
            self._say(f"knowing: {chosen.statement.text}", "cyan")
        if scope := self.session.current_scope:
            self._say(f"(only in {scope})", "dim")
        if within := self.session.turns[-1].within:
            self._say(f"(only {within})", "dim")
        if answered.response.direct:
            self._say(defuse_citations(answered.response.direct), "bold")
        if answered.response.is_unsure:
            self._say(UNSURE_NOTE, "dim")
        said = " ".join(mark_sentences(answered.response))
        self._say(said or choose_sentences([self.session.turns[-1].utterance]).nothing)
        self.do_sources("")
        self.nearby = tuple(mark_sentences(answered.response, nearby=True))
        if self.nearby:
            self._say(f"  (/nearby shows {len(self.nearby)} more that came near)", "dim")

    def show_earlier(self) -> None:
        """Show what was said before, where a conversation goes on."""
        for turn in self.session.turns:
            self._say(f"> {turn.utterance}", "dim")
            response = turn.answered.response
            if response.is_unsure:
                self._say(UNSURE_NOTE, "dim")
            self._say(" ".join(filter(None, (defuse_citations(response.direct), *mark_sentences(response)))))
            self.sources = shown_sources(turn.answered) or self.sources

    def do_nearby(self, _argument: str) -> None:
        for marked in self.nearby or ("(nothing came near the last answer)",):
            self._say(f"  {marked}", "dim")
        self._list_sources(cited=False)

    def do_sources(self, _argument: str) -> None:
        self._list_sources(cited=True)
        if not any(source.cited for source in self.sources):
            self._say("(no sources)", "dim")

    def _list_sources(self, *, cited: bool) -> None:
        for source in self.sources:
            if source.cited == cited:
                self._say(f"  {self._describe_source(source)}", "green")

    def _describe_source(self, source: Source) -> str:
        """Its number and name, and whether its file has changed."""
        change = self.session.assistant.collection.explain_change(source.passage)
        named = (f"[{source.number}] {to_one_line(source.name)}", to_one_line(source.title), change and f"({change})")
        return "  ".join(filter(None, named))

    def do_open(self, argument: str) -> None:
        source = {str(each.number): each for each in self.sources}.get(argument.strip("[]"))
        if source is None:
            numbers = ", ".join(f"{each.number}{'' if each.cited else ' (near)'}" for each in self.sources)
            raise UsageError(f"no source {argument!r} (the last answer has {numbers or 'none'})", remedy="/open 1")
        near = "" if source.cited else "  (came near the last answer, which does not cite it)"
        self._say(f"{self._describe_source(source)}{near}", "green")
        pieces = (
            to_plain_text(f">{piece.text}<", "bold") if piece.marked else to_plain_text(piece.text)
            for piece in source.pieces
        )
        self.console.print(*pieces, sep="")
        if source.passage.url:
            self._say(source.passage.url, "dim")

    def do_retry(self, _argument: str) -> None:
        """Ask the last question again; the new answer takes the place of the old one."""
        chat, turns = self._require_answer(), self.session.turns
        self.session = Session.resume(self.session.assistant, self.session.store, chat, len(turns))
        self.ask(turns[-1].utterance)

    def do_copy(self, _argument: str) -> None:
        """Hand the last answer to the terminal's clipboard (OSC 52)."""
        self._require_answer()
        response = self.session.turns[-1].answered.response
        text = "\n".join(filter(None, (response.direct, response.text)))
        self.console.file.write(f"\x1b]52;c;{b64encode(text.encode()).decode()}\a")
        self._say("(copied, if your terminal lets programs do so)", "dim")

    def do_rate(self, argument: str) -> None:
        if argument not in RATINGS:
            raise UsageError(f"an answer is good or bad, not {argument!r}", remedy="/rate good")
        self.session.store.rate_turn(self._require_answer(), len(self.session.turns), argument)
        self._say(f"(kept as {argument}, in exports too)", "dim")

    def _require_answer(self) -> int:
        """The conversation, which has an answer."""
        if self.session.chat is None or not self.session.turns:
            raise UsageError("there is no answer yet", remedy="Ask first.")
        return self.session.chat

    def do_about_me(self, argument: str) -> None:
        store = self.session.store
        verb, _, rest = argument.partition(" ")
        if verb == "add":
            self._say(f"I shall remember: {store.add_statement(rest).text}", "cyan")
        elif verb == "remove":
            held = {str(place): statement.id for place, statement in enumerate(store.list_statements(), start=1)}
            if unknown := [number for number in rest.split() or [""] if number not in held]:
                remedy = "/about-me lists them with their numbers."
                raise UsageError(f"there is no statement {', '.join(map(repr, unknown))}", remedy=remedy)
            store.delete_statements([held[number] for number in rest.split()])
        elif verb:
            raise UsageError(f"/about-me does not know {verb!r}", remedy="/about-me add I am vegetarian.")
        statements = store.list_statements()
        for place, statement in enumerate(statements, start=1):
            self._say(f"  {place}  {statement.text}", "cyan")
        if not statements:
            self._say("I know nothing about you. /about-me add I am vegetarian.", "dim")

    def _offer_languages(self, utterance: str, answered: TurnResult) -> None:
        """Say once how documents in another language than the question are asked."""
        embedder = self.session.assistant.current.embedder
        read = tuple(sorted({passage.language for passage in answered.passages}))
        asked = find_question_language(utterance, read)
        is_other = asked and read and asked not in read and embedder and embedder.name == "minilm"
        if is_other and not self.told_of_languages:
            self.told_of_languages = True
            self._say(OTHER_LANGUAGE, "dim")

    def _offer_to_remember(self, utterance: str) -> None:
        if self.session.problem:  # there is no room for a statement either
            return
        if found := find_self_disclosures(utterance, self.session.store.list_statements()):
            self.offers = found
            self._say(f"(/remember keeps this about you: {' '.join(found)})", "dim")

    def do_remember(self, _argument: str) -> None:
        if not self.offers:
            raise UsageError("there is nothing to remember", remedy="/about-me add I am vegetarian.")
        for statement in self.offers:
            self._say(f"I shall remember: {self.session.store.add_statement(statement).text}", "cyan")
        self.offers = ()

    def do_new(self, _argument: str) -> None:
        scope = self.session.current_scope
        self.session = Session(self.session.assistant, self.session.store, scope=scope)
        self.sources, self.nearby, self.offers = (), (), ()
        kept = f" I still search only in “{scope}”; /everywhere ends that." if scope else ""
        self._say(f"A new conversation.{kept}", "dim")

    def do_forget(self, argument: str) -> None:
        chat, turns = self.session.chat, len(self.session.turns)
        if argument:
            raise UsageError("/forget deletes this conversation", remedy=f"`convagent chats --forget {argument}`")
        if turns and not self.is_sure(f"Delete conversation {chat} with its {format_count(turns, 'turn')}?"):
            self._say("Nothing is deleted.", "dim")
            return
        if chat is not None:
            self.session.store.delete_chat(chat)
        self.do_new("")

    def do_model(self, argument: str) -> None:
        if argument:
            self.session.assistant.use_model(argument)
        model = self.session.assistant.model
        self._say(f"answering with {model}. {describe_destination(model, None)}", "dim")

    def do_export(self, argument: str) -> None:
        if self.session.chat is None:
            raise UsageError("there is nothing to export yet")
        path = Path(os.path.expanduser(argument))  # noqa: PTH111 - leaves an unknown user's name as it is
        if path.exists():
            raise UsageError("exists already", where=str(path), remedy="Give another name: /export FILE.")
        export_conversation(self.session.store, self.session.chat, path, overwrite=False)
        self._say(f"written to {path}", "dim")

    def do_help(self, _argument: str) -> None:
        self._say(HELP)

    def do_quit(self, _argument: str) -> None:
        self.done = True

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(to_plain_text(text, style))


OF_SESSION = ("/only", "/everywhere")  # which are asked like questions
COMMANDS = {f"/{name[3:].replace('_', '-')}": name for name in dir(Terminal) if name.startswith("do_")}


def run_chat(session: Session) -> int:
    """Talk until the person leaves, or the pipe ends. The exit code: 0 from a terminal, where errors were seen.

    A terminal has line editing, and the arrow keys bring back earlier questions. Through a pipe each line is a turn.
    """
    from prompt_toolkit.patch_stdout import patch_stdout
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    if not sys.stdin.isatty():
        terminal = Terminal(session, console)
        for line in sys.stdin:  # an error does not keep the next from being asked
            terminal.handle(line)
            if terminal.done:
                break
        return terminal.exit_code
    prompt, terminal = _make_prompt(session.store.read_utterances()), Terminal(session, console)
    terminal.is_sure = lambda question: input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    current = session.assistant.current

    def show_progress(progress: str) -> None:  # of what is made meanwhile, in a line below the prompt
        prompt.bottom_toolbar = progress or None
        prompt.app.invalidate()

    current.tell, current.on_progress = terminal.news.append, show_progress
    show_progress(current.progress)
    header = f" /help for help, Ctrl-D to leave. {describe_destination(session.assistant.model, None)}"
    console.print(to_plain_text(session.assistant.source, "bold"), to_plain_text(header, "dim"))
    terminal.show_earlier()
    while not terminal.done:
        try:
            with patch_stdout(raw=True):  # what is said meanwhile stands above
                line = prompt.prompt("> ")
            terminal.handle(line)
        except KeyboardInterrupt:
            console.print("[dim]stopped[/]")
        except EOFError:
            break
    return 0


def _make_prompt(before: Sequence[str]) -> Any:
    """Line editing: Enter sends, Alt-Enter starts a new line; commands complete with Tab."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return PromptSession(
        history=InMemoryHistory(list(before)),
        completer=WordCompleter([*COMMANDS, *OF_SESSION], sentence=True),
        complete_while_typing=False,
        key_bindings=keys,
    )


def start_chat(asked: Asked, chat: int | None, *, continue_last: bool) -> int:
    """Open all that is needed, and talk. The exit code, which tells of lines that came through a pipe.

    Raises `UsageError` or `MissingError` for a conversation that cannot be continued, and what opening store,
    passages and models raises.
    """
    if asked.incognito and (continue_last or chat is not None):
        raise UsageError("--incognito knows no conversation to go on with", remedy="Leave one of the two out.")
    store = open_store(incognito=asked.incognito)
    if continue_last and chat is None:
        if not (kept := store.list_chats(most=1)):
            remedy = "Start one: `convagent chat --docs FOLDER`."
            raise MissingError("there is no conversation to go on with", remedy=remedy)
        chat = kept[0].id
    if chat is not None and not (asked.docs or asked.index):
        asked = replace(asked, docs=Path(store.read_source(chat)))
    words_first = sys.stdin.isatty()  # through a pipe, answers wait for all vectors, and so can be repeated
    with open_assistant_over(asked, words_first=words_first) as assistant:
        session = Session.resume(assistant, store, chat)
        session.scope = assistant.initial_scope if asked.only else None
        return run_chat(session)


def answer_questions(questions: Sequence[str], asked: Asked, *, as_json: bool) -> None:
    """Ask one after the other, and print each answer with its sources, or as a line of JSON. Nothing is kept.

    Raises what opening the documents and the models raises, and what `Session.ask` raises.
    """
    from rich.console import Console

    with open_assistant_over(asked, words_first=False) as assistant:
        session = Session(assistant, Store(None))
        terminal = Terminal(session, Console(highlight=False, soft_wrap=True))
        for question in questions:
            if as_json:
                print_json(describe_answer(question, session.ask(question)))
            else:
                terminal.ask(question)

"""A conversation in a model's own chat format, in pieces, so that text from outside can never pose as a chat marker.

The template is rendered with a placeholder for every message. What stands between the placeholders is the
template's and may hold special tokens (`<|im_end|>`); the messages are put back as pieces that are tokenized as plain
text.
"""

import re
from dataclasses import dataclass
from typing import Any

from agent.models.protocol import Conversation, Task
from schemas.records import Message

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt. Special tokens are recognised in the template's own pieces only."""

    text: str
    from_template: bool


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The Jinja chat template of a GGUF (ChatML where it has none)."""

    source: str
    bos: str = ""
    eos: str = ""

    def render(self, conversation: Conversation, task: Task) -> list[Piece]:
        """The prompt up to the first token of the reply."""
        messages = conversation.messages or (Message("user", ""),)
        contents = [[conversation.system.strip()], *([message.text.strip()] for message in messages)]
        if task.instruction:  # a text of its own, so that the tokens before it are the same without it
            contents[-1].append(("\n\n" if contents[-1][0] else "") + task.instruction.strip())
        roles = ["system", *(message.role for message in messages)]
        rendered = self._with_placeholders(roles)
        if rendered.rstrip().endswith("<think>"):  # a reasoning template opens the thinking itself: close it
            rendered = rendered.rstrip() + "\n\n</think>\n\n"
        pieces: list[Piece] = []
        for position, part in enumerate(_PLACEHOLDER.split(rendered)):
            if position % 2 == 0:
                pieces.append(Piece(part, from_template=True))
            else:
                pieces.extend(Piece(text, from_template=False) for text in contents[int(part)])
        pieces.append(Piece(task.opening, from_template=False))
        return [piece for piece in pieces if piece.text]

    def _with_placeholders(self, roles: list[str]) -> str:
        from jinja2 import TemplateError
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        formatter: Any = Jinja2ChatFormatter(template=self.source, eos_token=self.eos, bos_token=self.bos)
        messages = [{"role": role, "content": f"\ue000{n}\ue001"} for n, role in enumerate(roles)]
        try:
            return str(formatter(messages=messages, enable_thinking=False).prompt)
        except (TemplateError, ValueError):  # some know no system role: it then opens the first utterance
            system, first, *rest = messages
            merged = {"role": "user", "content": f"{system['content']}\n\n{first['content']}"}
            return str(formatter(messages=[merged, *rest], enable_thinking=False).prompt)

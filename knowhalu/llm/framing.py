"""A request as a model gets it: one text, or the messages of a chat.

In a chat, the instruction is the system prompt, each worked example a pair of turns, and the reply the turn of the model, which
begins with the heading of the reply. Qwen2.5-Coder-1.5B found the knowledge of six queries of six in this form, of four where
the heading ended the user's turn, and of none where all was one message: it wrote that there was no information.
"""

from itertools import pairwise

from knowhalu.requests import Generate

Message = dict[str, str]


def chat_messages(request: Generate, *, system_role: bool = True) -> list[Message]:
    """Return the messages up to the model's turn; without a `system_role`, the system prompt opens the first of the user's.

    Roles alternate, as many chat templates demand. A prompt without turns is one message.
    """
    system, texts = request.system, [request.prompt]
    if request.turns:
        ends = (*request.turns, len(request.prompt))
        system = "\n\n".join(text for text in (system, request.prompt[: ends[0]].strip()) if text)
        texts = [request.prompt[start:end].strip() for start, end in pairwise(ends)]
    if reply_heading(request):
        del texts[-1]
    if system and not system_role:
        texts[0] = f"{system}\n\n{texts[0]}"
    turns = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]
    return [{"role": "system", "content": system}, *turns] if system and system_role else turns


def reply_heading(request: Generate) -> str:
    """Return the heading that opens the reply at the end of a prompt with turns; "" where the reply has none."""
    return request.prompt[request.turns[-1] :] if request.turns and len(request.turns) % 2 == 0 else ""


def without_heading(text: str, request: Generate) -> str:
    """Return a reply as it would continue the prompt: without the heading, which a model writes itself in a turn of its own."""
    heading, body = reply_heading(request), text.lstrip()
    if not heading or not body:
        return text
    return body.removeprefix(heading) if body.startswith(heading) else f" {body}"


def render_completion_prompt(request: Generate) -> str:
    """Return the text that a plain completion continues: system prompt, prompt and prefill."""
    return f"{request.system}\n\n{request.prompt}{request.prefill}" if request.system else request.prompt + request.prefill

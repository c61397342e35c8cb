"""The answer is in a language that the user did not speak."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject

_ANSWERS = {
    " und | nicht | ich | bitte ": "Vielen Dank für Ihre Anfrage. Ich habe sie geprüft und alles Nötige veranlasst. "
    "Kann ich sonst noch etwas für Sie tun?",
    " est | vous | je | une ": "Merci pour votre demande. Je l'ai examinée et j'ai fait le nécessaire. "
    "Puis-je faire autre chose pour vous ?",
    "は|の|を": "お問い合わせありがとうございます。内容を確認し、必要な手続きを行いました。他にご用件はございますか。",
}  # words that tell a language, and an answer in it


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    said = f" {(subject.trace.input or '').lower()} "
    if not said.strip() or not subject.answer:
        raise NotApplicableError("what the user said was not captured")
    others = [answer for words, answer in _ANSWERS.items() if not any(word in said for word in words.split("|"))]
    if not others:
        raise NotApplicableError("the user's language is not told apart")
    text = rng.choice(others)
    return AnswerEdit(text, text)


FAULT = Fault("course", "The answer is in a language that the user did not speak.", edit)

"""Whether a text that a tool gave back tells of a failure, by how it begins."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache


class Told(Enum):
    """What a result tells of its call: ``FAILED``; ``UNSURE``, it may be read both ways; ``NOTHING`` of a failure."""

    NOTHING = auto()
    UNSURE = auto()
    FAILED = auto()


LOOKED_AT = 300
"""Characters of a text's beginning that are read."""
_SENTENCE = 160
"""Characters of a message of one sentence; longer texts that begin so are prose."""

_BEFORE = re.compile(
    r"[\s\"'`(\[*#>❌✗✘🚫⛔⚠️]*(?:\d{4}-\d\d-\d\d[T ][\d:.,]+\S*\s+)?(?:call id: \S+\s+)?"
    r"(?:(?:oops|uh-oh)[,!.:]?\s+)?\[?",
    re.IGNORECASE,
)
"""What may stand before a message: quotes, marks, a time, a call's id."""

_END = r"\s*(?:[.!\"'`)\]*]*\s*$|\Z)"
_WHY = (
    r"\s*+(?:[:\uff1a!–—(\]*]|-\s|,\s)++\s*+"
    r"(?![-+±]?\d++(?:[.,]\d++)*+(?:\s?(?:%|[a-zµ]{1,3}))?(?:\s*$|[,;)]|\s(?:of|out of|/)\b)"
    r"|(?:none|null|nil)\b|no\s*$)"
)
"""A separator with a reason behind it: a number alone measures something."""
_ON = r"(?:\s+(?:by|after|for|because|due|with|on|at|from|while|as|since|until|in|to|when|during|and|or|but)\b)"
_DONE = (
    r"(?:rejected|denied|declined|refused|forbidden|unauthori[sz]ed|not (?:authori[sz]ed|permitted|allowed)|aborted|"
    r"failed|failure|timed?[ -]?out|cancell?ed by the server|unsuccessful)"
)
_MATTER = (
    r"(?:request|operation|action|transaction|payment|order|booking|reservation|connection|access|permission|"
    r"authenti\w+|authori[sz]ation|login|call|execution|command|query|job|task|upload|download|transfer|update|"
    r"insert|delet\w+|creation|validation|verification|submission|delivery|build|compilation|deployment|import|export|"
    r"read|write|search|lookup|charge|refund|cancell?ation|assertion|message|server|tool|function|api)"
)
_DOES = (
    r"(?:cancel|connect|update|delete|remove|create|write|read|open|load|save|send|process|complete|perform|execute|"
    r"run|invoke|call|resolve|access|reach|parse|fetch|retrieve|get|set|add|apply|book|change|modify|move|copy|import|"
    r"export|install|start|stop|authenticate|log|join|post|publish|place|pay|charge|refund|return|exchange|schedule|"
    r"reserve|assign|approve|submit|upload|download|decode|encode|convert|compile|build|deploy|determine|verify|"
    r"validate|handle|establish|allocate|acquire|lock|proceed|continue|finish|render|rename|merge|stat|be (?:done|"
    r"processed|completed|cancell?ed|changed|modified|updated|deleted|reached|opened|read|found in the registry))"
)
_THING = r"(?:find|locate) (?:the )?(?:module|package|file|symbol|class|name|function|command|host|variable)"

_SURE = re.compile(
    "(?:"
    # the word itself
    r"<(?:\w+_)?(?:error|exception|fault)>\s*\w|"
    r"(?:an? )?(?:(?:unexpected|internal|fatal|unknown|unhandled|network|server|runtime|api|system|input validation|"
    rf"tool|function|\w+)\s+)?(?:execution |call )?error(?:{_WHY}|\s*!)"
    rf"|(?:an? )?(?:\w+ ){{0,2}}error (?:has )?occur+ed\b|error{_END}"
    r"|error(?:\s+code)?\s*#?\s*\d{1,5}\s*(?:[:(–-]|\.\s|$)|error code\s*:\s*\d"
    r"|error\s+(?:executing|while|during|invoking|calling|running|fetching|processing|parsing|opening|reading|"
    r"writing|loading|connecting|creating|sending|accessing)\b"
    r"|error in [\w.'\"`/]+(?:\(.{0,80}\))?\s*:|error from \w+ \(|error\s+(?=[a-z])(?:al|ao|en) \w+"
    r"|error ?\[\w+\]:|\S+ error \w{1,3}\d{2,6}:|.{1,80}\(\d+,\d+\): error\b|error\s+(?:worker|could|cannot|failed)\b"
    # exceptions of programs
    r"|traceback \(most recent call last\)|exception in thread\b|exception(?:\s*:\s*[a-z]|\s+occurred|\s*$)"
    r"|unhandled(?:promiserejection| exception)|uncaught (?:\w*error|exception)"
    r"|(?:goroutine|thread '.{0,60}') panicked|panic: |segmentation fault|core dumped|php fatal error"
    r"|fatal(?: error)?: |npm err!|make(?:\[\d+\])?: \*\*\*|rpc error: code|sqlstate\[|ora-\d{5}|mcp error -?\d"
    r"|curl: \(\d+\)|e: unable to |error \d{4} \(\w{5}\)|\d+ validation errors?(?: for |:)"
    # words for a failure
    rf"|(?:tool |function )?(?:execution |call |request )?(?:failed|failure){_WHY}"
    rf"|(?:\w+ ){{0,2}}?(?:failed|unable|(?:was |were )?not able) to {_DOES}\b(?![^.:]*\?)"
    r"|(?:failed|unable) to (?!(?:sleep|launch)\b)[a-z]+ (?:the|a|an|tool|to|from|in|file|url|message|data)\b"
    r"(?![^.:]*\?)"
    r"|(?:\w+ )?(?:could not|couldn't|cannot|can't|can not) (?-i:(?=[a-z]|GET |POST |PUT |DELETE ))"
    rf"(?:{_DOES}|{_THING})\b(?![^.:]*\?)"
    rf"|{_DONE}(?:{_END}|{_WHY})|timed? ?out (?:after|while|waiting)\b"
    rf"|(?:(?:your|the|this|that|http|tcp|ssl|api) )?{_MATTER} (?:(?:was|were|is|has been|had been|have been) )?"
    rf"(?:\w+ly )?{_DONE}(?:{_END}|{_WHY}|{_ON})"
    r"|(?:rate|request|token|usage) limit (?:exceeded|reached)|(?:\w+ )?quota (?:exceeded|exhausted)|too many requests"
    r"|(?:insufficient|not enough) (?:funds|balance|permissions?|privileges|seats|stock|credits?|scopes?|rights)\b"
    r"|(?:you|this user|the user|user|account) (?:do(?:es)? not|don't|doesn't|lacks?|has no|have no)(?: have)?"
    r"(?: the)? (?:required )?(?:permissions?|access|rights)|you (?:are|re) not (?:allowed|authori[sz]ed|permitted) to"
    r"|operation not (?:permitted|supported)|no (?:permission|access) to\b"
    r"|invalid (?:(?:tool|function|input|api|request|access|user|json|date|file|email|query) )?(?:arguments?|params|"
    r"parameters?|input|request|key|token|date|credentials?|id|json|format|syntax|query|url|path|operation|state|"
    rf"password|username|value|number|email|type)(?:{_END}|{_WHY}|:\s|\s+(?:for|provided|given|in|was|is|of)\b)"
    r"|missing (?:\d+ )?(?:required )?(?:positional |keyword-only )?(?:parameter|argument|field|property|key|value)s?\b"
    r"|(?:unknown|unrecogni[sz]ed|unsupported|no such) (?:tool|function|command|method|argument|option|operation|"
    rf"parameter|action)(?:{_END}|{_WHY}|:|\s+['\"`])|(?:tool|function|method) ['\"`]?[\w.-]+['\"`]? (?:not found|"
    r"does not exist|is not (?:available|defined|registered))|[\w.-]+ is not a valid tool\b"
    # shells
    r"|(?:\w+: ){1,2}(?:line \d+: )?.{1,80}: (?:command )?not found|\w+: command not found: "
    r"|[\w./-]{1,40}: .{0,120}(?:no such file or directory|permission denied|is a directory|not a directory)"
    r"|[\w./-]{1,30}: cannot \w+"
    # HTTP
    r"|(?:http(?:/[\d.]+)?\s*)?(?:error |status(?: code)?:? )?[45]\d\d:? (?:bad request|unauthorized|payment required|"
    r"forbidden|not found|method not allowed|not acceptable|request timeout|conflict|gone|payload too large|"
    r"unprocessable|too many requests|internal server error|not implemented|bad gateway|service unavailable|"
    r"gateway time-?out|client error|server error)(?! (?:codes?|errors?|pages?|means?)\b)"
    rf"|http(?:/[\d.]+)? (?:error:? )?[45]\d\d(?:{_END}|[:,])"
    r"|(?:\w+ ){0,3}(?:failed with |returned )?status code:? [45]\d\d\b"
    rf"|(?:bad request|internal server error|service unavailable|bad gateway|gateway time-?out)(?:{_END}|{_WHY})"
    r"|(?:<!doctype html>\s*)?<html.{0,120}<title>\s*(?:error )?[45]\d\d\b"
    # fields written as lines
    r"|(?:status|outcome|result)\s*[:=]\s*[\"']?(?:error|failed|failure|rejected|denied)\b"
    r"|(?:success|ok|succeeded)\s*[:=]\s*false\b|is_?error\s*[:=]\s*true\b"
    # other languages
    r"|(?:fehler|erreur|erro|errore|fout|fel|błąd|chyba|hata|virhe|feil|fejl|ошибка|помилка|lỗi|خطأ|שגיאה|त्रुटि)"
    rf"{_WHY}|(?:错误|錯誤|エラー|오류|에러)\s*[:\uff1a!\uff01-]\s*(?!\d)"
    r"|(?:zugriff verweigert|accès refusé|acceso denegado|acesso negado|accesso negato|доступ запрещ)"
    r"|(?:échec|impossible) d(?:e |'|u )|no (?:se pudo|fue posible|se ha podido) \w+|não (?:foi possível|consegui) \w+"
    r"|falha ao |impossibile \w+|не удалось \w+|无法|無法|不能(?:连接|完成)"
    rf"|[^.\n]{{0,{_SENTENCE}}}\b(?:konnten? nicht \w+ werden|ist fehlgeschlagen|wurde abgelehnt)"
    rf"|[^。\n]{{0,{_SENTENCE}}}(?:失败|失敗しました|できませんでした|실패했습니다|실패)(?:[。.!]|$)"
    ")",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r"(?:uncaught )?(?:[\w$]+(?:\.|::|\\))*(?:[A-Z][\w$]*(?:Error|Exception|Fault|Warning: Error)|Error|Exception)"
    r"(?:\s*:\s*(?![-+±]?[\d.,]+\s*%?\s*$|none\b|null\b)\S|\s*\(.|\s*$)"
    r"|(?:\w+\.)+(?:errors|exceptions)\.\w+\s*:\s*\w"
    r"|[a-z]+_(?:error|exception|failure):\s+(?![-+±]?[\d.]+)\S"
)
"""The name of an exception, as programs spell it; behind it what it says."""
_MAY = re.compile(
    r"(?:sorry\b|unfortunately\b|we regret|leider\b|desafortunadamente|malheureusement"
    r"|(?:\w+ )?(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate)\b"
    r"|no such \w+|(?:the |your |this )?(?:[\w#'\"-]+ ){1,6}(?:was |were |is |could )?(?:not (?:be )?found|"
    r"do(?:es)?(?: not|n't) exist|no longer exists)\b)",
    re.IGNORECASE,
)
_SIGN = ("❌", "✗", "✘", "🚫", "⛔")
_HINTS = (
    *("error", "err!", "exception", "traceback", "panic", "fault", "fatal", "fail", "unable", "not able", "could not"),
    *("couldn't", "cannot", "can't", "can not", "reject", "denied", "decline", "refused", "forbidden", "authori"),
    *("permi", "allowed", "abort", "timed", "timeout", "time-out", "unsuccess", "limit", "quota", "too many"),
    *("insufficient", "not enough", "access", "no right", "invalid", "missing", "unknown", "unrecogni", "unsupported"),
    *("no such", "not found", "n't exist", "not exist", "no longer", "not available", "not defined", "not registered"),
    *("not a valid", "directory", "curl: (", "make", "ora-", "sqlstate", "core dump", "success", "status", "outcome"),
    *("gateway", "bad request", "unavailable", "http", "sorry", "unfortunately", "regret", "leider", "malheureu"),
    *("desafortun", "fehler", "erro", "fout", "fel:", "hata", "virhe", "feil", "fejl", "chyba", "konnte", "abgelehnt"),
    *("verweigert", "refus", "acceso", "acesso", "accesso", "impossib", "no se pudo", "no fue posible", "no se ha"),
    *("falha",),
)
_CODE = re.compile(r"[45]\d\d")
_NEAR = 120
"""Every text of a failure holds a hint among so many first characters: most others are told by that alone."""


def text_tells(text: str) -> Told:
    """What a text tells by its first 300 characters. A text that goes on from "Error" as prose does, and a number that
    measures an error, tell nothing."""
    return _tells(text[:LOOKED_AT], len(text) <= LOOKED_AT)


@lru_cache(maxsize=2048)
def _tells(start: str, whole: bool) -> Told:
    start = start.replace("\u2019", "'")
    if not _hints_at_it(start):
        return Told.NOTHING
    opened = _BEFORE.match(start)
    at = opened.end() if opened is not None else 0
    if _SURE.match(start, at) is not None or _EXCEPTION.match(start, at) is not None:
        return Told.FAILED
    if start.lstrip().startswith(_SIGN):
        return Told.UNSURE
    return Told.UNSURE if whole and "?" not in start and _MAY.match(start, at) is not None else Told.NOTHING


def _hints_at_it(start: str) -> bool:
    near = start[:_NEAR].lower()
    return not near.isascii() or any(hint in near for hint in _HINTS) or _CODE.search(near) is not None

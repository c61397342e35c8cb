"""Detects failure texts in tool results by their beginning."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache

from pandaeval_collector.base.lazy_pattern import lazily

# How the texts of failures begin, in the words of programs, shells, services, frameworks and people.
#
# Each pattern is matched at the beginning of a text, after the part that :data:`BEFORE` skips. Ambiguous patterns are
# in :data:`MAY`.
BEFORE = lazily(
    r"(?-i:\s*+\[(?!err|fail|fatal|exc|warn)[a-z][a-z_.:-]{1,23}\]\s++)?[\s\"'`(\[*#>❌✗✘🚫⛔⚠️]*"
    r"(?:\d{4}-\d\d-\d\d[T ][\d:.,]\S*+\s++)?(?:call id: \S++\s++)?(?:(?:oops|uh-oh)[,!.:]?\s+)?\[?"
)
"""Text that can precede a message: the sender in brackets, quotes, marks, a time, a call's id."""

_SENTENCE = 160
"""Maximum characters of a message of one sentence. Longer texts with the same beginning are prose."""
_END = r"\s*+[.!\"'`)\]*]*+\s*+\Z"
_WHY = (
    r"\s*+(?:[:\uff1a!–—(\]*]|-\s|,\s)++\s*+"
    r"(?![-+±]?\d++(?:[.,]\d++)*+(?:\s?(?:%|[a-zµ]{1,3}))?(?:\s*$|[,;)]|\s(?:of|out of|/)\b)"
    r"|(?:none|null|nil)\b|no\s*$)"
)
"""A separator with a reason behind it: a number alone measures something."""
_ON = r"(?:\s+(?:by|after|for|because|due|with|on|at|from|while|as|since|until|in|when|during|and|or|but)\b)"
_STOPS = rf"(?:{_END}|{_WHY}|{_ON})"
"""The message ends here, gives a reason, or continues with time or manner. A noun instead means prose about
failures.
"""
_NO_QUESTION = r"(?![^.:]*\?)"
_DONE = (
    r"(?:rejected|denied|declined|refused|forbidden|unauthori[sz]ed|not (?:authori[sz]ed|permitted|allowed)|aborted|"
    r"failed|failure|timed?[ -]?out|unsuccessful)"
)
_MATTER = (
    r"(?:request|operation|action|transaction|payment|order|booking|reservation|connection|access|permission|"
    r"authenti\w+|authori[sz]ation|login|call|exec(?:ution)?|command|query|job|task|upload|download|transfer|update|"
    r"insert|delet\w+|creation|validation|verification|submission|delivery|build|compilation|deployment|import|export|"
    r"read|write|search|lookup|charge|refund|card|script|process|account|credentials?|lock|cancell?ation|assertion|"
    r"message|server|tool|function|api)"
)
_DOES = (
    r"(?:cancel|connect|update|delete|remove|create|write|read|open|load|save|send|process|complete|perform|execute|"
    r"run|invoke|call|resolve|access|reach|parse|fetch|retrieve|get|set|add|apply|book|change|modify|move|copy|import|"
    r"export|install|start|stop|authenticate|log|join|post|publish|place|pay|charge|refund|return|exchange|schedule|"
    r"reserve|assign|approve|submit|upload|download|decode|encode|convert|compile|build|deploy|determine|verify|"
    r"validate|handle|establish|allocate|acquire|lock|proceed|continue|finish|render|rename|merge|stat|push|edit|replace)"
)
_CHANGED = (
    r"(?:sent|saved|booked|changed|updated|done|processed|completed|cancell?ed|deleted|created|modified|moved|added|"
    r"removed|opened|read|written|loaded|reached|executed|applied|placed|paid|charged|refunded|returned|exchanged|"
    r"delivered|submitted|scheduled|reserved|verified|confirmed|connected|uploaded|downloaded|imported|stored|made|"
    r"parsed)"
)
_SYSTEM = (
    r"(?:service|server|system|api|backend|database|gateway|host|endpoint|upstream|network|connection|site|provider|"
    r"platform|application|cluster|queue|carrier)"
)
_NOT_THERE = (
    r"(?:unavailable|down|offline|unreachable|overloaded|not (?:available|reachable|responding|answering)|lost|"
    r"reset|interrupted|busy)"
)
_THING = r"(?:find|locate) (?:the )?(?:module|package|file|symbol|class|name|function|command|host|variable)"
_INPUT = (
    r"(?:arguments?|params|parameters?|input|request|key|token|date|credentials?|id|json|format|syntax|query|url|path|"
    r"operation|state|password|username|value|number|email|type|session|reference|code|response|signature|user|account)"
)
_PHRASE = (
    r"(?:bad request|unauthorized|payment required|forbidden|not found|method not allowed|not acceptable|request "
    r"timeout|conflict|gone|payload too large|unprocessable|too many requests|internal server error|not implemented|"
    r"bad gateway|service unavailable|gateway time-?out|client error|server error)"
)
EXCEPTION = lazily(
    r"(?:uncaught )?(?:[\w$]+(?:\.|::|\\))*(?:[A-Z][\w$]*(?:Error|Exception|Fault|Warning: Error)|Error|Exception)"
    r"(?:\s*:\s*(?![-+±]?[\d.,]++\s*+%?+\s*+\Z|none\b|null\b)\S|\s*\(.|\s*$)"
    r"|(?:\w+\.)+(?:errors|exceptions)\.\w+\s*:\s*\w"
    r"|(?:[a-z]+_(?:error|exception|failure)|[A-Z]+_(?:ERROR|EXCEPTION|FAILURE)):\s+(?![-+±]?[\d.]+)\S",
    0,
)
"""An exception's name as programs write it, followed by its message."""
LOOKED_AT = 300
"""Characters of a text's beginning that are read."""
_SIGN = ("❌", "✗", "✘", "🚫", "⛔")
_LEVEL = r"(?:\[?(?:ERROR|FATAL|SEVERE|WARN(?:ING)?|INFO|DEBUG|TRACE)\]?\W{1,3})?"
_LOG = re.compile(rf"(?:{_LEVEL}\[?\d{{4}}-\d\d-\d\d[T ]\d\d:[^\n]+(?:\n|\Z)){{2,}}")
"""Lines of a log. They are content, and their errors need not be the call's."""


_SIGNALLED = 126
"""Exit codes from here on mean that a command did not run or was killed."""
_EXIT = lazily(
    r"(?:\A|\n)[^\w\n]{0,20}_{0,3}(?:process |command )?(?:\w{1,20} with )?exit (?:code|status)[\s:=]{1,5}"
    r"(-?[1-9]\d{0,9})\W{0,20}\Z"
)
_PROGRAM = re.compile(r"\A[\w./-]{1,30}: ")
"""The program's name before its message."""


def _any(*patterns: str) -> re.Pattern[str]:
    return lazily("|".join(f"(?:{each})" for each in patterns))


SAYS_ERROR = _any(
    r"<(?:\w+_)?(?:error|exception|fault)>\s*\w",
    rf"(?:an? )?(?:input validation |\w+ )?(?:execution |call )?error(?:{_WHY}|\s*!)",
    rf"(?:an? )?(?:\w+ ){{0,2}}error (?:has )?occur+ed\b|error{_END}|internal error{_END}",
    r"error(?:\s++code)?\s*+#?+\s*+\d{1,5}\s*(?:[:(–-]|\.\s|$)|error code\s*:\s*\d",
    r"error\s+(?:executing|while|during|invoking|calling|running|fetching|processing|parsing|opening|reading|writing|"
    r"loading|connecting|creating|sending|accessing|generating|rendering|worker|could|cannot|failed)\b",
    r"(?:execution )?error in [\w.'\"`/]+(?:\(.{0,80}\))?\s*:|error from \w+ \(",
    r"error response from |error (?:al|ao|en) \w+",
    r"error ?\[\w+\]:|\S+ error \w{1,3}\d{2,6}:|.{1,80}\(\d+,\d+\): error\b|error \d{4} \(\w{5}\)",
    r"(?:[\w-]+ ){1,3}error: [45]\d\d\b|(?:.{1,40} )?returned error: [45]\d\d\b|upstream connect error",
    r"(?:sorry,? |oops!? )?something went wrong",
)
SAYS_EXCEPTION = _any(
    r"traceback \(most recent call last\)|exception in thread\b|exception(?:\s*:\s*(?!none|no\b)[a-z]"
    r"|\s+occurred|\s*$)",
    r"unhandled(?:promiserejection| exception)|uncaught (?:\w*error|exception)",
    r"(?:goroutine|thread '.{0,60}') panicked|panic: |segmentation fault|core dumped|php fatal error",
    r"fatal(?: error)?: (?!\d+\s*$)|rpc error: code|sqlstate\[|ora-\d{5}|mcp error -?\d",
    r"\d+ validation errors?(?: for |:)|\w+pool\(.{0,80}max retries|\w+_verify_failed|ssl: ",
    r"e[a-z]{4,12}: .{0,60}\b(?:connect|open|stat|unlink|mkdir|read)\b",
    rf"out of memory\b|killed{_END}|deadlock (?:detected|found)|duplicate (?:entry|key)\b|value too long\b",
    r".{0,60}\bviolates .{0,30}constraint",
)
SAYS_FAILED = _any(
    rf"(?:tool |function )?(?:execution |call |request )?(?:failed|failure){_WHY}",
    rf"(?:\w+ ){{0,2}}?(?:failed|unable|(?:was |were )?not able) to {_DOES}\b{_NO_QUESTION}",
    r"(?:failed|unable) to (?!(?:sleep|launch)\b)[a-z]+ (?:the|a|an|tool|to|from|in|file|url|message|data)\b"
    + _NO_QUESTION,
    r"(?:\w+ )?(?:could not|couldn't|cannot|can't|can not) (?-i:(?=[a-z]|GET |POST |PUT |DELETE ))"
    rf"(?:{_DOES}|{_THING})\b{_NO_QUESTION}",
    rf"(?:[\w#'-]+ ){{1,5}}(?:could not|couldn't) be {_CHANGED}\b",
    rf"{_DONE}(?:{_END}|{_WHY})|(?:blocked|conflict){_WHY}",
    rf"timed? ?out (?:after|while|waiting)\b|(?:[\w'-]+ ){{1,5}}timed out{_STOPS}",
    r"(?:lock|request|read|connection|idle|query|statement|gateway) (?:wait )?time-?out(?: exceeded|;|,|:|\s*$)",
    rf"(?:[\w-]+ )?{_MATTER} (?:(?:was|were|is|(?:has|had|have) been) )?(?:\w+ly )?"
    rf"(?:{_DONE}|not successful|blocked|rolled back|killed){_STOPS}",
    rf"(?:(?:the|this|our|your) )?(?:[\w-]+ ){{0,3}}{_SYSTEM}(?: (?:to|for|of) [\w .:/-]{{1,40}})?"
    rf" (?:(?:is|was|are|has been|appears to be) )?(?:currently |temporarily )?{_NOT_THERE}\b(?! \w+ly\b)",
)
SAYS_WHY = _any(
    r"(?:rate|request|token|usage) limit (?:exceeded|reached)|(?:\w+ )?quota (?:exceeded|exhausted)|too many requests",
    r"max(?:imum)? (?:number of )?(?:retries|attempts) (?:exceeded|reached)",
    r"(?:insufficient|not enough) (?:funds|balance|permissions?|privileges|seats|stock|credits?|scopes?|rights)\b",
    r"(?:you|this user|the user|user|account) (?:do(?:es)? not|don't|doesn't|lacks?|has no|have no)(?: have)?(?: the)?"
    r" (?:required )?(?:permissions?|access|rights)",
    r"(?:you|(?:the |this )?(?:user|role|account|caller)(?: \S+)?) (?:are|is|re) not (?:allowed|authori[sz]ed"
    r"|permitted) to",
    rf"operation not (?:permitted|supported)|no (?:permission|access)(?: to\b|{_END})",
    r"no (?:lease|grant|permit|approval|authori[sz]ation|permission|clearance) for\b",
    r"access to .{1,60} (?:is |was )?(?:denied|forbidden|not allowed|restricted)",
    rf"(?:authentication|authori[sz]ation|login|payment|permission) (?:is )?required{_END}",
    r"(?:your |the |this )?(?:session|token|access token|credentials?|link|api key|certificate)"
    r" (?:has |have |is )?expired\b",
    r"(?:wrong|incorrect|bad) (?:password|credentials|pin|username|api key)\b",
    rf"invalid (?:[\w-]+ )?{_INPUT}(?:{_END}|{_WHY}|:\s|\s+(?:for|provided|given|in|was|is|of)\b)",
    r"missing (?:\d+ )?(?:required )?(?:positional |keyword-only )?(?:parameter|argument|field|property|key|value)s?\b"
    r"(?!:? \d)",
    r"(?:field|parameter|argument|property|attribute) ['\"`]?[\w.]+['\"`]? is (?:required|missing|invalid)\b",
    r"['\"`]?[\w.]+['\"`]? is a required (?:property|field|parameter)|field required\b",
    r"(?:input|value|arguments?) (?:should be a valid|could not be|cannot be) \w+",
    r"expected an? .{1,60}(?:,| but) got (?:['\"`\d<\[{]|an? |none|null)",
    r"[\w.'\"`]+ (?:must|has to|should) be .{1,60}(?:,| but|;) (?:got|not|received|was|is)\b",
    r"(?:unknown|unrecogni[sz]ed|unsupported|no such) (?:tool|function|command|method|argument|option|operation|"
    rf"parameter|action|media type)(?:{_END}|{_WHY}|:|\s+['\"`])",
    r"(?:tool|function|method) ['\"`]?[\w.-]+['\"`]? (?:not found|does not exist|is not (?:available|defined"
    r"|registered))|(?:sub-?agent|agent|skill)(?: type)? ['\"`][\w.:-]+['\"`] (?:was )?(?:not found|does not exist)",
    r"(?:tool|function|command) not found(?:: \S|\s*$)|no (?:tool|function|method|command) (?:named|called) ",
    r"[\w.-]+ is not a valid tool\b|(?:tool|function) ['\"`]?[\w.-]+['\"`]? raised:? ",
)
SAYS_SHELL = _any(
    r"(?:\w+: ){1,2}(?:line \d+: )?.{1,80}: (?:command )?not found|\w+: command not found: ",
    r"[\w./-]{1,40}: .{0,120}(?:no such file or directory|permission denied|is a directory|not a directory)",
    r"[\w./-]{1,30}: cannot \w+|curl: \(\d+\)|e: unable to |npm err!|make(?:\[\d+\])?: \*\*\*",
    r"name or service not known|no route to host|exit(?:ed with)? (?:code|status):? (?:12[67]|1[3-9]\d|2\d\d)\b",
)
SAYS_HTTP = _any(
    rf"(?:http(?:/[\d.]+)?\s*)?(?:error |status(?: code)?:? )?[45]\d\d:? {_PHRASE}(?! (?:codes?|errors?|pages?"
    rf"|means?)\b)",
    rf"http(?:/[\d.]+)? (?:error:? )?[45]\d\d(?:{_END}|[:,])|(?:\w+ ){{0,3}}(?:failed with |returned )?status code:? "
    r"[45]\d\d\b",
    r"(?:[\w-]+ ){1,3}(?:returned|responded with|answered)(?: an?)?(?: http)?(?: status)?(?: code)?:? [45]\d\d\b",
    r"(?:bad request|internal server error|service unavailable|bad gateway|gateway time-?out"
    r"|method not allowed|request "
    rf"entity too large|payload too large|unprocessable entity)(?:{_END}|{_WHY})",
    r"(?:<!doctype html>\s*)?<html.{0,120}<title>\s*(?:error )?[45]\d\d\b",
)
SAYS_FIELD = _any(
    r"(?:status|outcome|result)\s*[:=]\s*[\"']?(?:error|failed|failure|rejected|denied)\b",
    r"(?:success|ok|succeeded)\s*[:=]\s*false\b|is_?error\s*[:=]\s*true\b",
)
SAYS_ABROAD = _any(
    rf"(?:fehler|erreur|erro|errore|fout|fel|błąd|chyba|hata|virhe|feil|fejl|ошибка|помилка|lỗi|خطأ|שגיאה"
    rf"|त्रुटि){_WHY}",
    r"(?:错误|錯誤|エラー|오류|에러)\s*[:\uff1a!\uff01-]\s*(?!\d)",
    r"zugriff verweigert|accès refusé|acceso denegado|acesso negado|accesso negato|доступ запрещ",
    r"(?:échec|impossible) d(?:e |'|u )|no (?:se pudo|fue posible|se ha podido) \w+|não (?:foi possível|consegui) \w+",
    r"zeitüberschreitung|délai (?:d'attente )?dépassé|tiempo de espera agotado|tempo limite",
    rf"[^.\n]{{0,{_SENTENCE}}}\b(?:ha fallado|falló|a échoué|ha fallito|falhou|mislyckades|is mislukt|nie powiod)",
    r"falha ao |impossibile \w+|не удалось \w+|无法|無法|不能(?:连接|完成)",
    rf"[^.\n]{{0,{_SENTENCE}}}\b(?:konnten? nicht \w+ werden|ist fehlgeschlagen|wurde abgelehnt)",
    rf"[^。\n]{{0,{_SENTENCE}}}(?:失败|失敗しました|できませんでした|실패했습니다|실패)(?:[。.!:\uff1a，,]|$)",
)
SURE = (
    *(SAYS_ERROR, EXCEPTION, SAYS_FAILED, SAYS_WHY, SAYS_EXCEPTION, SAYS_HTTP, SAYS_SHELL, SAYS_FIELD, SAYS_ABROAD),
)
MAY = _any(
    r"sorry(?=[,:.]| (?:i|we|but|the|that|this|your|there|for)\b)|unfortunately\b|we regret",
    r"leider\b|desafortunadamente|malheureusement",
    r"(?:\w+ )?(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate)\b|no such \w+",
    r"(?:[\w#'\"-]+ ){1,7}(?:was |were |is |could )?(?:not (?:be )?found|do(?:es)?(?: not|n't) exist"
    r"|no longer exists)\b",
    rf"(?:[\w#'-]+ ){{1,5}}(?:was |were |is |are |has been )?not (?:been )?(?:yet )?{_CHANGED}\b",
    rf"(?:[\w#'-]+ ){{1,5}}(?:cannot|can't|can not|may not) be {_CHANGED}\b|nothing (?:was |has been )?{_CHANGED}\b",
    r"no (?:\w+ ){1,3}(?:available|left|free)\b|(?:not found|nothing found)\W*$",
    r"(?:[\w#'\"-]+ ){1,7}(?:is |are |was |were )?not (?:available|visible|clickable|interactable|editable|enabled)\b",
    r"(?:[\w-]+ ){0,3}(?:exited with|exit) (?:code|status):? -?[1-9]",
    r"[^.\n]{1,80}(?:nicht gefunden|introuvable|no encontrad[oa]|não encontrad[oa]|non trovat[oa])",
    r"[^.\n]{1,80}(?:未找到|見つかりません|не найден)",
)
"""Texts that may report a failure, or findings."""


_PERSON = r"(?:the |a |this )?(?:user|human|person|operator|reviewer|approver)"
_REFUSED = (
    r"(?:rejected|denied|declined|refused|disallowed|disapproved|skipped|cancell?ed|aborted|vetoed|interrupted|"
    r"not (?:approved|allowed|permitted|confirmed))"
)
_TOOL_USE = r"(?:tool|function|command|action|operation)(?: (?:call|execution|use|invocation|request))*"
DECLINED = _any(
    rf"(?:(?:error|failed|permission denied)\W{{1,4}})?{_PERSON} (?:has |have )?(?:explicitly )?{_REFUSED}"
    r" (?:this|that|the|permission|your|it|to|tool|execution|execute)\b",
    rf"(?:.{{0,80}}\breason: )?{_PERSON} (?:does not|doesn't|did not|didn't|do not|don't) (?:want|wish|allow|approve|"
    r"permit|consent|authori[sz]e|confirm)\b",
    rf"(?:(?:error|failed)\W{{1,4}})?(?:[\w`'\"./-]+ ){{0,7}}{_REFUSED} by {_PERSON}\b",
    rf"(?:error\W{{1,4}})?(?:the |this |your )?{_TOOL_USE}(?: \S+)? (?:is |was |has been )?(?:not approved"
    rf"(?! by (?!{_PERSON}))\b|(?:rejected|denied|declined){_END})",
    r".{1,60} requested permissions? to .{1,80} but you haven't granted it yet",
    rf"(?:human |user )?(?:approval|confirmation|permission) (?:is |was )?(?:denied|rejected|declined) by {_PERSON}",
)
"""Framework texts that inform a model that a person refused a tool call."""


class FailureSign(Enum):
    """Sign of a failed call. ``DECLINED``: a person refused. ``UNSURE``: ambiguous. ``NOTHING``: no sign."""

    NOTHING = auto()
    UNSURE = auto()
    FAILED = auto()
    DECLINED = auto()


def sign_in_text(text: str) -> FailureSign:
    """Read the failure sign in a text's first 300 characters, and in an exit code as its last line."""
    sign = _sign_in(text[:LOOKED_AT], len(text) <= LOOKED_AT)
    if sign is FailureSign.NOTHING and (last := _EXIT.search(text[-LOOKED_AT:])) is not None:
        return sign_of_exit(int(last[1]), text)
    return sign


def sign_of_exit(code: int, text: str) -> FailureSign:
    """Read the failure sign in a command's exit code and message. Many commands exit with 1 without a failure."""
    if code >= _SIGNALLED or code < 0:
        return FailureSign.FAILED
    line = text[:LOOKED_AT].partition("\n")[0]
    says_why = any(_sign_in(each, True) is FailureSign.FAILED for each in (line, _PROGRAM.sub("", line)))
    return FailureSign.FAILED if says_why else FailureSign.UNSURE


@lru_cache(maxsize=2048)
def _sign_in(start: str, whole: bool) -> FailureSign:
    start = start.replace("\u2019", "'")
    if _LOG.match(start) is not None:
        return FailureSign.UNSURE
    opened = BEFORE.match(start)
    at = opened.end() if opened is not None else 0
    if DECLINED.match(start, at) is not None:
        return FailureSign.DECLINED
    if any(pattern.match(start, at) is not None for pattern in SURE):
        return FailureSign.FAILED
    if start.lstrip().startswith(_SIGN):
        return FailureSign.UNSURE
    return (
        FailureSign.UNSURE if whole and "?" not in start and MAY.match(start, at) is not None else FailureSign.NOTHING
    )

"""What the API answers in lines, for a coding agent and for the terminal: content of traces in them is without
secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pandaeval_collector.show.view.results import ResultView, failing
from pandaeval_collector.show.view.texts import NONE, dollars, estimate, many, moment, said

Row = Mapping[str, Any]
_MOST_CALLS = 30


def incident_line(row: Row) -> str:
    """Returns one line on an incident: how grave, what, how often, since when, and what people say of it."""
    names = dict.fromkeys([row["label"], *(label for _, label in row["also"])])
    what = said(" and ".join(name.replace("_", " ") for name in names), 120)
    agents = ", ".join(f'"{said(agent, 80)}"' for agent in row["agents"])
    times = f"{many(row['runs'], 'run')}, {moment(row['first_at'])} to {moment(row['last_at'])}"
    triage = row["triage"]
    note = "; ".join(
        f"{name} {said(triage[key], 200)}" for name, key in (("by", "by"), ("note:", "note")) if triage[key]
    )
    newest = f"; newest in trace {row['trace_id']}" if row["trace_id"] else ""
    state = f"{triage['state']}, {note}" if note else triage["state"]
    about = f"{state}; {times}, agent {agents}, incident {row['id']}"
    return f"{row['severity']} {what} ({about}): {said(row['reason'], 160)}{newest}"


def step_lines(row: Row) -> Iterator[str]:
    """Yields the steps of a trace as a tree, with the reasons below the steps that failed results blame."""
    detail = row["detail"]
    if detail is None:
        yield "its spans are not kept any more: no steps to show"
        return
    blamed: dict[str, list[str]] = {}
    for each in row["results"]:
        if each["success"] is False:
            for span_id in [each["span_id"], *each.get("span_ids", [])]:
                blamed.setdefault(span_id, []).append(result_text(each, 160))
        for step in _candidates(each):
            blamed.setdefault(step["span_id"], []).append(_blame(each, step))
    for number, span in enumerate(detail["spans"], 1):
        yield _step(number, span, detail["texts"])
        for why in dict.fromkeys(blamed.get(span["id"], ())):
            yield f"{'  ' * (span['depth'] + 1)}blamed by {why}"
    if detail["left_out"]:
        yield f"… {many(detail['left_out'], 'more step')}"


def _candidates(result: Row) -> list[Row]:
    """Returns the steps that may have broken the run, the first one first."""
    found = result["metadata"].get("candidates")
    return found if isinstance(found, list) else []


def _blame(result: Row, step: Row) -> str:
    """Returns the words on a blamed step: ``trace.blame: it broke the run: grounding names it``."""
    sure = result["metadata"].get("step") == step
    why = said("; ".join(step["reasons"]), 160)
    return f"trace.blame: {'it broke the run' if sure else 'may have broken it'}: {why}"


def _step(number: int, span: Row, texts: Sequence[str]) -> str:
    """Return a step on one line."""
    line = f"{'  ' * span['depth']}{number}. {span['kind']} {said(span['name'], 80)}"
    for name in ("agent", "model", "tool"):
        if span.get(name):
            line += f" {name} {said(span[name], 60)}"
    line += f", {span['us'] / 1e6:.2f} s"
    if "args" in span:
        line += f": ({_text(span, 'args', texts)}) → {_text(span, 'result', texts)}"
    if span["kind"] == "llm" and span.get("out"):
        speaker, place = span["out"][-1]
        if texts[place]:
            line += f" → {said(speaker, 80)}: {said(texts[place], 300)}"
    if "error" in span:
        line += f" ERROR {_text(span, 'error', texts)}"
    return line


def _text(span: Row, key: str, texts: Sequence[str]) -> str:
    place = span.get(key)
    return NONE if place is None else said(texts[place], 160)


def verdict_lines(row: Row, own: Sequence[Row], labels: Sequence[Row]) -> Iterator[str]:
    """Yields what is known of whether a run did its job: by a judge, else by rules, and by people. ``own``: results of
    its session."""
    judged = [each for each in (*own, *row["results"]) if each["metric"] == "correctness"]
    if not any(each["outcome"] == "scored" for each in judged):
        yield f"not judged; by rules {many(len(failing(row['results'])), 'finding')}: {headline(row, 300)}"
    for each in judged:
        yield result_text(each, 400)
        for thing in each["metadata"].get("things") or ():
            shown = said(thing.get("shown_by") or "-", 40)
            yield f"- {said(thing['became'], 40)}: {said(thing['thing'], 160)} ({shown})"
        if wrong := each["metadata"].get("first_wrong_step"):
            yield f"- first wrong step: {said(wrong, 40)}"
    for each in labels:
        word = {True: "pass", False: "fail"}.get(each["passed"], each["score"])
        person = f'a person ("{said(each["annotator"], 60)}")'
        yield f"{person} says of {said(each['metric'], 80)}: {word} {said(each['comment'], 200)}".strip()


def session_line(row: Row) -> str:
    """Returns one line on a session: its traces, the worst of them, and its own results that failed."""
    worst = row["worst"]
    name = f'session "{said(row["session_id"], 120)}"' if row["session_id"] is not None else "no session"
    head = f"{name} ({many(row['traces'], 'trace')}, {row['failed_traces']} failed)"
    own = [result_text(each, 160) for each in failing(row["results"])[:2]]
    return "; ".join([head, *([] if worst is None else [f"worst {trace_line(worst)}"]), *own])


def trace_line(row: Row, metric: str | None = None) -> str:
    """Returns one line on a trace, with its result of ``metric`` if that is given, else its worst."""
    about = f'agent "{said(row["agent"], 80)}" at {moment(row["started_at"])}'
    return f"trace {row['trace_id']} of {about}: {headline(row, 200, metric)}"


def session_headline(row: Row, most: int) -> str:
    """Returns what was found in a session: the error of its worst trace, its own result that failed, else what was
    found in that trace."""
    own, worst = failing(row["results"]), row["worst"] or row
    return result_text(own[0], most) if own and worst.get("error") is None else headline(worst, most)


def headline(row: Row, most: int, metric: str | None = None) -> str:
    """Returns what was found in a trace or session: the error with which it ended, and its result of ``metric`` if that
    is given, else its worst."""
    error = row.get("error")
    scored = [each for each in row["results"] if each["outcome"] == "scored"]
    asked = [each for each in scored if metric in (each["metric"], f"{each['level']}.{each['metric']}")]
    broken = [] if error is None else [f"run failed: {said(error, most)}"]
    new = scored if error is None else [each for each in failing(scored) if not each["reason"].startswith(error[:80])]
    return "; ".join(broken + [result_text(each, most) for each in (*asked, *new)[:1]]) or "nothing is scored"


def result_text(result: Row, most: int) -> str:
    """Returns ``trace.tool_loop 0.17 (fail): reason``, see :meth:`ResultView.text`."""
    return ResultView.of(result).text(most)


def trace_lines(row: Row) -> Iterator[str]:
    """Yields lines on a trace: what failed, what was said, its tool calls, then the other results."""
    yield (
        f'agent "{said(row["agent"], 80)}", service "{said(row["service"], 80)}", session '
        f'"{said(row["session_id"] or "-", 120)}", {moment(row["started_at"])}, {row["duration_us"] / 1e6:.1f} s, '
        f"{many(row['llm_calls'], 'model call')}, {many(row['tool_calls'], 'tool call')}, {many(row['spans'], 'span')}"
        + ("" if row["complete"] else ", incomplete")
    )
    if row["error"] is not None:
        yield f"the run itself failed: {said(row['error'], 400)}"
    failed = failing(row["results"])
    yield f"{len(failed)} of {many(len(row['results']), 'result')} failed" + (":" if failed else "; the others:")
    yield from (f"- {result_text(each, 400)}" for each in failed)
    for each in row["results"]:
        for step in _candidates(each):
            what = " ".join(said(step[key], 60) for key in ("kind", "tool", "agent") if step.get(key))
            yield f"- step {step['span_id']} ({what}): {_blame(each, step).removeprefix('trace.blame: ')}"
    yield f"asked: {said(row['input'], 500) if row['input'] is not None else 'not captured'}"
    yield f"answered: {said(row['output'], 500) if row['output'] is not None else 'not captured'}"
    yield from _calls(row)
    yield from (f"- {result_text(each, 120)}" for each in row["results"] if each not in failed)


def _calls(row: Row) -> Iterator[str]:
    told = row.get("understood")
    if told is None:
        yield "its spans are not kept any more: no tool calls to show"
        return
    calls = told["tool_calls"]
    for number, call in enumerate(calls[:_MOST_CALLS], 1):
        ended = f"ERROR {said(call['error'], 160)}" if call["error"] is not None else said(call["result"], 120)
        yield f"call {number}: {said(call['name'], 60)}({said(call['arguments'], 160)}) → {ended}"
    if len(calls) > _MOST_CALLS:
        yield f"… {many(len(calls) - _MOST_CALLS, 'more call')}"


def run_lines(run: Row, both: Row | None) -> list[str]:
    """Returns lines on a run: how far it is, what it found, and what ``both``, its comparison with the live results,
    says of each metric."""
    far = f"{run['state']}: {run['done']} of {many(run['traces'], 'trace')} done, {run['failed']} failed"
    spent = f"{many(run['calls'], 'call')}, {dollars(run['cost_usd'])}"
    lines = ["; ".join([far, spent, *([said(run["error"])] if run["error"] else [])])]
    for name, counts in sorted(run["results"].items()):
        lines.append(f"{said(name, 80)}: {', '.join(f'{times} {kind}' for kind, times in sorted(counts.items()))}")
    for metric in [] if both is None else both["metrics"]:
        if (apart := metric["difference"]) is not None:
            mean = estimate(apart["mean"], apart["low"], apart["high"], "+.4f")
            lines.append(f"{said(metric['metric'], 80)}: live minus run {mean} over {apart['n']}")
    return lines

"""Redacted text lines for coding agents and terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pandaeval_collector.show.view.results import ResultView, failing, is_inline, spelled_out, undecided
from pandaeval_collector.show.view.texts import NO_VALUE, many, moment, redacted_line, units

Row = Mapping[str, Any]
_FAILED = "the run failed: "
"""Beginning of the reason of ``response`` for a run that ended with an error."""


def incident_line(row: Row) -> str:
    """Return a line on an incident: severity, label, number, times and state."""
    labels = dict.fromkeys([row["label"], *(label for _, label in row["also"])])
    what = redacted_line(" and ".join(label.replace("_", " ") for label in labels), 120)
    agents = ", ".join(f'"{redacted_line(agent, 80)}"' for agent in row["agents"])
    triage = row["triage"]
    notes = [f"by {redacted_line(triage['by'], 200)}"] if triage["by"] else []
    if triage["note"]:
        notes.append(f"note: {redacted_line(triage['note'], 200)}")
    back = "" if triage["back_at"] is None else f"came back {moment(triage['back_at'])} after it was resolved"
    state = ", ".join(filter(None, (back or triage["state"], "; ".join(notes))))
    times = f"{units(row)}, {moment(row['first_at'])} to {moment(row['last_at'])}"
    about = f"{state}; {times}, agent {agents}, incident {row['id']}"
    line = f"{row['severity']} {what} ({about}): {redacted_line(row['reason'], 160)}"
    if row["trace_id"]:
        line += f"; newest in trace {row['trace_id']}"
    return line


def question_line(row: Row) -> str:
    """Return a line on an open question: id, runs, agents and text."""
    agents = ", ".join(redacted_line(agent, 80) for agent in row["agents"])
    return f"{row['id']} ({many(row['runs'], 'run')}, {agents}): {redacted_line(row['question'], 400)}"


def step_lines(row: Row) -> Iterator[str]:
    """Yield a trace's steps as a tree, with reasons below blamed steps."""
    detail = row["detail"]
    if detail is None:
        yield "no steps to show: the spans are no longer stored (store.retention, store.keep_content, store.max_bytes)"
        return
    blamed = _reasons_by_step(row["results"], [span["id"] for span in detail["spans"]])
    for number, span in enumerate(detail["spans"], 1):
        yield _step(number, span, detail["texts"])
        for reason in blamed.get(span["id"], ()):
            yield f"{'  ' * (span['depth'] + 1)}{reason}"
    if detail["left_out"]:
        yield f"… {many(detail['left_out'], 'more step')}"
    yield from other_lines(detail.get("evaluations", ()))


def other_lines(others: Iterable[Row], where: str = "") -> Iterator[str]:
    for other in others:
        score = "" if other["score"] is None else f" {other['score']:g}"
        label = f" {redacted_line(other['label'], 60)}" if other["label"] else ""
        source, name = redacted_line(other["source"], 80), redacted_line(other["name"], 80)
        yield f"other evaluator {source}: {name}{score}{label}{where}"


def others_of_session(row: Row) -> Iterator[str]:
    for member in row["members"]:
        yield from other_lines(member["evaluations"], f" (trace {member['trace_id']})")


def _reasons_by_step(results: Iterable[Row], order: Sequence[str]) -> dict[str, list[str]]:
    """Return the findings about each step: the reason at a finding's first step, then only its name."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        if result["success"] is False:
            places = set(result.get("span_ids", ())) or {result["span_id"]}
            found = [span_id for span_id in order if span_id in places]
            name = f"blamed by {result['level']}.{result['metric']}"
            for span_id in found:
                reasons.setdefault(span_id, []).append(name)
            for span_id in found[:1]:
                reasons[span_id][-1] = f"blamed by {result_text(result, 160)}"
        for step in _candidates(result):
            reasons.setdefault(step["span_id"], []).append(_blame(result, step))
    return reasons


def _candidates(result: Row) -> list[Row]:
    steps = result["metadata"].get("candidates")
    return steps if isinstance(steps, list) else []


def _blame(result: Row, step: Row) -> str:
    sure = result["metadata"].get("step") == step
    why = redacted_line("; ".join(step["reasons"]), 160)
    return f"{'first wrong step' if sure else 'possible cause'}: {why}"


def _step(number: int, span: Row, texts: Sequence[str]) -> str:
    line = f"{'  ' * span['depth']}{number}. {span['kind']} {redacted_line(span['name'], 80)}"
    for name in ("agent", "model", "tool"):
        if span.get(name):
            line += f" {name} {redacted_line(span[name], 60)}"
    line += f", {span['us'] / 1e6:.2f} s"
    if "args" in span:
        line += f": ({_text(span, 'args', texts)}) → {_text(span, 'result', texts)}"
    if span["kind"] == "llm" and span.get("out"):
        speaker, place = span["out"][-1]
        if texts[place]:
            line += f" → {redacted_line(speaker, 80)}: {redacted_line(texts[place], 300)}"
    if "error" in span:
        line += f" ERROR {_text(span, 'error', texts)}"
    return line


def _text(span: Row, key: str, texts: Sequence[str]) -> str:
    place = span.get(key)
    return NO_VALUE if place is None else redacted_line(texts[place], 160)


def verdict_lines(row: Row, own: Sequence[Row], labels: Sequence[Row]) -> Iterator[str]:
    """Yield verdicts on a run by judge, else rules, and by people. ``own``: session results."""
    judged = [result for result in (*own, *row["results"]) if result["metric"] == "correctness"]
    if not any(result["outcome"] == "scored" for result in judged):
        others = {**row, "results": [result for result in row["results"] if result not in judged]}
        yield f"not judged; by rules {many(len(failing(others['results'])), 'finding')}: {headline(others, 300)}"
    for result in judged:
        yield result_text(result, 400)
        for thing in result["metadata"].get("things") or ():
            shown_by = redacted_line(thing.get("shown_by") or NO_VALUE, 40)
            yield f"- {redacted_line(thing['became'], 40)}: {redacted_line(thing['thing'], 160)} (evidence: {shown_by})"
        if wrong := result["metadata"].get("first_wrong_step"):
            yield f"- first wrong step: {redacted_line(wrong, 40)}"
    for label in labels:
        verdict = {True: "pass", False: "fail"}.get(label["passed"], label["score"])
        person = f'a person ("{redacted_line(label["annotator"], 60)}")' if label["annotator"] else "a person"
        metric, comment = redacted_line(label["metric"], 80), redacted_line(label["comment"], 200)
        yield f"{person} labels {metric}: {verdict} {comment}".strip()


def session_line(row: Row) -> str:
    """Return a line on a session, its worst trace and its failed results."""
    name = "no session"
    if row["session_id"] is not None:
        name = f'session "{redacted_line(row["session_id"], 120)}"'
    parts = [f"{name} ({many(row['traces'], 'trace')}, {row['failed_traces']} failed)"]
    parts += undecided(row["results"], 160)
    if row["worst"] is not None:
        parts.append(f"worst {trace_line(row['worst'])}")
    own = (result for result in failing(row["results"]) if not is_inline(result["metadata"]))
    parts += [result_text(result, 160) for result in islice(own, 2)]
    return "; ".join(parts)


def trace_line(row: Row, metric: str | None = None) -> str:
    """Return a line on a trace with its result of ``metric``, else its worst."""
    about = f'agent "{redacted_line(row["agent"], 80)}" at {moment(row["started_at"])}'
    return f"trace {row['trace_id']} of {about}: {headline(row, 200, metric)}"


def of_session(row: Row, metric: str) -> ResultView | None:
    """Return a result of the session, or of the trace without a session."""
    about = row if row["session_id"] else row["worst"] or row
    return next((ResultView.of(each) for each in about["results"] if each["metric"] == metric), None)


def session_lines(row: Row) -> Iterator[str]:
    """Yield the results of a session, the verdict first. If there is a verdict, omit the score without a judge."""
    results = sorted(row["results"], key=lambda result: result["metric"] != "correctness")
    is_judged = any(result["metric"] == "correctness" and result["outcome"] == "scored" for result in results)
    for result in results:
        if not (is_judged and is_inline(result["metadata"])):
            yield f"- {result_text(result, 400)}"


def session_headline(row: Row, most: int) -> str:
    """Return the judge's verdict, and if it is not decided also a failure; else that rules found none."""
    verdict, held = of_session(row, "correctness"), of_session(row, "agent_reliability")
    worst, own = row["worst"] or row, failing(row["results"])
    if verdict is not None and verdict.failed:
        return f"{verdict.fault}: {redacted_line(verdict.reason, most)}"
    parts = undecided(row["results"], most)
    if row["failed"]:
        is_own = own and not worst.get("failed") and worst.get("error") is None
        parts.append(result_text(own[0], most) if is_own else headline(worst, most))
    if parts:
        return "; ".join(parts)
    if verdict is not None and verdict.success:
        return f"handled correctly: {redacted_line(verdict.reason, most)}"
    if held is not None and held.replacement_text:
        return spelled_out(held.label, redacted_line(held.reason, most))
    return headline(worst, most)


def headline(row: Row, most: int, metric: str | None = None) -> str:
    """Return the main finding: undecided verdict, error, and result of ``metric``, else the worst or a failure."""
    error, parts = row.get("error"), undecided(row["results"], most)
    repeated = () if error is None else (error[:80], f"{_FAILED}{error[:80]}")
    scored = [result for result in row["results"] if result["outcome"] == "scored"]
    shown = [result for result in scored if metric in (result["metric"], f"{result['level']}.{result['metric']}")]
    if error is not None:
        parts.append(f"run failed: {redacted_line(error, most)}")
    if parts:
        scored = [each for each in failing(scored) if not each["reason"].startswith(repeated)]
    parts += [result_text(result, most) for result in (*shown, *scored)[:1]]
    return "; ".join(dict.fromkeys(parts)) or _not_scored(row["results"])


def _not_scored(results: Iterable[Row]) -> str:
    whys = dict.fromkeys(result["why"] for result in results if result["outcome"] == "unscored")
    return f"not scored: {', '.join(whys)}" if whys else "not scored"


def result_text(result: Row, most: int) -> str:
    """Return ``trace.tool_loop 0.17 (fail): reason``, see :meth:`ResultView.text`."""
    return ResultView.of(result).text(most)


def trace_lines(row: Row) -> Iterator[str]:
    """Yield failed results, input and output, tool calls, then other results."""
    facts = (
        f'agent "{redacted_line(row["agent"], 80)}"',
        f'service "{redacted_line(row["service"], 80)}"',
        f'session "{redacted_line(row["session_id"] or NO_VALUE, 120)}"',
        moment(row["started_at"]),
        f"{row['duration_us'] / 1e6:.1f} s",
        many(row["llm_calls"], "model call"),
        many(row["tool_calls"], "tool call"),
        many(row["spans"], "span"),
    )
    yield ", ".join(facts if row["complete"] else (*facts, "incomplete"))
    if row["error"] is not None:
        yield f"the run failed: {redacted_line(row['error'], 400)}"
    failed = failing(row["results"])
    yield f"{len(failed)} of {many(len(row['results']), 'result')} failed{':' if failed else ''}"
    for result in failed:
        yield f"- {result_text(result, 400)}"
    numbers = {span["id"]: number for number, span in enumerate((row.get("detail") or {}).get("spans", ()), 1)}
    for result in row["results"]:
        for step in _candidates(result):
            what = " ".join(redacted_line(step[key], 60) for key in ("kind", "tool", "agent") if step.get(key))
            yield f"- step {numbers.get(step['span_id'], step['span_id'])} ({what}): {_blame(result, step)}"
    yield f"asked: {_captured(row['input'])}"
    yield f"answered: {_captured(row['output'])}"
    for result in row["results"]:
        if result not in failed and not _candidates(result):
            yield f"- {result_text(result, 120)}"


def _captured(text: str | None) -> str:
    return "not captured" if text is None else redacted_line(text, 500)

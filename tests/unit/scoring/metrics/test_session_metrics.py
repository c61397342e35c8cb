"""Session metrics from trace signals."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.result import TOLERANCE
from pandaeval_collector.base.score import Assumed, Score, Unscored
from pandaeval_collector.scoring.metric import SessionContext, SessionSignal, SessionView, TraceSummary
from pandaeval_collector.scoring.metrics.session import _signals
from pandaeval_collector.scoring.metrics.session._signals import Coverage, coverage, session_signals, signal_counts
from pandaeval_collector.scoring.metrics.session.agent_consistency import METRIC as CONSISTENCY
from pandaeval_collector.scoring.metrics.session.agent_reliability import METRIC as RELIABILITY
from pandaeval_collector.show.view.results import spelled_out

EXTRAS = ("response", "grounding", "tool_loop")
KINDS = frozenset(_signals.KINDS)


def scored(value: float | None, **fields: str) -> SessionSignal:
    return SessionSignal("scored", value, **fields)


def failing(value: float | None = 0.0) -> SessionSignal:
    return scored(value, said="It failed.")


def missing(why: str) -> SessionSignal:
    return SessionSignal("unscored", None, why)


ASSUMED = SessionSignal("assumed", 1.0)


def view(*traces: dict[str, Any]) -> SessionView:
    """Return traces with signals; ``crashed`` and ``done`` describe the trace."""
    return SessionView(
        "s",
        tuple(
            TraceSummary(
                f"{number:032x}",
                "d",
                each.get("crashed", False),
                {name: signal for name, signal in each.items() if isinstance(signal, SessionSignal)},
                each.get("done", ()),
            )
            for number, each in enumerate(traces, 1)
        ),
    )


def context(
    enabled: frozenset[str] = KINDS, extras: tuple[str, ...] = EXTRAS, judged: bool = False, **fields: Any
) -> SessionContext:
    return SessionContext(fields.get("threshold", 0.5), enabled, fields.get("weights", {}), extras, judged)


@pytest.mark.parametrize(
    ("trace", "extras", "found"),
    [
        ({name: scored(0.4)}, EXTRAS, {name: 0.4})
        for name in ("confidence", "loop_detection", "tool_correctness", "coherence")
    ]
    + [
        ({}, EXTRAS, {}),
        ({"coherence": scored(None)}, EXTRAS, {}),
        ({"coherence": ASSUMED}, EXTRAS, {}),
        ({"coherence": missing("no_content")}, EXTRAS, {}),
        ({"helpfulness": scored(0.1)}, EXTRAS, {}),
        ({"coherence": scored(0.0), "confidence": scored(1.0)}, (), {"coherence": 0.0, "confidence": 1.0}),
        ({"response": scored(1.0)}, EXTRAS, {}),
        ({"response": scored(0.0)}, EXTRAS, {"response": 0.0}),
        ({"response": scored(0.7)}, EXTRAS, {"response": 0.7}),
        ({"response": scored(0.7)}, (), {}),
        ({"response": scored(0.7)}, ("response",), {"response": 0.7}),
        ({"crashed": True}, EXTRAS, {"response": 0.0}),
        ({"crashed": True}, ("response",), {"response": 0.0}),
        ({"crashed": True}, (), {}),
        ({"crashed": True, "response": missing("incomplete_trace")}, EXTRAS, {"response": 0.0}),
        ({"crashed": True, "response": scored(1.0)}, EXTRAS, {}),
        ({"response": missing("incomplete_trace")}, EXTRAS, {}),
        ({"tool_loop": scored(1.0)}, EXTRAS, {}),
        ({"tool_loop": scored(0.3)}, EXTRAS, {"tool_loop": 0.3}),
        ({"tool_loop": scored(None)}, EXTRAS, {}),
        ({"tool_loop": scored(0.3)}, ("response",), {}),
        ({"grounding": scored(0.2)}, EXTRAS, {"grounding": 0.2}),
        ({"grounding": scored(None)}, EXTRAS, {}),
        ({"grounding": scored(0.2)}, ("response",), {}),
    ],
)
def test_trace_results_are_converted_to_session_signals(
    trace: dict[str, Any], extras: tuple[str, ...], found: dict[str, float]
) -> None:
    assert session_signals(view(trace), context(extras=extras)) == [found]


@pytest.mark.parametrize(
    ("later", "counts"),
    [
        ({"done": ("book",)}, 0.5),
        ({"done": ("pay", "book")}, 0.5),
        ({"done": ("pay",)}, 0.1),
        ({}, 0.1),
    ],
)
def test_failure_repaired_by_a_later_trace_counts_half(later: dict[str, Any], counts: float) -> None:
    lost = {"response": scored(0.1, lost="book"), "coherence": scored(0.2)}
    assert session_signals(view(lost, {}, later), context())[0] == {"response": counts, "coherence": 0.2}
    assert session_signals(view(lost, later), context(extras=("response",)))[0]["response"] == counts
    assert session_signals(view(later, lost), context())[1]["response"] == 0.1, "an earlier trace repairs no failure"
    own = {**lost, **later}
    assert session_signals(view(own), context())[0]["response"] == 0.1, "the trace does not repair its own failure"


def test_a_call_that_a_later_trace_answers_is_no_failure() -> None:
    left_open = {"response": scored(0.0, open="find(w1)")}
    answers = {"done": ("find(w1)",)}
    assert session_signals(view(left_open, answers), context())[0] == {"response": 1.0}
    assert session_signals(view(answers, left_open), context())[1] == {"response": 0.0}


def test_repaired_failure_keeps_a_score_above_half() -> None:
    lost = {"response": scored(0.8, lost="book")}
    assert session_signals(view(lost, {"done": ("book",)}), context()) == [{"response": 0.8}, {}]


@pytest.mark.parametrize(
    ("traces", "enabled", "judged", "found"),
    [
        ([{}], KINDS, True, Coverage(1.0, (), 0, False)),
        ([{"coherence": scored(0.5)}], KINDS, True, Coverage(1.0, (), 1, False)),
        ([{"coherence": missing("timeout")}], KINDS, True, Coverage(0.0, ("coherence",), 1, False)),
        ([{"coherence": missing("no_content")}], KINDS, True, Coverage(1.0, (), 0, False)),
        ([{"confidence": missing("not_sampled")}], KINDS, True, Coverage(1.0, (), 0, False)),
        ([{"coherence": ASSUMED}], KINDS, True, Coverage(1.0, (), 0, True)),
        ([{"coherence": ASSUMED}], frozenset(), True, Coverage(1.0, (), 0, False)),
        ([{"coherence": missing("timeout")}], frozenset({"confidence"}), True, Coverage(1.0, (), 0, False)),
        (
            [{"coherence": scored(0.5)}, {"coherence": missing("timeout")}],
            KINDS,
            True,
            Coverage(0.5, (), 2, False),
        ),
        (
            [{"coherence": scored(0.5)}, *[{"coherence": missing("timeout")}] * 2],
            KINDS,
            True,
            Coverage(1 / 3, ("coherence",), 3, False),
        ),
        (
            [{"coherence": scored(0.5), "confidence": missing("timeout")}],
            KINDS,
            True,
            Coverage(0.5, ("confidence",), 2, False),
        ),
        # Without a judge, both judged kinds are missing in each trace, and rule signals count.
        ([{"coherence": scored(0.5)}], KINDS, False, Coverage(1 / 3, (), 1, False)),
        ([{"coherence": scored(0.5), "response": scored(1.0)}], KINDS, False, Coverage(2 / 4, (), 1, False)),
        (
            [{"coherence": scored(0.5), "response": missing("timeout"), "tool_loop": scored(1.0)}],
            KINDS,
            False,
            Coverage(2 / 5, (), 1, False),
        ),
        ([{"response": missing("incomplete_trace")}], KINDS, False, Coverage(0.0, (), 0, False)),
        ([{"response": scored(1.0)}, {}], KINDS, False, Coverage(1 / 5, (), 0, False)),
        ([], KINDS, False, Coverage(1.0, (), 0, False)),
    ],
)
def test_coverage_is_the_share_of_available_evidence(
    traces: list[dict[str, Any]], enabled: frozenset[str], judged: bool, found: Coverage
) -> None:
    assert coverage(view(*traces), context(enabled, judged=judged)) == found


@pytest.mark.parametrize(
    ("traces", "extras", "share"),
    [
        ([], EXTRAS, 1.0),
        ([{}], EXTRAS, 1.0),
        ([{"coherence": scored(0.5)}], EXTRAS, 1.0),
        ([{"coherence": missing("timeout")}], EXTRAS, 0.0),
        ([{"coherence": ASSUMED}], EXTRAS, 1.0),
        ([{"coherence": ASSUMED, "response": missing("timeout")}], EXTRAS, 0.0),
        ([{"coherence": missing("no_content"), "response": missing("not_sampled")}], EXTRAS, 1.0),
        ([{"coherence": scored(0.5), "response": missing("insufficient_evidence")}], EXTRAS, 0.5),
        ([{"coherence": scored(0.5), "response": missing("insufficient_evidence")}], (), 1.0),
        ([{"confidence": missing("timeout"), "tool_correctness": missing("timeout")}], EXTRAS, 1.0),
        ([{"helpfulness": missing("timeout")}], EXTRAS, 1.0),
        ([{"coherence": scored(0.5)}, {"loop_detection": missing("timeout"), "grounding": ASSUMED}], EXTRAS, 0.5),
    ],
)
def test_looked_at_is_the_share_of_applicable_checks_that_could_run(
    traces: list[dict[str, Any]], extras: tuple[str, ...], share: float
) -> None:
    assert _signals.scored_share(view(*traces), context(extras=extras)) == share


@pytest.mark.parametrize(
    ("traces", "counted"),
    [
        ([], {}),
        ([{}], {}),
        ([{"coherence": scored(0.1)}], {}),
        ([{"tool_loop": failing(0.75)}], {"tool_loop": 1}),
        ([{"crashed": True}], {"response": 1}),
        (
            [{"response": failing(0.1)}, {"response": failing(), "tool_loop": failing()}],
            {"response": 2, "tool_loop": 1},
        ),
        ([{"response": scored(0.1, lost="book", said="It failed.")}, {"done": ("book",)}], {}),
    ],
)
def test_traces_with_a_failure_are_counted_per_metric(traces: list[dict[str, Any]], counted: dict[str, int]) -> None:
    assert _signals.failures(view(*traces), ("coherence", "response", "tool_loop")) == counted


def test_traces_with_a_score_are_counted_per_metric() -> None:
    traces = view(
        {"coherence": scored(0.5), "response": scored(1.0), "tool_loop": scored(None)},
        {"coherence": missing("timeout"), "response": scored(0.0), "helpfulness": scored(0.5)},
    )
    assert signal_counts(traces, context()) == {"coherence": 1, "response": 2, "tool_loop": 1}
    assert signal_counts(traces, context(extras=("coherence",))) == {"coherence": 1}


@pytest.mark.parametrize(
    ("signals", "is_judged", "was_drawn"),
    [
        ({}, False, False),
        ({"coherence": scored(0.5)}, False, False),
        ({"confidence": scored(0.5)}, True, True),
        ({"confidence": missing("timeout")}, True, True),
        ({"confidence": missing("no_content")}, False, True),
        ({"confidence": missing("not_sampled")}, False, False),
        ({"tool_correctness": scored(0.5)}, True, False),
        ({"tool_correctness": missing("not_sampled")}, False, False),
    ],
)
def test_session_is_judged_or_sampled_according_to_its_signals(
    signals: dict[str, Any], is_judged: bool, was_drawn: bool
) -> None:
    for session in (view(signals), view({}, signals, {})):
        assert _signals.is_judged(session) is is_judged
        assert _signals.was_drawn(session) is was_drawn


class TestReliability:
    def test_score_has_reason_label_coverage_and_metadata(self) -> None:
        traces = view(
            {"coherence": scored(0.9)},
            {"helpfulness": scored(0.1)},
            {"coherence": scored(0.8), "response": scored(0.2, said="the run broke off")},
        )
        found = RELIABILITY.evaluate(traces, context())
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.2)
        assert found.label == "problem_found"
        assert found.coverage == pytest.approx(3 / 9)
        assert found.reason == (
            "1 finding by rules (response in 1 trace); task success: not judged; "
            f"worst: trace 3 of 3 ({3:032x}), response, risk 0.80: the run broke off"
        )
        weights = found.metadata.pop("signal_weights")
        assert {"coherence", "confidence", "loop_detection", "tool_correctness"} <= weights.keys()
        rounded = {
            key: value for key, value in found.metadata.items() if key not in ("per_trace_signals", "aggregation")
        }
        assert rounded == {
            "total_traces_in_session": 3,
            "traces_evaluated": 2,
            "raw_risk": pytest.approx(0.8),
            "flagged_traces": [f"{3:032x}"],
            "rests_on": {"coherence": 2, "response": 1},
            "basis": "inline",
        }
        parts = found.metadata["per_trace_signals"]
        assert list(parts) == [f"{1:032x}", f"{3:032x}"]
        assert parts[f"{3:032x}"]["response_risk"] == pytest.approx(0.8)
        assert found.metadata["aggregation"] == {
            "method": "max_compose_top_k",
            "top_k_percentile": 0.15,
            "ensemble_weight": 0.1,
            "mean_top_k_risk": pytest.approx(0.8),
            "max_risk": pytest.approx(0.8),
        }

    @pytest.mark.parametrize(
        ("worst", "threshold", "label"),
        [
            (0.4, 0.5, "suspect"),
            (0.5, 0.5, "no_problem_found"),
            (0.6 - 1e-10, 0.6, "no_problem_found"),
            (0.6 - 1e-8, 0.6, "suspect"),
            (0.6, 0.7, "suspect"),
            (0.9, 0.5, "no_problem_found"),
            (0.4, 0.1, "suspect"),
            (1.0, 1.0 + TOLERANCE, "no_problem_found"),
        ],
    )
    def test_low_signal_without_a_failure_is_suspect_without_a_judge(
        self, worst: float, threshold: float, label: str
    ) -> None:
        found = RELIABILITY.evaluate(view({"coherence": scored(worst)}), context(threshold=threshold))
        assert isinstance(found, Score)
        assert (found.label, "band" in found.metadata) == (label, False)

    def test_score_has_a_band_if_a_judge_evaluated_the_session(self) -> None:
        found = RELIABILITY.evaluate(view({"confidence": scored(0.8)}), context(judged=True))
        assert isinstance(found, Score)
        assert (found.label, found.metadata["band"], "basis" in found.metadata) == (None, "generally_reliable", False)
        assert found.coverage == 1.0
        assert "not judged" not in found.reason
        half = view({"confidence": scored(0.8), "coherence": scored(1.0)}, {"coherence": missing("timeout")})
        found = RELIABILITY.evaluate(half, context(judged=True))
        assert isinstance(found, Score)
        assert found.coverage == pytest.approx(2 / 3)

    @pytest.mark.parametrize(
        ("signal", "configured"), [("confidence", False), ("coherence", True), ("coherence", False)]
    )
    def test_basis_is_inline_if_no_judge_evaluated_the_session(self, signal: str, configured: bool) -> None:
        found = RELIABILITY.evaluate(view({signal: scored(0.8)}), context(judged=configured))
        assert isinstance(found, Score)
        assert (found.label, found.metadata["basis"]) == ("no_problem_found", "inline")
        assert "band" not in found.metadata

    def test_reason_without_findings_names_the_checks(self) -> None:
        found = RELIABILITY.evaluate(view({"response": scored(1.0), "coherence": scored(1.0)}), context())
        assert isinstance(found, Score)
        assert found.value == 1.0
        assert found.reason == "no findings by rules (coherence, response); task success: not judged"
        fine = view({"confidence": scored(1.0), "coherence": scored(1.0)}, {})
        found = RELIABILITY.evaluate(fine, context(judged=True))
        assert isinstance(found, Score)
        assert found.reason == "no sign of a problem in 2 traces (confidence, coherence)"

    @pytest.mark.parametrize("ended", [1.0, 0.5])
    def test_session_is_unscored_if_only_passing_endings_were_checked(self, ended: float) -> None:
        found = RELIABILITY.evaluate(view({"response": scored(ended)}, {"response": scored(1.0)}), context())
        assert isinstance(found, Unscored)
        assert (found.why, found.metadata["partial_score"]) == ("insufficient_evidence", ended)
        assert found.reason.startswith("hardly checked: only the endings of the runs were checked")
        failed = RELIABILITY.evaluate(view({"response": failing()}), context())
        assert isinstance(failed, Score)
        assert (failed.label, failed.failed) == ("problem_found", True)

    @pytest.mark.parametrize("judged", [True, False])
    def test_session_with_a_failing_result_fails_whatever_its_score(self, judged: bool) -> None:
        loop = view({"coherence": scored(0.9), "confidence": scored(0.9), "tool_loop": failing(0.75)}, *[{}] * 9)
        found = RELIABILITY.evaluate(loop, context(judged=judged))
        assert isinstance(found, Score)
        assert found.value > 0.5
        assert (found.label, found.failed) == (None if judged else "problem_found", True)

    def test_fabricated_value_alone_is_suspect_with_a_judge(self) -> None:
        traces = view({"confidence": scored(0.9), "grounding": failing(0.98)})
        found = RELIABILITY.evaluate(traces, context(judged=True))
        assert isinstance(found, Score)
        assert (found.label, found.failed) == ("suspect", False)

    def test_grounding_failure_alone_gives_only_the_label_suspect(self) -> None:
        made_up = {"grounding": scored(0.0, said="'$90' appears in no result"), "response": scored(1.0)}
        alone = RELIABILITY.evaluate(view({**made_up, "coherence": scored(0.9)}), context())
        assert isinstance(alone, Score)
        assert (alone.value, alone.label) == (pytest.approx(0.9), "suspect"), "neither a failure nor praise"
        checks = "only an unsupported value was found by rules (grounding in 1 trace)"
        assert (
            alone.reason == f"{checks}; task success: not judged; trace 1 of 1 ({1:032x}): '$90' appears in no result"
        )
        assert spelled_out(alone.label, alone.reason) == f"{checks}; task success: not judged"
        suspected = RELIABILITY.evaluate(view({**made_up, "coherence": scored(0.4)}), context())
        assert isinstance(suspected, Score)
        assert (suspected.value, suspected.label) == (pytest.approx(0.4), "suspect")
        beside = RELIABILITY.evaluate(view({**made_up, "tool_loop": failing()}), context())
        assert isinstance(beside, Score)
        assert (beside.value, beside.label) == (0.0, "problem_found")
        assert beside.reason.startswith("2 findings by rules (")

    @pytest.mark.parametrize(("at", "worst"), [(1, (0.1, 0.4, 0.9)), (2, (0.4, 0.1, 0.9)), (3, (0.9, 0.4, 0.1))])
    def test_reason_names_the_worst_trace_at_any_position(self, at: int, worst: tuple[float, ...]) -> None:
        traces = view(*({"coherence": scored(each)} for each in worst))
        found = RELIABILITY.evaluate(traces, context())
        assert isinstance(found, Score)
        assert found.reason == (
            "only suspicions were found by rules (coherence); task success: not judged; "
            f"highest risk 0.90: coherence in trace {at} of 3 ({at:032x}), which is no failure"
        )

    @pytest.mark.parametrize(("weight", "cause"), [({}, "coherence"), ({"loop_detection": 3.0}, "loop_detection")])
    def test_reason_names_the_signal_with_the_greatest_weighted_risk(
        self, weight: dict[str, float], cause: str
    ) -> None:
        trace = {"coherence": scored(0.0), "loop_detection": scored(0.2)}
        found = RELIABILITY.evaluate(view(trace), context(weights=weight))
        assert isinstance(found, Score)
        assert f": {cause} in trace 1 of 1" in found.reason

    def test_session_with_too_little_evidence_is_unscored(self) -> None:
        traces = view({"coherence": scored(0.3)}, *[{"coherence": missing("timeout")}] * 2)
        found = RELIABILITY.evaluate(traces, context(judged=True))
        assert isinstance(found, Unscored)
        assert (found.why, found.reason) == (
            "insufficient_evidence",
            "too few traces with a score: coherence in 1 of 3",
        )
        assert found.metadata["partial_score"] == pytest.approx(0.3)
        assert found.coverage == pytest.approx(1 / 3)
        none = RELIABILITY.evaluate(view({"coherence": missing("timeout")}), context())
        assert isinstance(none, Unscored)
        assert none.metadata["partial_score"] is None

    def test_failure_counts_even_if_another_metric_is_unscored(self) -> None:
        traces = view({"response": failing(), "coherence": missing("insufficient_evidence")})
        found = RELIABILITY.evaluate(traces, context())
        assert isinstance(found, Score)
        assert (found.label, found.failed) == ("problem_found", True)
        suspect = view({"grounding": failing(), "coherence": missing("insufficient_evidence")})
        assert isinstance(RELIABILITY.evaluate(suspect, context()), Unscored)

    def test_session_is_unscored_if_most_checks_could_not_run(self) -> None:
        trace = {"coherence": scored(1.0), "loop_detection": scored(1.0)}
        blind = {"response": missing("insufficient_evidence"), "grounding": missing("insufficient_evidence")}
        half = RELIABILITY.evaluate(view({**trace, **blind}), context())
        assert isinstance(half, Score)
        assert half.label == "no_problem_found"
        blind["tool_loop"] = missing("timeout")
        found = RELIABILITY.evaluate(view({**trace, **blind}), context())
        assert isinstance(found, Unscored)
        assert found.coverage == pytest.approx(2 / 5)
        assert found.metadata["partial_score"] == 1.0
        assert found.reason.endswith("only 40% of the applicable checks could run")

    @pytest.mark.parametrize(
        ("traces", "kind"),
        [([], Assumed), ([{"coherence": ASSUMED}], Assumed), ([{}], Unscored), ([{"x": ASSUMED}], Unscored)],
    )
    def test_session_without_evidence_is_assumed_or_unscored(self, traces: list[dict[str, Any]], kind: type) -> None:
        found = RELIABILITY.evaluate(view(*traces), context())
        assert isinstance(found, kind)
        assert (
            found.reason
            == {
                Assumed: "No evaluable traces." if traces else "No traces or signals to evaluate.",
                Unscored: "no trace of this session has content to evaluate",
            }[kind]
        )
        if isinstance(found, Unscored):
            assert (found.why, found.metadata["rests_on"]) == ("no_content", {})


class TestConsistency:
    def test_score_has_reason_coverage_and_metadata(self) -> None:
        traces = view(
            {"confidence": scored(0.9)},
            {"coherence": scored(0.5)},
            {"confidence": scored(0.4), "coherence": scored(0.5)},
        )
        found = CONSISTENCY.evaluate(traces, context(frozenset({"confidence", "coherence"}), judged=True))
        assert isinstance(found, Score)
        rms = found.metadata["raw_instability"]
        assert found.value == pytest.approx(1.0 - rms)
        assert found.coverage == 1.0
        assert list(found.metadata["per_trace_signals"]) == [f"{1:032x}", f"{3:032x}"]
        assert (found.metadata["total_traces_in_session"], found.metadata["traces_evaluated"]) == (3, 2)
        assert found.metadata["aggregation"] == {"method": "weighted_rms", "rms_value": rms}
        assert found.metadata["signal_weights"].keys() >= {"confidence", "coherence"}
        assert found.metadata["band"] == "high_instability"
        assert found.metadata["session_profile"] == "unreliable_and_unstable"
        assert found.reason.startswith("most uncertain: trace 3 of 3 (")
        assert found.reason.endswith(f"; instability of the session: {rms:.2f}")

    def test_rule_signals_change_the_profile_but_not_the_score(self) -> None:
        sure = {"confidence": scored(1.0), "response": scored(0.0)}
        known = [CONSISTENCY.evaluate(view(sure), context(extras=extras, judged=True)) for extras in (EXTRAS, ())]
        assert [found.metadata["session_profile"] for found in known if isinstance(found, Score)] == [
            "consistently_mediocre",
            "safe_and_smooth",
        ]
        assert [found.value for found in known if isinstance(found, Score)] == [1.0, 1.0]

    def test_profile_uses_the_configured_weights(self) -> None:
        traces = view({"confidence": scored(0.9), "coherence": scored(0.0)})
        known = [CONSISTENCY.evaluate(traces, context(weights={"coherence": w}, judged=True)) for w in (1.0, 0.1)]
        profiles = [found.metadata["session_profile"] for found in known if isinstance(found, Score)]
        assert len(set(profiles)) == 2, profiles

    def test_score_uses_the_configured_weights(self) -> None:
        traces = view({"confidence": scored(0.5), "coherence": scored(0.5)})
        known = [CONSISTENCY.evaluate(traces, context(weights={"coherence": w}, judged=True)) for w in (0.0, 1.0)]
        assert [found.value for found in known if isinstance(found, Score)] == [0.5, 0.25]
        assert [found.metadata["signal_weights"]["coherence"] for found in known if found] == [0.0, 1.0]

    @pytest.mark.parametrize(
        ("traces", "enabled", "reason"),
        [
            ([{"confidence": scored(0.5)}], KINDS - {"confidence"}, None),
            ([], KINDS, "No traces or signals to evaluate."),
            ([{"confidence": missing("not_sampled")}], KINDS, None),
            ([{"confidence": missing("timeout")}], KINDS, "too few traces with a score: confidence in 0 of 1"),
            ([{"confidence": ASSUMED}], KINDS, "No evaluable traces."),
            ([{"confidence": missing("no_content")}], KINDS, "no trace of this session has a confidence score"),
            (
                [{"confidence": ASSUMED, "coherence": scored(0.5)}],
                KINDS,
                "no trace of this session has a confidence score",
            ),
        ],
    )
    def test_session_without_confidence_scores_is_not_evaluated(
        self, traces: list[dict[str, Any]], enabled: frozenset[str], reason: str | None
    ) -> None:
        found = CONSISTENCY.evaluate(view(*traces), context(enabled, judged=True))
        assert (None if found is None else found.reason) == reason
        if isinstance(found, Unscored):
            assert found.why == "insufficient_evidence"
        if found is not None and traces:
            assert (found.metadata["traces_evaluated"], found.metadata["total_traces_in_session"]) == (0, len(traces))

    def test_partial_evidence_is_unscored_with_a_partial_score(self) -> None:
        traces = view({"confidence": scored(0.8)}, *[{"confidence": missing("timeout")}] * 2)
        found = CONSISTENCY.evaluate(traces, context(judged=True))
        assert isinstance(found, Unscored)
        assert found.metadata["partial_score"] == pytest.approx(0.8)
        assert found.coverage == pytest.approx(1 / 3)

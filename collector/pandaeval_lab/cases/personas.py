"""Writes personas and the prompt of a suite into its scenarios."""

from __future__ import annotations

from pandaeval_lab.cases.graders import CaseFault, some
from pandaeval_lab.cases.model import Case, Persona, Scenario, Suite


def with_users(suite: Suite) -> tuple[Suite, list[CaseFault]]:
    """Return the suite with complete scenarios, and a fault for each unknown persona."""
    faults: list[CaseFault] = []
    cases: list[Case] = []
    personas = suite.personas if isinstance(suite.personas, dict) else {}
    for at, case in enumerate(suite.cases):
        scenario = case.scenario
        if scenario is not None and scenario.persona is not None and scenario.persona not in personas:
            known = f"personas has {some([*personas])}" if personas else "the file has no personas"
            faults.append((("cases", at, "scenario", "persona"), f"there is no {scenario.persona}; {known}"))
        elif scenario is not None:
            played = _played(scenario, personas.get(scenario.persona or ""), suite.user_prompt)
            case = case.model_copy(update={"scenario": played})
        cases.append(case)
    return suite.model_copy(update={"cases": tuple(cases)}), faults


def _played(scenario: Scenario, persona: Persona | None, prompt: str | None) -> Scenario:
    fields: dict[str, object] = {"user_prompt": scenario.user_prompt or prompt}
    if persona is not None:
        fields["profile"] = " ".join(filter(None, (persona.profile, scenario.profile)))
        fields["knowledge"] = (*persona.knowledge, *scenario.knowledge)
    return scenario.model_copy(update=fields)

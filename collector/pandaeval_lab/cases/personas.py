"""Writes the persona and the prompt of a suite into a scenario."""

from __future__ import annotations

from pandaeval_lab.cases.model import Case, Persona, Suite


def with_user(case: Case, suite: Suite) -> Case:
    """Return the case with a complete scenario."""
    if case.scenario is None:
        return case
    scenario, persona = case.scenario, personas_of(suite).get(case.scenario.persona or "")
    fields: dict[str, object] = {"user_prompt": scenario.user_prompt or suite.user_prompt}
    if persona is not None:
        fields["profile"] = " ".join(filter(None, (persona.profile, scenario.profile)))
        fields["knowledge"] = (*persona.knowledge, *scenario.knowledge)
    return case.model_copy(update={"scenario": scenario.model_copy(update=fields)})


def personas_of(suite: Suite) -> dict[str, Persona]:
    return suite.personas if isinstance(suite.personas, dict) else {}

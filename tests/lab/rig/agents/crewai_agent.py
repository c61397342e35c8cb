"""CrewAI: one agent, a task per turn, optional OpenInference."""

from contextlib import suppress

from common import DESK, JOB, MODEL, telemetry


def instrument():
    """Enable both instrumentations; the framework's lacks model calls."""
    with suppress(ImportError):
        from openinference.instrumentation.crewai import CrewAIInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor

        CrewAIInstrumentor().instrument(skip_dep_check=True)
        OpenAIInstrumentor().instrument()


def main():
    with telemetry():
        instrument()
        # Imported after instrument(), because the instrumentations also wrap later imports.
        from crewai import LLM, Agent, Crew, Task
        from crewai.tools import tool

        model = LLM(model=f"openai/{MODEL}", base_url=JOB["base_url"], api_key="none")
        agent = Agent(
            role=DESK.agent,
            goal=DESK.instructions,
            backstory=DESK.instructions,
            llm=model,
            tools=[tool(function) for function in DESK.tools],
        )
        for text in JOB["turns"]:
            task = Task(description=text, expected_output="An answer to the customer.", agent=agent)
            print(Crew(agents=[agent], tasks=[task]).kickoff())


main()

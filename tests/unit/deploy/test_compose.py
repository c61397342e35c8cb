"""``deploy/compose``: valid, hardened, connected."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.config import load
from support.deploy import COMPOSE, DEPLOY, ROOT, check, mounts, program, read, run, services

_SERVICES = services()
_TEMPO = DEPLOY / "compose" / "tempo" / "compose.yaml"
_FILES = (COMPOSE, _TEMPO)
_CONFIG = read(DEPLOY / "compose" / "pandaeval.yaml")
_OTELCOL = read(DEPLOY / "compose" / "otelcol.yaml")
_DEFAULT = re.compile(r"\$\{env:\w+:-([^}]*)\}")


def _endpoint(text: str) -> tuple[str, int]:
    """Return host and port of an endpoint."""
    plain = _DEFAULT.sub(r"\1", text).removeprefix("http://").partition("/")[0]
    host, _, port = plain.rpartition(":")
    return host, int(port)


def _ports_of(service: str) -> set[int]:
    if service == "pandaeval":
        return {_endpoint(_CONFIG["server"][door])[1] for door in ("grpc", "http", "health")}
    if service == "otelcol":
        return {_endpoint(each["endpoint"])[1] for each in _OTELCOL["receivers"]["otlp"]["protocols"].values()}
    if service == "jaeger":
        return {int(option.rpartition(":")[2]) for option in _SERVICES["jaeger"]["command"] if "endpoint" in option}
    return {"prometheus": {9090}, "grafana": {3000}, "tempo": {3200, 4317}}[service]


def _all() -> dict[str, Any]:
    return {**_SERVICES, "tempo": read(_TEMPO)["services"]["tempo"]}


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.parent.name))
def test_compose_files_match_the_schema(path: Path) -> None:
    check("check_jsonschema", "--builtin-schema", "vendor.compose-spec", path)


@pytest.mark.parametrize("files", [(COMPOSE,), _FILES], ids=["alone", "with tempo"])
def test_docker_compose_accepts_the_files(files: tuple[Path, ...]) -> None:
    options = [part for path in files for part in ("-f", path)]
    run(program("docker-compose"), *options, "config", "--quiet")


@pytest.mark.parametrize("name", sorted(_all()))
def test_mounted_files_exist(name: str) -> None:
    found = dict(mounts(_all()[name], COMPOSE.parent))
    assert [str(path) for path in found if not path.exists()] == []


@pytest.mark.parametrize("name", sorted(_all()))
def test_files_that_commands_name_are_mounted(name: str) -> None:
    targets = [target for _, target in mounts(_all()[name], COMPOSE.parent)]
    named = re.findall(r"/etc/[\w./-]+", " ".join(_all()[name].get("command", ())))
    assert [path for path in named if path not in targets] == []


@pytest.mark.parametrize("name", sorted(_all()))
def test_services_are_hardened(name: str) -> None:
    service = _all()[name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), f"{name} is published to other machines"


@pytest.mark.parametrize("name", sorted(name for name, service in _all().items() if "image" in service))
def test_images_are_pinned(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+$", _all()[name]["image"])


def test_the_image_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert _SERVICES["pandaeval"]["image"] == f"pandaeval-collector:{version}"


def test_services_wait_for_health_only_if_there_is_a_health_check() -> None:
    with_check = {name for name, service in _SERVICES.items() if "healthcheck" in service} | {"pandaeval"}
    for name, service in _SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in _SERVICES
            assert how["condition"] == ("service_healthy" if other in with_check else "service_started"), name


@pytest.mark.parametrize("name", sorted(name for name, service in _all().items() if "ports" in service))
def test_services_listen_on_their_published_ports(name: str) -> None:
    for published in _all()[name]["ports"]:
        assert int(published.rpartition(":")[2]) in _ports_of(name)


def test_every_endpoint_has_a_service_that_listens_on_its_port() -> None:
    agent = _SERVICES["agent"]["environment"]
    exporters = _OTELCOL["exporters"] | read(DEPLOY / "compose" / "tempo" / "otelcol.yaml")["exporters"]
    endpoints = [agent["PANDAEVAL_ENDPOINT"], agent["OTEL_EXPORTER_OTLP_ENDPOINT"]]
    endpoints += [_CONFIG["exporters"]["otlp"]["endpoint"]]
    endpoints += [exporter["endpoint"] for exporter in exporters.values() if "endpoint" in exporter]
    for service, port in map(_endpoint, endpoints):
        assert port in _ports_of(service), f"{service} does not listen on {port}"


def test_prometheus_takes_otlp_and_keeps_exemplars() -> None:
    command = _SERVICES["prometheus"]["command"]
    assert {"--web.enable-otlp-receiver", "--enable-feature=exemplar-storage"} <= set(command)


def test_the_collectors_configuration_is_valid() -> None:
    config = load(DEPLOY / "compose" / "pandaeval.yaml", {})
    assert config.exporters.otlp.endpoint == "otelcol:4317"
    grace = int(_SERVICES["pandaeval"]["stop_grace_period"].removesuffix("s"))
    assert grace >= 45, "a stop closes listeners, sends results and hands over: see docs/operate/deploy.md"


def test_the_environment_of_a_judge_is_valid() -> None:
    lines = (DEPLOY / "compose" / "judge.env.example").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    config = load(DEPLOY / "compose" / "pandaeval.yaml", variables)
    assert (config.judge.model, config.judge.daily_usd) == ("openai/gpt-4o-mini", 1.0)

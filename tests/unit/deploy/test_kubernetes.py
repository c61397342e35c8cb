"""``deploy/kubernetes`` and ``deploy/helm``: valid and hardened."""

from __future__ import annotations

import asyncio
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pandaeval_collector.base.telemetry import INSTRUMENTS
from pandaeval_collector.config import Config, load
from support.chart import CHART, GATEWAY, README, gateway, readme, template
from support.deploy import DEPLOY, check, program, read, run

_ALL = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
_MANIFESTS = [path for path in _ALL if path.stem != "sidecar-minimal"]
"""The permanent configuration; see tests/unit/pages/test_recipe_pages.py for the trial."""
_TLS = ("--set", "insecureBind=false,tls.secretName=t,token.secretName=k")
_KAFKA = (
    "--set",
    "config.kafka.brokers=k:9092,config.kafka.topic=spans,persistence.enabled=false,autoscaling.enabled=true",
)
_SETS = {
    "defaults": (),
    "tls and token": _TLS,
    "mutual tls": ("--set", "insecureBind=false,tls.secretName=t,tls.clientCa=true"),
    "judge": ("--set", "judge.secretName=j,config.judge.model=openai/gpt-4o-mini,env[0].name=A,env[0].value=b"),
    "kafka": _KAFKA,
    "everything": (
        *_TLS,
        "--set",
        "replicas=3,serviceMonitor.enabled=true,persistence.storageClass=fast,image.tag=v1,image.pullSecrets={a}",
        "--set-json",
        'tolerations=[{"operator":"Exists"}]',
        "--set-json",
        'networkPolicy.from=[{"namespaceSelector":{"matchLabels":{"a":"b"}}}]',
    ),
}
_NEEDED = 45
"""Seconds for a stop: docs/operate/deploy.md#stopping."""
_REMARK = 1
"""Helm's severity below warning."""


def _documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def _by_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (document for document in documents if document["kind"] == kind)
    return found


def _pods(documents: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if document["kind"] in ("Deployment", "StatefulSet"):
            yield document["spec"]["template"]["spec"]


def _collector(pod: dict[str, Any]) -> dict[str, Any]:
    containers = pod.get("initContainers", []) + pod["containers"]
    (found,) = (each for each in containers if each["image"].startswith("pandaeval-collector:"))
    return dict(found)


def _configured(documents: list[dict[str, Any]], folder: Path) -> Config:
    path = folder / "config.yaml"
    path.write_text(_by_kind(documents, "ConfigMap")["data"]["config.yaml"])
    return load(path, {})


def test_the_chart_passes_helm_lint() -> None:
    run(program("helm"), "lint", "--strict", CHART)


def test_the_chart_passes_the_lint_of_the_helm_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Works without the Helm program."""
    helm = pytest.importorskip("helm_sdkpy", reason="pip install --no-deps --ignore-requires-python helm-sdkpy")
    monkeypatch.setenv("HOME", str(tmp_path))

    found = asyncio.run(helm.Lint(helm.Configuration()).run(str(CHART)))

    assert found["TotalChartsLinted"] == 1
    assert not found["Errors"]
    assert [each for each in found["Messages"] if each["Severity"] > _REMARK] == []


@pytest.mark.parametrize("options", _SETS.values(), ids=_SETS)
def test_rendered_charts_are_valid_for_kubernetes(options: tuple[str, ...], tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(template(*options))
    check("kubernetes_validate", "--strict", "--quiet", "--no-warn", manifest)
    config = _configured(_documents(manifest.read_text()), tmp_path)
    assert config.server.insecure_bind == ("insecureBind=false" not in str(options))


def test_collectors_on_kafka_are_scaled_by_lag() -> None:
    """KEDA sets the number of replicas, not Helm."""
    documents = _documents(template(*_KAFKA))
    workers = _by_kind(documents, "StatefulSet")
    assert "replicas" not in workers["spec"]
    assert "volumeClaimTemplates" not in workers["spec"]
    (pod,) = _pods(documents)
    instance = "PANDAEVAL_KAFKA__OPTIONS__GROUP__INSTANCE__ID"
    named = {"name": instance, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert named in _collector(pod)["env"]
    scaled = _by_kind(documents, "ScaledObject")["spec"]
    assert scaled["scaleTargetRef"]["name"] == workers["metadata"]["name"]
    ours = '{namespace="pandaeval",pod=~"pandaeval-[0-9]+"}'
    asked = [trigger["metadata"] for trigger in scaled["triggers"]]
    assert [each["query"] for each in asked] == [f"sum(pandaeval_log_lag{ours})", f"max(pandaeval_lag_seconds{ours})"]
    assert {type(value) for each in asked for value in each.values()} == {str}
    assert {"pandaeval.log.lag", "pandaeval.lag"} <= INSTRUMENTS.keys()


@pytest.mark.parametrize("path", _ALL, ids=lambda path: str(path.stem))
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_manifests_are_valid_for_kubernetes(path: Path, version: str) -> None:
    check("kubernetes_validate", "--strict", "--quiet", "-k", version, path)


def test_the_validation_finds_an_unknown_field(tmp_path: Path) -> None:
    wrong = tmp_path / "manifest.yaml"
    wrong.write_text(GATEWAY.read_text().replace("automountServiceAccountToken", "autoMountServiceAccountToken"))
    with pytest.raises(AssertionError, match="autoMountServiceAccountToken"):
        check("kubernetes_validate", "--strict", "--quiet", wrong)


def test_the_gateway_manifest_equals_the_rendered_chart() -> None:
    """Fix: `python tests/support/chart.py`."""
    assert GATEWAY.read_text() == gateway()


def test_the_charts_page_is_up_to_date() -> None:
    """Fix: `python tests/support/chart.py`."""
    assert README.read_text() == readme()


def test_an_upgrade_changes_no_immutable_field() -> None:
    """The values are those of version 0.1.0."""
    stateful = _by_kind(_documents(GATEWAY.read_text()), "StatefulSet")
    spec, (claim,) = stateful["spec"], stateful["spec"]["volumeClaimTemplates"]
    labels = {"app.kubernetes.io/name": "pandaeval", "app.kubernetes.io/instance": "pandaeval"}
    assert stateful["metadata"]["name"] == "pandaeval"
    assert (spec["serviceName"], spec["podManagementPolicy"]) == ("pandaeval-headless", "Parallel")
    assert spec["selector"] == {"matchLabels": labels}
    assert claim == {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
    }


def test_the_upgrade_notes_name_resources_and_values_of_the_chart() -> None:
    notes = readme().partition("## Upgrade")[2].partition("## Values")[0]
    stateful = _by_kind(_documents(GATEWAY.read_text()), "StatefulSet")
    name, (claim,) = stateful["metadata"]["name"], stateful["spec"]["volumeClaimTemplates"]
    assert set(re.findall(r"statefulset (\w+)", notes)) == {name}
    assert set(re.findall(r"pvc ([a-z-]+)-(?:\d|NUMBER)", notes)) == {f"{claim['metadata']['name']}-{name}"}
    (selected,) = re.findall(r"pvc -l (\S+)=(\S+)", notes)
    assert selected in stateful["spec"]["selector"]["matchLabels"].items()
    for value in re.findall(r"`([a-z]+(?:\.[a-zA-Z]+)+)`", notes):
        found: Any = read(CHART / "values.yaml")
        for part in value.split(".")[: 1 if value.startswith("config.") else None]:
            found = found[part]


@pytest.mark.parametrize(("options", "is_shown"), [((), False), (("--is-upgrade",), True)], ids=["install", "upgrade"])
def test_helm_notes_mention_removed_keys_only_on_an_upgrade(
    options: tuple[str, ...], is_shown: bool, tmp_path: Path
) -> None:
    """Helm prints notes only with a cluster, so a copy of the chart has them as a template."""
    chart = tmp_path / "pandaeval"
    shutil.copytree(CHART, chart)
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "notes.yaml").write_text("notes: |\n" + textwrap.indent(notes, "  "))
    shown = run(
        program("helm"), "template", "x", chart, "--kube-version", "1.34.0", "-s", "templates/notes.yaml", *options
    )
    assert ("removed keys of the configuration" in shown) == is_shown


def test_each_documented_upgrade_takes_new_defaults_of_the_chart() -> None:
    pages = [README, *(DEPLOY.parent / "docs").rglob("*.md")]
    commands = [each for page in pages for each in re.findall(r"^helm upgrade (?:.*\\\n)*.*$", page.read_text(), re.M)]
    assert len(commands) >= 3
    assert [command for command in commands if "--reset-then-reuse-values" not in command] == []


def test_the_default_values_match_their_schema() -> None:
    check("check_jsonschema", "--schemafile", CHART / "values.schema.json", CHART / "values.yaml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("insecureBind=false", "set tls.secretName"),
        ("networkPolicy.enabled=false", "a network policy is required"),
        ("replicas=0", "replicas"),
        ("config.server.grpc=0.0.0.0:1", "config"),
        ("presistence.size=1Gi", "presistence"),
        ("terminationGracePeriodSeconds=10", "terminationGracePeriodSeconds"),
        ("persistence.enabled=false", "config.kafka.topic"),
        ("autoscaling.enabled=true", "config.kafka.topic"),
    ],
)
def test_invalid_values_are_refused(options: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        template("--set", options)


@pytest.mark.parametrize("path", _MANIFESTS, ids=lambda path: str(path.stem))
def test_pods_are_hardened(path: Path) -> None:
    for pod in _pods(_documents(path.read_text())):
        assert not pod["automountServiceAccountToken"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod.get("initContainers", []) + pod["containers"]:
            context = container["securityContext"]
            assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} <= set(container["resources"])


@pytest.mark.parametrize("path", _MANIFESTS, ids=lambda path: str(path.stem))
def test_the_store_temporary_folder_and_configuration_are_mounted(path: Path, tmp_path: Path) -> None:
    documents = _documents(path.read_text())
    config = _configured(documents, tmp_path)
    for pod in _pods(documents):
        mounted = {mount["mountPath"] for mount in _collector(pod)["volumeMounts"]}
        assert {config.store.path, "/tmp", "/etc/pandaeval/config.yaml"} <= mounted
        assert pod["securityContext"]["fsGroup"] == 10001


@pytest.mark.parametrize("path", _MANIFESTS, ids=lambda path: str(path.stem))
def test_probes_reach_the_health_listener(path: Path, tmp_path: Path) -> None:
    documents = _documents(path.read_text())
    host, _, port = _configured(documents, tmp_path).server.health.rpartition(":")
    assert host == "0.0.0.0"  # the kubelet connects from outside the pod
    for pod in _pods(documents):
        container = _collector(pod)
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        for probe, path_asked in (("startupProbe", "/readyz"), ("livenessProbe", "/healthz")):
            asked = container[probe]["httpGet"]
            assert (asked["path"], ports[asked["port"]]) == (path_asked, int(port))


@pytest.mark.parametrize("path", _MANIFESTS, ids=lambda path: str(path.stem))
def test_the_grace_period_is_long_enough_for_a_stop(path: Path) -> None:
    for pod in _pods(_documents(path.read_text())):
        pause = _collector(pod).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
        assert pod["terminationGracePeriodSeconds"] - int(pause[1]) >= _NEEDED


def test_the_sidecar_listens_for_otlp_only_in_its_pod(tmp_path: Path) -> None:
    config = _configured(_documents((DEPLOY / "kubernetes" / "sidecar.yaml").read_text()), tmp_path)
    assert (config.server.grpc, config.server.http) == (Config().server.grpc, Config().server.http)
    assert config.store.on_shutdown == "decide", "the disk is deleted with the pod"


def test_the_volume_is_larger_than_the_limit_of_the_store() -> None:
    size = re.fullmatch(r"(\d+)Gi", read(CHART / "values.yaml")["persistence"]["size"])
    assert size is not None
    assert int(size[1]) << 30 > 1.5 * Config().store.max_bytes

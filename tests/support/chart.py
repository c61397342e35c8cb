"""Generates the Helm chart's README and the gateway's plain manifest.

``python tests/support/chart.py`` writes both; the manifest needs helm.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.deploy import DEPLOY, ROOT, program, run

CHART = DEPLOY / "helm" / "pandaeval"
README, GATEWAY = CHART / "README.md", DEPLOY / "kubernetes" / "gateway.yaml"
KUBE = "1.34.0"
_NAMESPACE = "pandaeval"
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
_HEAD = f"""\
# Helm chart of the PandaEval collector

The chart installs a gateway: a StatefulSet of collectors. Each collector stores acknowledged spans on its own volume.

```
docker build -f deploy/Dockerfile -t REGISTRY/pandaeval-collector:{VERSION} .
docker push REGISTRY/pandaeval-collector:{VERSION}
helm install pandaeval deploy/helm/pandaeval --namespace pandaeval --create-namespace \\
  --set image.repository=REGISTRY/pandaeval-collector \\
  --set config.exporters.otlp.endpoint=otel-collector.observability:4317
```

By default, the chart configures no TLS and no token. A network policy admits only pods of the same namespace to OTLP,
page and API. To turn on TLS and a token, run:

```
kubectl -n pandaeval create secret tls pandaeval-tls --cert=tls.crt --key=tls.key
kubectl -n pandaeval create secret generic pandaeval-token --from-literal=token="$(openssl rand -hex 32)"
helm upgrade pandaeval deploy/helm/pandaeval --namespace pandaeval --reset-then-reuse-values \\
  --set insecureBind=false --set tls.secretName=pandaeval-tls --set token.secretName=pandaeval-token
```

See [Deploy](../../../docs/operate/deploy.md) for sizing, backup and troubleshooting.

## Upgrade

Build and push the new image. Take a [backup](../../../docs/operate/backup-upgrade.md). Then run:

```
helm upgrade pandaeval deploy/helm/pandaeval --namespace pandaeval --reset-then-reuse-values
```

- **Values.** `--reset-then-reuse-values` (Helm 3.14 or later) keeps your values and takes new defaults from the chart.
  `--reuse-values` keeps the old defaults too, so new values of the chart are missing. If you set `image.tag`, also set
  the new tag.
- **Configuration.** Before the upgrade, write `config` from `helm get values pandaeval --namespace pandaeval` to a
  file, and run `pandaeval config check FILE` with the new version. A collector with a removed key does not start.
- **Order.** Kubernetes replaces one collector at a time, the highest number first, and waits until it is ready. If a
  new collector does not start, the collectors with lower numbers keep the old version. Senders retry while a collector
  restarts.
- **Volumes.** Each collector keeps its volume. If you change `persistence.enabled`, `persistence.size` or
  `persistence.storageClass`, the upgrade fails, because Kubernetes does not change these fields of a StatefulSet. First
  delete the StatefulSet without its pods and volumes:
  `kubectl -n pandaeval delete statefulset pandaeval --cascade=orphan`. If the storage class allows it, enlarge existing
  volumes with `kubectl -n pandaeval patch pvc data-pandaeval-0 -p
  '{{"spec":{{"resources":{{"requests":{{"storage":"40Gi"}}}}}}}}'`.
- **Replicas.** If you raise `replicas`, some open traces are split between two collectors, unless they share a Kafka
  topic. If you lower `replicas`, the collectors with the highest numbers stop, and their volumes stay. To send their
  unsent results, raise `replicas` again. To delete a volume, run `kubectl -n pandaeval delete pvc
  data-pandaeval-NUMBER`.

Version 0.2 does not open a store of version 0.1. Let the collectors [finish their work, and export the
spans](../../../docs/operate/upgrade.md) that you need. Then stop the collectors, delete their volumes and upgrade:

```
kubectl -n pandaeval scale statefulset pandaeval --replicas=0
kubectl -n pandaeval delete pvc -l app.kubernetes.io/instance=pandaeval
helm upgrade pandaeval deploy/helm/pandaeval --namespace pandaeval --reset-then-reuse-values
```

With Kafka, also set `config.kafka.topic` (0.1 read `otlp_spans` by default).

## Values

`python tests/support/chart.py` generates this file from the comments in `values.yaml`.

"""
_MANIFEST_HEAD = f"""\
# The Helm chart with its default values, for use without Helm. `python tests/support/chart.py` generates this file.
# Write your image and config.exporters.otlp.endpoint into it, and then run kubectl apply -f gateway.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: {_NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


def readme() -> str:
    return _HEAD + "".join(f"- `{name}` (`{default}`): {text}".rstrip(": ") + "\n" for name, default, text in _rows())


def gateway() -> str:
    """Return the manifest, or skip the test without helm."""
    return _MANIFEST_HEAD + template()


def template(*options: str) -> str:
    """Render the chart with extra ``helm template`` options."""
    common = ("--namespace", _NAMESPACE, "--kube-version", KUBE)
    return run(program("helm"), "template", "pandaeval", CHART, *common, *options)


def _rows() -> list[tuple[str, str, str]]:
    """Return (dotted name, JSON default, comment) of each value, in file order."""
    rows, comment, path = [], "", [""]
    lines = (CHART / "values.yaml").read_text().splitlines()
    values = yaml.safe_load("\n".join(lines))
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            comment = f"{comment} {text.lstrip('# -')}".strip()
            continue
        named = re.match(r"^( *)([A-Za-z]\w*):", line)
        if named and len(named[1]) <= 2:
            path = [*path[: len(named[1]) // 2], named[2]]
            found = values
            for part in path:
                found = found[part]
            if comment or not _is_section(lines, path, found):
                rows.append((".".join(path), json.dumps(found), comment))
        comment = ""
    return [row for row in rows if not any(row[0].startswith(f"{other[0]}.") and other[2] for other in rows)]


def _is_section(lines: list[str], path: list[str], value: object) -> bool:
    return len(path) == 1 and isinstance(value, dict) and bool(value) and f"{path[0]}:" in lines


if __name__ == "__main__":
    README.write_text(readme())
    GATEWAY.write_text(gateway())

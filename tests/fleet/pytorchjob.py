"""pytorchjob.py: holds the PyTorchJob of docs/guide/fleet.md against its schemas, by hand.

Owns nothing but the comparison: every name must be one of Kubeflow's models (package `kubeflow-training`), and the container with
its volumes must be a Pod by Kubernetes' own schema (`kubernetes-validate`). Nothing is run.

  pip install kubeflow-training kubernetes-validate pyyaml && python3 tests/fleet/pytorchjob.py
"""
import pathlib, re, sys

import kubernetes_validate, yaml
from kubeflow.training import models

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/guide/fleet.md"


def strict(kind, value, at):
    """Every name of `value` must be one of the model's, down to where Kubernetes' own models begin."""
    listed = re.match(r"(list|dict).*?([A-Z]\w+)\]?\)?$", kind)
    if listed:
        kind, values = listed[2], value if isinstance(value, list) else value.values()
        return [wrong for one in values for wrong in strict(kind, one, at)]
    model = getattr(models, kind, None)
    if model is None or not isinstance(value, dict):
        return []
    names = {name: attribute for attribute, name in model.attribute_map.items()}
    found = [f"{at}.{name}: {kind} has no such field" for name in value if name not in names]
    for name in value.keys() & names.keys():
        found += strict(model.openapi_types[names[name]], value[name], f"{at}.{name}")
    return found


(text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
job = yaml.safe_load(text)
wrong = strict("KubeflowOrgV1PyTorchJob", job, "job")
replicas = job["spec"]["pytorchReplicaSpecs"]
wrong += [f"{name}: no container is called pytorch" for name, one in replicas.items()
          if not any(c["name"] == "pytorch" for c in one["template"]["spec"]["containers"])]
if wrong:
    sys.exit("\n".join(wrong))
for name, one in replicas.items():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.lower()}, **one["template"]}
    kubernetes_validate.validate(pod, "1.32", strict=True)
print(f"{', '.join(replicas)}: valid")

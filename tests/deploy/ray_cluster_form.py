"""Form of a RayCluster: KubeRay's own fields, written down by hand from its API reference of `ray.io/v1`.

Fields that came after that reference are not compared with any source: `authOptions`, `upgradeStrategy`, and `labels`,
`resources` and `idleTimeoutSeconds` of a group. The definition that clusters use is 900 kB, nearly all of it the pod
template, five times. Pods here are compared with the schema of Kubernetes instead.
"""

from typing import Any

Schema = dict[str, Any]


def _closed(required: list[str], **fields: Schema) -> Schema:
    """Return the form of an object with these fields only."""
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


ANY: Schema = {"type": "object"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
WORD: Schema = {"type": "string"}
ANYS: Schema = {"type": "array", "items": ANY}
WORDS: Schema = {"type": "object", "additionalProperties": WORD}

AUTOSCALER = _closed(
    [],
    env=ANYS,
    envFrom=ANYS,
    idleTimeoutSeconds=COUNT,
    image=WORD,
    imagePullPolicy=WORD,
    resources=ANY,
    securityContext=ANY,
    upscalingMode={"enum": ["Default", "Aggressive", "Conservative"]},
    version={"enum": ["v1", "v2"]},
    volumeMounts=ANYS,
)
HEAD = _closed(
    ["rayStartParams", "template"],
    enableIngress=FLAG,
    headService=ANY,
    labels=WORDS,
    rayStartParams=WORDS,
    resources=WORDS,
    serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]},
    template=ANY,
)
WORKERS = _closed(
    ["groupName", "maxReplicas", "minReplicas", "rayStartParams", "template"],
    groupName=WORD,
    idleTimeoutSeconds=COUNT,
    labels=WORDS,
    maxReplicas=COUNT,
    minReplicas=COUNT,
    numOfHosts=COUNT,
    rayStartParams=WORDS,
    replicas=COUNT,
    resources=WORDS,
    scaleStrategy=ANY,
    suspend=FLAG,
    template=ANY,
)
RAY_CLUSTER = _closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata=ANY,
    spec=_closed(
        ["headGroupSpec"],
        authOptions=ANY,
        autoscalerOptions=AUTOSCALER,
        enableInTreeAutoscaling=FLAG,
        gcsFaultToleranceOptions=ANY,
        headGroupSpec=HEAD,
        headServiceAnnotations=WORDS,
        managedBy=WORD,
        rayVersion=WORD,
        suspend=FLAG,
        upgradeStrategy=ANY,
        workerGroupSpecs={"type": "array", "items": WORKERS},
    ),
)

"""The files of deploy/kubernetes have the forms of Kubernetes and KubeRay, and make the settings that everlog needs."""

import copy
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from everlog.interfaces.cli.command_parser import parser
from everlog.store.stores.mounts import Mount, StoreIdentity, sharing_fault, unsafe
from tests.cluster.test_ray_cluster_yaml import environment as settings_of
from tests.cluster.test_ray_cluster_yaml import read
from tests.deploy.ray_cluster_form import RAY_CLUSTER
from tests.tidy.parsed_source import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
KUBERNETES = "1.34"
STORE = "/var/lib/everlog/store"
OWN = {"RAY_ADDRESS", "EVERLOG_RUNTIME", "HOME", "RAY_AUTH_TOKEN"}
"""Variables that the cluster files set in another way, or do not need."""
Object = dict[str, Any]


def objects() -> list[Object]:
    """Return every object of the folder's files that kustomization.yaml lists."""
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    return [made for name in listed for made in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))]


def of_kind(kind: str) -> list[Object]:
    return [made for made in objects() if made["kind"] == kind]


@pytest.fixture
def cluster() -> Object:
    (made,) = of_kind("RayCluster")
    return made


def pods(cluster: Object) -> dict[str, Object]:
    """Return the specification of each group's pods, by the group's name."""
    spec = cluster["spec"]
    groups = {"headgroup": spec["headGroupSpec"]} | {group["groupName"]: group for group in spec["workerGroupSpecs"]}
    return {name: group["template"]["spec"] for name, group in groups.items()}


def containers(cluster: Object) -> Iterator[tuple[str, Object]]:
    """Yield each container with the name of its group."""
    for group, pod in pods(cluster).items():
        yield from ((group, container) for container in pod["containers"])


def variables(container: Object) -> dict[str, str]:
    """Return the variables of a container that have a value here."""
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def validate(made: Object) -> None:
    """Compare an object with the form of its kind. Raises ValidationError."""
    if made["kind"] == "RayCluster":
        jsonschema.validate(made, RAY_CLUSTER)
        for name, pod in pods(made).items():
            validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})
    else:
        kubernetes_validate.validate(made, KUBERNETES, strict=True)


def test_every_file_is_listed() -> None:
    """Each file of the folder is a resource of kustomization.yaml."""
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(path.name for path in FOLDER.iterdir())


def test_every_object_has_its_form() -> None:
    """Each object passes the strict schema of its kind, pod templates of the cluster included."""
    for made in objects():
        validate(made)
    assert len(objects()) == 13


WRONG = [
    ("spec.maxWorkers", 3),
    ("spec.autoscalerOptions.version", "v3"),
    ("spec.workerGroupSpecs.0.minReplicas", "one"),
    ("spec.headGroupSpec.rayStartParams.num-cpus", 0),
    ("spec.headGroupSpec.template.spec.containers.0.livenesProbe", {}),
    ("spec.workerGroupSpecs.1.template.spec.volumes.0.persistentVolumeClaim", {}),
]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=[path for path, _ in WRONG])
def test_a_wrong_field_is_found(cluster: Object, path: str, value: Any) -> None:
    """An unknown key, a value of another type and a missing name are refused, in KubeRay's part and in the pods."""
    broken = copy.deepcopy(cluster)
    *way, last = path.split(".")
    place: Any = broken
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        validate(broken)


def test_kustomize_builds_it() -> None:
    """`kubectl kustomize` makes the objects, all in one namespace, with the image's whole name."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    run = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stderr
    made = list(yaml.safe_load_all(run.stdout))
    assert len(made) == len(objects())
    spaced = [one for one in made if one["kind"] not in ("Namespace", "PersistentVolume")]
    assert {one["metadata"]["namespace"] for one in spaced} == {"everlog"}
    assert "image: everlog\n" not in run.stdout


def test_rays_autoscaler_reads_it(cluster: Object) -> None:
    """Ray's autoscaler finds agents' workers with as many slots as on AWS, and none on the head and the servers."""
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

    cluster["metadata"]["namespace"] = "everlog"
    types = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    aws = read("aws")["available_node_types"]["agents"]
    slots = {name: kind["resources"].get("agent_slot") for name, kind in types.items()}
    assert slots == {"headgroup": None, "agents": aws["resources"]["agent_slot"], "servers": None}
    found = types["agents"]
    assert (found["min_workers"], found["max_workers"]) == (aws["min_workers"], aws["max_workers"])
    assert [types[name]["resources"]["CPU"] for name in ("headgroup", "servers")] == [0, 0]
    assert types["servers"]["min_workers"] == types["servers"]["max_workers"] > 1


@pytest.mark.parametrize("group", ["headgroup", "agents", "servers"])
def test_ray_has_the_settings_of_the_cluster_files(cluster: Object, group: str) -> None:
    """Ray's processes have the variables that they have on AWS, with the same values but for the place of the store."""
    first = pods(cluster)[group]["containers"][0]
    found = {name: value for name, value in variables(first).items() if name not in OWN}
    expected = settings_of(read("aws"), "head" if group == "headgroup" else "worker")
    assert found.pop("EVERLOG_STORE") == STORE
    assert expected.pop("EVERLOG_STORE")
    assert found == expected


def test_the_store_is_mounted_so_that_hosts_start() -> None:
    """The volume's options are those that everlog asks of NFS on several machines, and the claim is for that volume."""
    (volume,) = of_kind("PersistentVolume")
    (claim,) = of_kind("PersistentVolumeClaim")
    mount = Mount(STORE, "nfs4", "server:/", frozenset(volume["spec"]["mountOptions"]))
    sights = [StoreIdentity(STORE, node, node, 1, 2, "store", mount) for node in ("one", "two")]
    assert not unsafe(mount)
    assert sharing_fault(sights) == ""
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == volume["spec"]["accessModes"] == ["ReadWriteMany"]


def test_every_container_is_closed(cluster: Object) -> None:
    """A container has no rights, a read-only file system, a limit of memory, the store, and secrets by reference."""
    for group, container in containers(cluster):
        closed = container["securityContext"]
        assert (closed["readOnlyRootFilesystem"], closed["allowPrivilegeEscalation"]) == (True, False), group
        assert closed["capabilities"] == {"drop": ["ALL"]}
        assert closed["runAsUser"] == 10001, "the user of deploy/Dockerfile"
        assert "memory" in container["resources"]["limits"]
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", STORE}
        held = {one["name"] for one in container["env"] if "valueFrom" in one}
        assert held == {"RAY_AUTH_TOKEN"}
        assert variables(container)["RAY_AUTH_MODE"] == "token"
        assert not [name for name in variables(container) if re.search("KEY|SECRET|PASSWORD", name)]
    assert of_kind("Secret") == []


def test_every_container_is_watched(cluster: Object) -> None:
    """A container is asked if it lives and if it is ready; the server by the name that it answers to."""
    for _, container in containers(cluster):
        assert container["livenessProbe"]["httpGet"] != container["readinessProbe"]["httpGet"] or (
            container["livenessProbe"]["failureThreshold"] > container["readinessProbe"]["failureThreshold"]
        )
    (server,) = [container for _, container in containers(cluster) if container["name"] == "everlog-serve"]
    arguments = parser().parse_args(server["args"])
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz"), ("startupProbe", "/livez")):
        asked = server[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, arguments.port)
        assert [header["value"] for header in asked["httpHeaders"]] == arguments.hostname
    assert variables(server)["RAY_ADDRESS"].startswith(f"{cluster['metadata']['name']}-head-svc:")


def test_a_worker_has_time_to_leave(cluster: Object) -> None:
    """A worker leaves Ray before its processes are ended, its agents before that, and it has more time for both than
    they may take.
    """
    for group in ("agents", "servers"):
        pod = pods(cluster)[group]
        command = " ".join(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"])
        seconds = [int(number) for number in re.findall(r"(?:sleep|timeout|--grace-period) (\d+)", command)]
        assert "ray stop" in command
        assert ("everlog cluster drain" in command) is (group == "agents")
        assert 0 < sum(seconds) < pod["terminationGracePeriodSeconds"]


def test_selectors_meet_pods(cluster: Object) -> None:
    """Services, budgets and network policies name the cluster and groups that exist."""
    groups = set(pods(cluster))
    (service,) = of_kind("Service")
    selectors = [service["spec"]["selector"]]
    selectors += [made["spec"]["selector"]["matchLabels"] for made in of_kind("PodDisruptionBudget")]
    policies = {made["metadata"]["name"]: made["spec"] for made in of_kind("NetworkPolicy")}
    assert policies["everlog-closed"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    selectors += [policies[name]["podSelector"]["matchLabels"] for name in ("everlog-cluster", "everlog-clients")]
    for selector in selectors:
        assert selector["ray.io/cluster"] == cluster["metadata"]["name"]
        assert selector.get("ray.io/group", "servers") in groups
    (opened,) = policies["everlog-clients"]["ingress"]
    assert opened["ports"] == [{"protocol": "TCP", "port": service["spec"]["ports"][0]["targetPort"]}]


def test_the_image_has_what_the_files_name(cluster: Object) -> None:
    """Programs that the files start by path are in the image, where deploy/Dockerfile puts them."""
    image = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "'ray[default]'" in image, "the autoscaler and the probes of Ray need it"
    assert "USER 10001" in image
    named = set(re.findall(r"/opt/\S+/(\w+)", yaml.safe_dump(cluster)))
    assert named == {"everlog", "ray"}
    assert "/opt/everlog/bin/ray /usr/local/bin" in image, "KubeRay's shell may have a path of its own"

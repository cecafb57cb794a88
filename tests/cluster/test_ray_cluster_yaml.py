"""The two cluster files pass Ray's own validator and make the same settings for everlog."""

import copy
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from everlog.store.stores.mounts import Mount, StoreIdentity, sharing_fault, unsafe
from tests.tidy.parsed_source import ROOT

FILES = {"aws": ROOT / "ray_cluster.yaml", "local": ROOT / "deploy" / "on_premise.yaml"}
ROLES = ("head", "worker")
Config = dict[str, Any]


def read(provider: str) -> Config:
    return yaml.safe_load(FILES[provider].read_text(encoding="utf-8"))


@pytest.fixture(params=FILES)
def config(request: pytest.FixtureRequest) -> Config:
    return read(request.param)


@pytest.fixture
def aws() -> Config:
    return read("aws")


def validate(config: Config) -> None:
    """Run the checks that `ray up` makes before it calls the provider, offline."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(copy.deepcopy(config)))


def start_of(config: Config, role: str) -> str:
    return config[f"{role}_start_ray_commands"][-1]


def environment(config: Config, role: str) -> dict[str, str]:
    """Return the settings of `ray start`, by name."""
    words = shlex.split(start_of(config, role).split("set +a;")[1].split("ray start")[0])
    return dict(word.split("=", 1) for word in words)


def flags(config: Config, role: str) -> dict[str, str]:
    """Return the options of `ray start`."""
    words = shlex.split(start_of(config, role).split("ray start")[1])
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def mounting(config: Config) -> tuple[list[str], str]:
    """Return the options with which the store is mounted, and the mount point."""
    (command,) = [command for command in config["setup_commands"] if "mount -t nfs4" in command]
    words = shlex.split(command)
    return words[words.index("-o") + 1].split(","), words[-1]


def test_ray_accepts_it(config: Config) -> None:
    """`ray up` accepts the file."""
    validate(config)


def test_ray_refuses_a_typo(config: Config) -> None:
    """The validator refuses a misspelt key, so it is really run."""
    with pytest.raises(jsonschema.ValidationError, match="max_wrokers"):
        validate({**config, "max_wrokers": 3})


def test_ray_refuses_a_fraction_of_a_slot(aws: Config) -> None:
    """Resources must be whole numbers, so a slot is a whole agent."""
    aws["available_node_types"]["agents"]["resources"]["agent_slot"] = 0.5
    with pytest.raises(jsonschema.ValidationError):
        validate(aws)


def test_agents_run_on_workers_only(aws: Config) -> None:
    """The head offers no CPU and no agent slot; every worker type offers slots."""
    types = dict(aws["available_node_types"])
    head = types.pop(aws["head_node_type"])
    assert head["resources"] == {"CPU": 0}
    assert all(isinstance(kind["resources"]["agent_slot"], int) for kind in types.values())


def test_own_machines_offer_the_same_slots(config: Config) -> None:
    """The head offers no CPU. A worker of your own machines offers a whole number of slots, as many as a worker type on
    AWS.
    """
    assert flags(config, "head")["--num-cpus"] == "0"
    assert "--resources" not in flags(config, "head")
    slots = read("aws")["available_node_types"]["agents"]["resources"]["agent_slot"]
    said = flags(config, "worker").get("--resources", "{}")
    assert json.loads(said) == ({"agent_slot": slots} if config["provider"]["type"] == "local" else {})


def test_every_own_machine_is_used(config: Config) -> None:
    """A list of machines gives as many workers, each with its own address, and none of them is the head."""
    provider = config["provider"]
    listed = provider.get("worker_ips", [])
    assert provider["type"] == "aws" or config["min_workers"] == config["max_workers"] == len(listed)
    assert len({*listed, provider.get("head_ip")}) == len(listed) + 1


@pytest.mark.parametrize("role", ROLES)
def test_every_node_may_open_enough_files(config: Config, role: str) -> None:
    """Ray starts under a raised limit of open files, because a raylet holds several for each process."""
    assert start_of(config, role).startswith("ulimit -n 65536; ulimit -u 65536;")
    assert environment(config, role)["RAY_AUTH_MODE"] == "token"


def test_the_store_is_where_it_is_mounted(config: Config) -> None:
    """Head and workers mount the store before Ray starts, and both Ray and login shells get one path below the mount
    point.
    """
    _, place = mounting(config)
    stores = {environment(config, role)["EVERLOG_STORE"] for role in ROLES}
    assert len(stores) == 1
    assert Path(stores.pop()).parent == Path(place)
    assert any(f"EVERLOG_STORE={place}/" in command and ".bashrc" in command for command in config["setup_commands"])
    assert "worker_setup_commands" not in config


def test_the_store_is_mounted_safely(config: Config) -> None:
    """The mount options are those that everlog accepts for hosts on several machines."""
    options, place = mounting(config)
    mount = Mount(place, "nfs4", "server:/", frozenset(options))
    sights = [StoreIdentity(f"{place}/store", node, node, 1, 2, "store", mount) for node in ("one", "two")]
    assert not unsafe(mount)
    assert sharing_fault(sights) == ""
    assert {"nfsvers=4.1", "hard", "noac", "lookupcache=none"} <= set(options)


@pytest.mark.parametrize("role", ROLES)
def test_the_two_files_agree(role: str) -> None:
    """Environment, limits, mount options, installation and start of Ray are the same in both files."""
    one, other = read("aws"), read("local")
    assert environment(one, role) == environment(other, role)
    assert start_of(one, role).split("ray start")[0] == start_of(other, role).split("ray start")[0]
    assert mounting(one) == mounting(other)
    apart_from_slots = {name: value for name, value in flags(other, role).items() if name != "--resources"}
    assert flags(one, role) == apart_from_slots
    assert one["file_mounts"] == other["file_mounts"]
    elsewhere = [[c for c in file["setup_commands"] if "mount -t" not in c] for file in (one, other)]
    assert elsewhere[0] == elsewhere[1]


def test_every_command_is_a_shell_command(config: Config) -> None:
    """A shell can parse each command: YAML has not cut any of them at a `#`."""
    commands = [command for key, value in config.items() if key.endswith("_commands") for command in value]
    assert len(commands) >= 10
    for command in commands:
        run = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{command}\n{run.stderr}"


@pytest.fixture(scope="module")
def names_of_ray() -> set[bytes]:
    """Return the names of Ray's settings, from its binaries and its cluster launcher."""
    import ray

    folder = Path(ray.__file__).parent
    places = ("core/src/ray/raylet/raylet", "autoscaler/_private/util.py")
    return {name for place in places for name in re.findall(rb"\bRAY_\w+", (folder / place).read_bytes())}


def is_known(name: str, names_of_ray: set[bytes]) -> bool:
    return name.encode() in names_of_ray


@pytest.mark.parametrize("provider", FILES)
def test_ray_knows_every_name(provider: str, names_of_ray: set[bytes]) -> None:
    """Each RAY_ setting in a file, its comments included, exists in this Ray, which ignores unknown ones silently."""
    text = FILES[provider].read_text(encoding="utf-8")
    names = {name for name in re.findall(r"RAY_\w+", text) if not name.endswith("_")}
    assert len(names) >= 12
    assert {name for name in names if not is_known(name, names_of_ray)} == set()
    assert not is_known("RAY_health_check_perriod_ms", names_of_ray)

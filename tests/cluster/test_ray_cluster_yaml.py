"""ray_cluster.yaml is accepted by Ray's own validator and says what everlog needs of a cluster."""

import copy

import jsonschema
import pytest
import yaml

from tests.tidy.source import ROOT


@pytest.fixture(scope="module")
def config() -> dict:
    return yaml.safe_load((ROOT / "ray_cluster.yaml").read_text(encoding="utf-8"))


def validate(config: dict) -> None:
    """What `ray up` checks before it touches the provider, offline."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(copy.deepcopy(config)))


def test_ray_accepts_it(config: dict) -> None:
    """`ray up` would go on past validation."""
    validate(config)


def test_ray_refuses_a_typo(config: dict) -> None:
    """The validator can fail: a misspelt key is an error."""
    with pytest.raises(jsonschema.ValidationError, match="max_wrokers"):
        validate({**config, "max_wrokers": 3})


def test_ray_refuses_a_fraction_of_a_slot(config: dict) -> None:
    """Resources are whole numbers, which is why a slot is a whole agent."""
    broken = copy.deepcopy(config)
    broken["available_node_types"]["agents"]["resources"]["agent_slot"] = 0.5
    with pytest.raises(jsonschema.ValidationError):
        validate(broken)


def test_agents_run_on_workers_only(config: dict) -> None:
    """The head offers no CPU and no agent slot; every worker type offers slots."""
    types = dict(config["available_node_types"])
    head = types.pop(config["head_node_type"])
    assert head["resources"]["CPU"] == 0
    assert "agent_slot" not in head["resources"]
    assert all(isinstance(kind["resources"]["agent_slot"], int) for kind in types.values())
    assert "--num-cpus=0" in config["head_start_ray_commands"][-1]


@pytest.mark.parametrize("role", ["head", "worker"])
def test_every_node_may_open_enough_files(config: dict, role: str) -> None:
    """A raylet holds several files for each process: it starts under a raised limit."""
    start = config[f"{role}_start_ray_commands"][-1]
    assert start.startswith("ulimit -n 65536;")
    assert "RAY_AUTH_MODE=token" in start

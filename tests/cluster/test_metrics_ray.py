"""Metrics with Ray's own instruments; no cluster is needed to make them."""

from everlog.actors.hosting.metrics import InstrumentFactory, ProcessMetrics
from tests.actors.hosting.test_metrics import ARCHIVE, EVERYTHING, GATEWAY, HOST, SUPERVISOR


def test_the_instruments_of_ray_take_everything() -> None:
    """Ray's own classes accept every name, tag and value, without a collector."""
    from ray.util import metrics

    made = ProcessMetrics(
        InstrumentFactory(metrics.Counter, metrics.Gauge, metrics.Histogram), placement="shared", node="n"
    )
    made.host(HOST)
    made.host(HOST)
    made.gateway(GATEWAY)
    made.supervisor(SUPERVISOR)
    made.archive(ARCHIVE)
    made.ticked(40, 0.002)
    made.activated(0.01)
    assert set(made._meters) == set(EVERYTHING)

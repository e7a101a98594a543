"""A fleet on a Ray cluster of several nodes, simulated on this machine; one of them is lost. Needs `ray`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

ray: Any = pytest.importorskip("ray", reason="ray is not installed: it is in the optional extra `fleet`")

from harness.errors import UsageError  # noqa: E402 - after the reason for the skip
from harness.fleet.item import Item  # noqa: E402
from harness.fleet.ray_pool import RayPool  # noqa: E402
from harness.fleet.schedule import Schedule  # noqa: E402
from tests.meta.fleet.conftest import FAKE, obeys  # noqa: E402

Log = Callable[[], list[str]]
#: Ray's own threads and files end after its tests do.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cluster(log: Log) -> Iterator[Any]:
    """A head that has no room for workers, and two nodes of one worker each. They inherit the log of the fake judge."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        made.nodes = [made.add_node(num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False, configure_logging=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def _items(count: int, words: str = "") -> list[Item]:
    return [Item(**obeys(f"c{number}", words)) for number in range(count)]


def test_candidates_are_judged_on_all_nodes_and_survive_the_loss_of_one(cluster: Any, log: Log) -> None:
    pool = RayPool("auto", "cpu", 0, 1, FAKE)
    items = [*_items(8, "wait 0.5"), Item(**obeys("kill", "kill-worker")), Item(**obeys("wrong", "wrong"))]
    found = []
    try:
        for result in Schedule(items, pool, [], 60.0, []).run():
            found.append(result)
            if len(found) == 2:
                used = set(pool.nodes().values())
                cluster.remove_node(cluster.nodes[0], allow_graceful=False)
    finally:
        pool.close()
    assert len(used) == 2, "both nodes had a worker"
    assert sorted(result.id for result in found) == sorted(item.id for item in items)
    assert {result.id: result.verdict for result in found if result.verdict != "pass"} == {
        "kill": "broken",
        "wrong": "fail",
    }
    counts = {line: log().count(line) for line in set(log())}
    assert counts["# kill"] == 2
    assert sum(counts.values()) <= len(items) + 2, "besides `kill`, only what ran on the lost node ran twice"


def test_more_workers_than_the_cluster_has_room_for_are_refused(cluster: Any) -> None:
    with pytest.raises(UsageError, match="--workers was 3, but should be at most 2"):
        RayPool("auto", "cpu", 3, 1, FAKE)


def test_an_actor_asks_for_its_gpu(cluster: Any) -> None:
    cluster.add_node(num_cpus=2, num_gpus=2)
    cluster.wait_for_nodes()
    pool = RayPool("auto", "cuda", 2, 1, FAKE)
    try:
        while len(pool.idle()) < 2:
            pool.wait(1.0)
        assert ray.available_resources().get("GPU", 0) == 0
        assert len(set(pool.nodes().values())) == 1
    finally:
        pool.close()

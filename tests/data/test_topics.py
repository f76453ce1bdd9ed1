"""Topics in Kafka as sources of lines: they are read up to the ends that they have then."""

import io

import pytest

from forel.data import concatenate, read

kafka = pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")


@pytest.fixture(scope="module")
def address():
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (found,) = producer.list_topics(timeout=10).brokers.values()
    for k in range(3000):
        producer.produce("clicks", f"{k % 2} |a x{k}".encode(), partition=k % 3)
    assert producer.flush(10) == 0
    yield f"{found.host}:{found.port}"
    producer.flush(1)


def test_all_messages_that_are_there_are_read(address):
    with pytest.warns(UserWarning, match="is read up to its present end; forel serve --from goes on"):
        block = concatenate(read(f"kafka://{address}/clicks", format="vw"))
    expected = concatenate(read(io.BytesIO(b"".join(b"%d |a x%d\n" % (k % 2, k) for k in range(3000)))))
    assert sorted(block.indices.tolist()) == sorted(expected.indices.tolist())
    assert block.labels.sum() == 1500

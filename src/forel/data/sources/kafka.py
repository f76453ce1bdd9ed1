"""Messages of a topic in Kafka, from stated offsets on (extra ``kafka``). Who consumes them keeps the offsets."""

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forel.validation import refuse

__all__ = ["Message", "Topic", "topic_lines"]

URL = re.compile(r"kafka://([^/\s]+)/([A-Za-z0-9._-]+)")
SECONDS = 10.0  # to wait for a broker
TAKEN = 1 << 10  # messages that are taken at a time


class Message(NamedTuple):
    """The value of a message, its topic and partition, and the offset after it."""

    value: bytes
    partition: str
    next: int


class Topic:
    """A topic, whose partitions are those that it has now.

    Parameters
    ----------
    url : kafka://BROKER[,BROKER...]/TOPIC
    offsets : of the first message by TOPIC/PARTITION; partitions without one are read from their beginning
    """

    def __init__(self, url: str, offsets: Mapping[str, int]) -> None:
        found = URL.fullmatch(url)
        if found is None:
            raise refuse("source", url, "kafka://BROKER:PORT/TOPIC")
        try:
            import confluent_kafka as kafka
        except ImportError:
            raise refuse("source", url, "the extra kafka: pip install 'forel[kafka]'") from None
        self.url, self.name = url, found[2]
        # Offsets are those of the caller: the group has no members and commits nothing.
        self._consumer: Any = kafka.Consumer({
            "bootstrap.servers": found[1], "group.id": "forel", "enable.auto.commit": False,
            "auto.offset.reset": "error", "log_level": 0,
        })  # fmt: skip
        try:
            topic = self._consumer.list_topics(self.name, timeout=SECONDS).topics[self.name]
        except kafka.KafkaException as error:
            raise ConnectionError(f"{url}: {error.args[0].str()}") from None
        if topic.error is not None or not topic.partitions:
            raise refuse(
                "source", url, f"a topic that is there ({topic.error.str() if topic.error else 'no partitions'})"
            )
        first = kafka.OFFSET_BEGINNING
        self._places = [
            kafka.TopicPartition(self.name, p, offsets.get(f"{self.name}/{p}", first)) for p in topic.partitions
        ]
        self._consumer.assign(self._places)

    def take(self, most: int, seconds: float) -> list[Message]:
        """Return up to a number of messages that arrive within some seconds; none without any."""
        found = []
        for one in self._consumer.consume(most, timeout=seconds):
            error = one.error()
            if error is None:
                found.append(Message(one.value() or b"", f"{self.name}/{one.partition()}", one.offset() + 1))
            elif not error.retriable():
                raise ConnectionError(f"{self.url}, partition {one.partition()}: {error.str()}")
        return found

    def ends(self) -> dict[str, int]:
        """Return the offset after the last message that each partition has now."""
        return {
            f"{self.name}/{one.partition}": self._consumer.get_watermark_offsets(one, timeout=SECONDS)[1]
            for one in self._places
        }

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def topic_lines(url: str) -> Callable[[int], bytes]:
    """Return a function that returns the next bytes of the lines in a topic, up to the ends that it has now."""
    topic = Topic(url, {})
    ends = topic.ends()
    warnings.warn(
        f"source: {url} is read up to its present end; forel serve --from goes on learning", UserWarning, stacklevel=2
    )
    left = {partition for partition, end in ends.items() if end}
    rest = b""

    def pull(size: int) -> bytes:
        nonlocal rest
        while left and not rest:
            found = topic.take(TAKEN, SECONDS)
            for one in found:
                if one.next >= ends[one.partition]:
                    left.discard(one.partition)
            rest = b"".join(one.value.rstrip(b"\n") + b"\n" for one in found if one.next <= ends[one.partition])
            if not found:  # the last offsets have no messages
                left.clear()
        if not left and not rest:
            topic.close()
        found_bytes, rest = rest[:size], rest[size:]
        return found_bytes

    return pull

"""A real Kafka broker (KRaft, one node, 256 MB) on loopback; needs JDK 17 or later.

``python tests/support/kafka.py`` fetches its jars to ``~/.cache/pandaeval/kafka``.
``python tests/support/kafka.py run FOLDER`` runs a broker until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.ports import free_ports
from support.programs import CACHE

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

VERSION = "4.1.0"
JARS = Path(os.environ.get("PANDAEVAL_KAFKA_JARS") or CACHE / "kafka" / VERSION)
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
</dependencies></project>
"""
_START_S = 120.0


def missing() -> str:
    if shutil.which("java") is None:
        return "a JDK of 17 or later"
    return "" if JARS.exists() else "Kafka's jars: python tests/support/kafka.py"


def fetch() -> None:
    if JARS.exists():
        return
    JARS.parent.mkdir(parents=True, exist_ok=True)
    build = JARS.parent / f"fetch-{os.getpid()}"
    build.mkdir()
    try:
        (build / "pom.xml").write_text(_POM)
        goal = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={build / 'jars'}"]
        subprocess.run(goal, cwd=build, check=True, stdin=subprocess.DEVNULL)
        (build / "jars").rename(JARS)
    finally:
        shutil.rmtree(build, ignore_errors=True)


class Broker:
    """A broker in ``folder`` as a context manager. ``partitions``: of auto-created topics; 0: none."""

    def __init__(self, folder: Path, partitions: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._log = folder, folder / "broker.log"
        self._port, controller = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._properties.write_text(_properties(folder / "log", self._port, controller, partitions))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java(
            "kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster}", "-c", str(self._properties)
        )

    @property
    def address(self) -> str:
        """Return the ``bootstrap.servers``."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def _client(self) -> dict[str, object]:
        return {"bootstrap.servers": self.address, "log_level": 0}

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + _START_S
        while not self._answers():
            assert self._process.poll() is None, f"the broker ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"the broker does not answer:\n{self.log()}"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._process = None

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        new = NewTopic(topic, partitions, 1, config=settings)
        admin = AdminClient(self._client)  # the variable keeps the client alive until the answer
        admin.create_topics([new])[topic].result(60)

    def produce(self, topic: str, values: Sequence[tuple[bytes | None, bytes]], partition: int | None = None) -> None:
        """Write (key, value) pairs and wait for acknowledgement."""
        from confluent_kafka import Producer

        producer = Producer({**self._client, "acks": "all", "partitioner": "murmur2_random", "linger.ms": 5})
        failed: list[object] = []
        where = {} if partition is None else {"partition": partition}
        for key, value in values:
            producer.produce(
                topic, value, key, on_delivery=lambda error, _: failed.append(error) if error else None, **where
            )  # type: ignore[arg-type]
            producer.poll(0)
        assert producer.flush(60) == 0, "the broker did not accept all messages"
        assert not failed, failed

    def everything(self, topic: str, since: dict[int, int] | None = None) -> list[Message]:
        """Return a topic's messages by partition. ``since``: offsets, moved to the end."""
        return list(self._everything(topic, {} if since is None else since))

    def length(self, topic: str) -> int:
        """Return a topic's message count."""
        with self._reader() as reader:
            return sum(high for _, high in self._ends(reader, topic).values())

    def committed(self, group: str, topic: str) -> dict[int, int]:
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self._client)
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result(30).topic_partitions
        return {each.partition: each.offset for each in found if each.topic == topic and each.offset >= 0}

    def size(self, topic: str) -> int:
        """Return a topic's bytes on disk."""
        segments = (self._folder / "log").glob(f"{topic}-*/*.log")
        return sum(each.stat().st_size for each in segments)

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _everything(self, topic: str, since: dict[int, int]) -> Iterator[Message]:
        from confluent_kafka import TopicPartition

        with self._reader() as reader:
            for number, (low, high) in self._ends(reader, topic).items():
                at = since.get(number, low)
                reader.assign([TopicPartition(topic, number, at)])
                while at < high:
                    message = reader.poll(30)
                    assert message is not None, f"{topic} gives nothing after {at} of {high}"
                    if message.error() is None:
                        yield message
                        at = (message.offset() or 0) + 1
                since[number] = at

    @contextlib.contextmanager
    def _reader(self) -> Iterator[Consumer]:
        from confluent_kafka import Consumer

        with contextlib.closing(Consumer({**self._client, "group.id": f"reader-{uuid.uuid4()}"})) as reader:
            yield reader

    def _ends(self, reader: Consumer, topic: str) -> dict[int, tuple[int, int]]:
        from confluent_kafka import TopicPartition

        numbers = reader.list_topics(topic, timeout=30).topics[topic].partitions
        return {each: reader.get_watermark_offsets(TopicPartition(topic, each), timeout=30) for each in numbers}

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({**self._client})
        try:
            return bool(admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _java(self, main: str, *arguments: str) -> None:
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, main: str, *arguments: str) -> list[str]:
        few = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *few, "-cp", str(JARS / "*"), main, *arguments]


def _properties(log: Path, port: int, controller: int, partitions: int) -> str:
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(log),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "auto.create.topics.enable": str(partitions > 0).lower(),
        "num.partitions": str(partitions or 1),
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
        "message.max.bytes": str(10 << 20),
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _main(arguments: Sequence[str]) -> None:
    fetch()
    if arguments[:1] == ["run"]:
        with Broker(Path(arguments[1]), partitions=4) as broker, contextlib.suppress(KeyboardInterrupt):
            print(f"listens on {broker.address}")
            signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    _main(sys.argv[1:])

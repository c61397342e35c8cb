"""Sink answers, addresses and retry delays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.exporters import RetryLaterError
from pandaeval_collector.exporters._otlp.answers import (
    BatchTooLargeError,
    NotServedError,
    RefusedError,
    grpc_error,
    http_error,
    rejected,
)
from pandaeval_collector.exporters._otlp.transport import target

CODES = grpc.StatusCode
RETRIED = [
    CODES.CANCELLED,
    CODES.DEADLINE_EXCEEDED,
    CODES.ABORTED,
    CODES.OUT_OF_RANGE,
    CODES.UNAVAILABLE,
    CODES.DATA_LOSS,
]
CURE = "set the variable named in exporters.otlp.headers_env to the headers that the sink requires"
LOCKED_OUT = [CODES.UNAUTHENTICATED, CODES.PERMISSION_DENIED]


def retry_info(seconds: float) -> tuple[tuple[str, bytes], ...]:
    details = []
    delay = Duration()
    delay.FromMilliseconds(int(seconds * 1000))
    for message in (ErrorInfo(reason="busy"), RetryInfo(retry_delay=delay)):
        detail = AnyMessage()
        detail.Pack(message)
        details.append(detail)
    return (("grpc-status-details-bin", Status(code=8, details=details).SerializeToString()),)


class TestGrpc:
    @pytest.mark.parametrize("code", RETRIED)
    def test_retryable_codes_of_the_specification_are_retried(self, code: grpc.StatusCode) -> None:
        assert isinstance(grpc_error(code, "", ()), RetryLaterError)

    @pytest.mark.parametrize(
        "code", [c for c in CODES if c not in {*RETRIED, *LOCKED_OUT, CODES.OK, CODES.UNIMPLEMENTED}]
    )
    def test_all_other_codes_are_permanent_rejections(self, code: grpc.StatusCode) -> None:
        error = grpc_error(code, "no", ())
        assert isinstance(error, RefusedError)
        assert error.reason == code.name.lower()

    @pytest.mark.parametrize("code", LOCKED_OUT)
    def test_rejected_credentials_are_retried_and_the_error_names_headers_env(self, code: grpc.StatusCode) -> None:
        error = grpc_error(code, "who are you", ())
        assert isinstance(error, RetryLaterError)
        assert (error.after_s or 0) > 1
        assert "who are you" in str(error)
        assert "headers_env" in str(error)

    def test_resource_exhausted_with_retry_info_waits_the_requested_delay(self) -> None:
        error = grpc_error(CODES.RESOURCE_EXHAUSTED, "", retry_info(2.5))
        assert isinstance(error, RetryLaterError)
        assert error.after_s == 2.5

    def test_requested_retry_delay_is_at_most_600_seconds(self) -> None:
        error = grpc_error(CODES.UNAVAILABLE, "", retry_info(1e6))
        assert isinstance(error, RetryLaterError)
        assert error.after_s == 600

    @pytest.mark.parametrize(
        "message", ["Received message larger than max (9 vs. 8)", "grpc: received message larger than max (9 vs. 8)"]
    )
    def test_a_message_over_the_size_limit_is_batch_too_large(self, message: str) -> None:
        assert isinstance(grpc_error(CODES.RESOURCE_EXHAUSTED, message, ()), BatchTooLargeError)

    def test_unimplemented_means_that_the_signal_is_not_served(self) -> None:
        assert isinstance(grpc_error(CODES.UNIMPLEMENTED, "unknown service", ()), NotServedError)

    def test_malformed_status_details_are_ignored(self) -> None:
        error = grpc_error(CODES.UNAVAILABLE, "", (("grpc-status-details-bin", b"\xff\xff"),))
        assert isinstance(error, RetryLaterError)
        assert error.after_s is None

    @pytest.mark.parametrize(
        ("code", "message", "kind", "reason"),
        [
            (CODES.UNIMPLEMENTED, "unknown service", NotServedError, "unimplemented"),
            (CODES.RESOURCE_EXHAUSTED, "too large", BatchTooLargeError, "too_large"),
            (CODES.RESOURCE_EXHAUSTED, "slow down", RefusedError, "resource_exhausted"),
            (CODES.INVALID_ARGUMENT, "larger than", RefusedError, "invalid_argument"),
        ],
    )
    def test_a_rejection_has_a_one_word_reason_and_the_full_message(
        self, code: grpc.StatusCode, message: str, kind: type[RefusedError], reason: str
    ) -> None:
        error = grpc_error(code, message, ())
        assert isinstance(error, RefusedError)
        assert (type(error), error.reason, str(error)) == (kind, reason, f"{code.name}: {message}")

    @pytest.mark.parametrize(
        ("trailers", "after_s"),
        [
            ((), None),
            ((("retry-after", b"5"),), None),
            ((("other", retry_info(5)[0][1]),), None),
            ((("grpc-status-details-bin", "5"),), None),
            ((("grpc-status-details-bin", Status(code=8).SerializeToString()),), None),
            ((("other", b"x"), *retry_info(5)), 5.0),
            ((("grpc-status-details-bin", b"\xff\xff"), *retry_info(5)), 5.0),
            (retry_info(0.25), 0.25),
            (retry_info(0), 0.0),
            (retry_info(-3), 0.0),
            (retry_info(599.5), 599.5),
            (retry_info(601), 600.0),
        ],
    )
    def test_retry_delay_is_read_from_the_status_details(
        self, trailers: tuple[tuple[str, str | bytes], ...], after_s: float | None
    ) -> None:
        error = grpc_error(CODES.UNAVAILABLE, "", trailers)
        assert isinstance(error, RetryLaterError)
        assert error.after_s == after_s

    @pytest.mark.parametrize("code", LOCKED_OUT)
    def test_rejected_credentials_are_retried_in_five_seconds_despite_retry_info(self, code: grpc.StatusCode) -> None:
        error = grpc_error(code, "no", retry_info(60))
        assert isinstance(error, RetryLaterError)
        assert (error.after_s, str(error)) == (5.0, f"{code.name}: no; {CURE}")

    @pytest.mark.parametrize("code", RETRIED)
    def test_a_retried_error_has_the_full_message(self, code: grpc.StatusCode) -> None:
        assert str(grpc_error(code, "busy", ())) == f"{code.name}: busy"


class TestHttp:
    @pytest.mark.parametrize(
        ("status", "kind", "reason"),
        [
            (404, NotServedError, "unimplemented"),
            (413, BatchTooLargeError, "too_large"),
            (400, RefusedError, "http_400"),
        ],
    )
    def test_a_rejection_has_a_one_word_reason_and_the_status(
        self, status: int, kind: type[RefusedError], reason: str
    ) -> None:
        error = http_error(status, {})
        assert isinstance(error, RefusedError)
        assert (type(error), error.reason, str(error)) == (kind, reason, f"HTTP {status}")

    def test_a_retried_error_shows_the_status(self) -> None:
        assert str(http_error(503, {})) == "HTTP 503"

    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_retryable_statuses_wait_for_retry_after(self, status: int) -> None:
        error = http_error(status, {"retry-after": "7"})
        assert isinstance(error, RetryLaterError)
        assert error.after_s == 7

    def test_retry_after_may_be_a_date(self) -> None:
        error = http_error(503, {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=100))})
        assert isinstance(error, RetryLaterError)
        assert error.after_s is not None
        assert 50 < error.after_s <= 100

    @pytest.mark.parametrize("value", ["", "soon", "-5"])
    def test_an_invalid_retry_after_is_ignored(self, value: str) -> None:
        error = http_error(503, {"retry-after": value})
        assert isinstance(error, RetryLaterError)
        assert not error.after_s

    @pytest.mark.parametrize("status", [301, 400, 500])
    def test_other_statuses_are_permanent_rejections(self, status: int) -> None:
        error = http_error(status, {})
        assert type(error) is RefusedError
        assert error.reason == f"http_{status}"

    @pytest.mark.parametrize("status", [401, 403])
    def test_rejected_credentials_are_retried_in_five_seconds(self, status: int) -> None:
        error = http_error(status, {})
        assert isinstance(error, RetryLaterError)
        assert (error.after_s, str(error)) == (5.0, f"HTTP {status}; {CURE}")

    @pytest.mark.parametrize(
        ("headers", "after_s"),
        [
            ({}, None),
            ({"retry-after": " 7 "}, 7.0),
            ({"retry-after": "0"}, 0.0),
            ({"retry-after": "600"}, 600.0),
            ({"retry-after": "99999"}, 600.0),
            ({"retry-after": "-5"}, None),
            ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
            ({"retry-after": "Sun, 06 Nov 1994 08:49:37 -0000"}, None),
            ({"retry-after": "Fri, 06 Nov 2989 08:49:37 GMT"}, 600.0),
        ],
    )
    def test_retry_after_is_seconds_or_a_date_and_at_most_600_seconds(
        self, headers: dict[str, str], after_s: float | None
    ) -> None:
        error = http_error(429, headers)
        assert isinstance(error, RetryLaterError)
        assert error.after_s == after_s

    @pytest.mark.parametrize("status", [404, 405, 501])
    def test_404_405_and_501_mean_that_the_signal_is_not_served(self, status: int) -> None:
        assert isinstance(http_error(status, {}), NotServedError)

    def test_413_is_batch_too_large(self) -> None:
        assert isinstance(http_error(413, {}), BatchTooLargeError)


class TestPartialSuccess:
    @pytest.mark.parametrize(
        "response",
        [
            ExportLogsServiceResponse(
                partial_success=ExportLogsPartialSuccess(rejected_log_records=3, error_message="too old")
            ),
            ExportTraceServiceResponse(
                partial_success=ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
            ),
            ExportMetricsServiceResponse(
                partial_success=ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too old")
            ),
        ],
        ids=["logs", "traces", "metrics"],
    )
    def test_rejected_items_are_counted_with_the_message_in_all_signals(self, response: Message) -> None:
        assert rejected(response.SerializeToString()) == (3, "too old")

    @pytest.mark.parametrize("response", [b"", b"{}", b'{"partialSuccess":{}}', b"<html>"])
    def test_empty_or_malformed_answers_reject_nothing(self, response: bytes) -> None:
        assert rejected(response) == (0, "")


class TestTarget:
    @pytest.mark.parametrize(
        ("endpoint", "protocol", "insecure", "address", "secure"),
        [
            ("collector:4317", "grpc", True, "collector:4317", False),
            ("collector:4317", "grpc", False, "collector:4317", True),
            ("collector", "grpc", True, "collector:4317", False),
            ("collector", "http/protobuf", True, "collector:4318", False),
            ("https://collector", "grpc", True, "collector:443", True),
            ("http://collector:9/", "grpc", False, "collector:9", False),
            ("[::1]:4317", "grpc", True, "[::1]:4317", False),
        ],
    )
    def test_address_and_tls_follow_from_endpoint_protocol_and_insecure(
        self, endpoint: str, protocol: str, insecure: bool, address: str, secure: bool
    ) -> None:
        found = target(endpoint, "logs", protocol, insecure)
        assert (found.address, found.secure) == (address, secure)

    @pytest.mark.parametrize(
        ("endpoint", "own_path", "url"),
        [
            ("localhost:4318", False, "http://localhost:4318/v1/traces"),
            ("https://tempo.example/otlp/", False, "https://tempo.example:443/otlp/v1/traces"),
            ("https://tempo.example/in/spans", True, "https://tempo.example:443/in/spans"),
            ("https://tempo.example", True, "https://tempo.example:443/v1/traces"),
        ],
    )
    def test_signal_path_is_appended_unless_the_endpoint_of_the_signal_has_a_path(
        self, endpoint: str, own_path: bool, url: str
    ) -> None:
        assert target(endpoint, "traces", "http/protobuf", True, own_path=own_path).url == url

    def test_headers_and_credentials_are_decoded_but_hidden_in_repr_and_url(self) -> None:
        found = target("http://me:pa%3Ass@sink:1", "logs", "grpc", True, headers="X-Tenant=a%2Cb, x-key = 1=2")
        assert found.headers == (("authorization", "Basic bWU6cGE6c3M="), ("x-tenant", "a,b"), ("x-key", "1=2"))
        assert "a,b" not in repr(found)
        assert "pa" not in found.url

    @pytest.mark.parametrize(
        ("endpoint", "here"), [("localhost:1", True), ("127.0.0.9:1", True), ("[::1]:1", True), ("sink:1", False)]
    )
    def test_loopback_endpoints_are_recognised(self, endpoint: str, here: bool) -> None:
        assert target(endpoint, "logs", "grpc", True).is_loopback == here


class TestBackoff:
    @pytest.fixture(autouse=True)
    def longest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("random.uniform", lambda low, high: high)

    def test_maximum_delay_doubles_up_to_30_seconds_and_resets_on_success(self) -> None:
        backoff = Backoff()
        assert [backoff.failed() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
        backoff.succeeded()
        assert backoff.failed() == 0.5

    def test_full_jitter_starts_at_zero(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("random.uniform", lambda low, high: low)
        backoff = Backoff()
        assert [backoff.failed() for _ in range(3)] == [0, 0, 0]

    @pytest.mark.parametrize(("share", "delay"), [(0.0, 7.0), (0.5, 7.25), (1.0, 7.5)])
    def test_jitter_is_added_to_the_requested_delay(
        self, monkeypatch: pytest.MonkeyPatch, share: float, delay: float
    ) -> None:
        monkeypatch.setattr("random.uniform", lambda low, high: low + share * (high - low))
        assert Backoff().failed(7.0) == delay

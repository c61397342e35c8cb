"""The dashboard *Collector*: accounting of input, and load."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.frame import choice, frame
from deploy.grafana.panels import BAD, GOOD, WARN, Panel, graph, number
from deploy.grafana.words import per_bar, per_second

_ON = '{instance=~"$instance"}'
_FATE = "pandaeval_outcome, pandaeval_reason"


def build() -> dashboard.Dashboard:
    return frame(
        "pandaeval-collector",
        "PandaEval / Collector",
        "Does every span have an outcome, and is the collector fast enough?",
        [choice("instance", "Collector", "label_values(pandaeval_accounting_residual, instance)")],
        [
            ("At a glance", _numbers()),
            ("Input", (_spans(), _logs(), _requests())),
            ("Traces", (_traces(), _open(), _lag())),
            ("Output", (_sent(), _state(), _queues())),
            ("The machine", (_memory(), _store(), _disk_errors())),
            ("Kafka", (_log_lag(), _log_silence(), _log_lost())),
        ],
    )


def _numbers() -> list[Panel]:
    dropped = f'sum(pandaeval_exporter_items_total{_ON[:-1]}, pandaeval_outcome="dropped"}})'
    collectors = f"count(pandaeval_accounting_residual{_ON})"
    return [
        number("Collectors", "Number of collectors that send metrics.", collectors, width=4),
        number("Unaccounted for", "Spans and log records that no counter includes. If it is not 0, there is a bug.",
               f"sum(abs(pandaeval_accounting_residual{_ON}))", steps=((0, GOOD), (1, BAD))),
        number("Spans per second", "Decoded spans, including duplicates and rejected spans.",
               f'sum(rate(pandaeval_spans_total{_ON[:-1]}, pandaeval_outcome="decoded"}}[$__rate_interval]))'),
        number("Lag", "Time for which the oldest complete trace has waited for its score.",
               f"max(pandaeval_lag_seconds{_ON})", "s", steps=((0, GOOD), (10, WARN), (60, BAD))),
        number("Results not delivered", "Dropped since the start: refused by a sink, too old, or too many.",
               f"{dropped} or 0 * {collectors}", steps=((0, GOOD), (1, BAD))),
        number("Memory", "Largest resident memory of a main process, without its helper processes.",
               f"max(pandaeval_memory_bytes{_ON})", "bytes"),
    ]  # fmt: skip


def _fates(title: str, text: str, counter: str, by: str = _FATE, legend: str = "") -> Panel:
    legend = legend or "{{pandaeval_outcome}} {{pandaeval_reason}}"
    return graph(title, text, {legend: per_bar(counter + _ON, by)}, width=8, stacked=True)


def _spans() -> Panel:
    return _fates(
        "Spans by outcome",
        "decoded = stored + duplicate + own_output + rejected + ignored.",
        "pandaeval_spans_total",
    )


def _logs() -> Panel:
    return _fates("Log records by outcome", "The outcomes are the same as for spans.", "pandaeval_logs_total")


def _requests() -> Panel:
    return _fates(
        "Requests by outcome and protocol",
        "Senders repeat overloaded and draining requests. They usually drop malformed requests.",
        "pandaeval_requests_total",
    )


def _traces() -> Panel:
    return _fates(
        "Completed traces by reason",
        "explicit: the span processor reported the end. root_ended: the root span ended, and no span followed. idle: "
        "no span arrived for a long time, without a root span. max_age, span_limit, memory: a limit was reached.",
        "pandaeval_traces_total",
    )


def _open() -> Panel:
    return graph("Open traces", "Traces that are incomplete, or that wait for their scores.",
                 {"{{instance}}": f"sum by (instance) (pandaeval_traces_open{_ON})"}, width=8)  # fmt: skip


def _lag() -> Panel:
    return graph(
        "Lag",
        "Time for which the oldest complete trace has waited for its score. Above some seconds, scoring is too slow.",
        {"{{instance}}": f"max by (instance) (pandaeval_lag_seconds{_ON})"},
        "s",
        width=8,
    )


def _sent() -> Panel:
    rate = per_second(f"pandaeval_exporter_items_total{_ON}", "pandaeval_exporter, pandaeval_signal, pandaeval_outcome")
    legend = "{{pandaeval_exporter}} {{pandaeval_signal}} {{pandaeval_outcome}}"
    return graph("Results sent and dropped, per second", "By exporter and signal.", {legend: rate}, width=8)


def _state() -> Panel:
    state = f"min by (instance, pandaeval_exporter, pandaeval_signal) (pandaeval_exporter_state{_ON})"
    legend = "{{instance}} {{pandaeval_exporter}} {{pandaeval_signal}}"
    return graph(
        "Exporters: 1 up, 0 down, -1 off", "Off means that the sink rejects this signal.", {legend: state}, width=8
    ).min(-1)


def _queues() -> Panel:
    size = f"sum by (pandaeval_queue) (pandaeval_queue_size{_ON})"
    return graph(
        "Queues",
        "store: writes in progress. judge: jobs that wait or run. outbox: results that wait for a sink.",
        {"{{pandaeval_queue}}": size},
        width=8,
    )


def _memory() -> Panel:
    resident = f"max by (instance) (pandaeval_memory_bytes{_ON})"
    text = "Resident memory of the main process, without its helper processes."
    return graph("Memory", text, {"{{instance}}": resident}, "bytes", width=8)


def _store() -> Panel:
    size = f"max by (instance) (pandaeval_store_size_bytes{_ON})"
    text = "Used bytes. From 70 % of store.max_bytes, old data are deleted earlier. At 100 %, spans are refused."
    return graph("Store", text, {"{{instance}}": size}, "bytes", width=8)


def _disk_errors() -> Panel:
    errors = f"sum by (instance, pandaeval_outcome) (pandaeval_store_errors_total{_ON})"
    return graph(
        "Disk errors since the start",
        "refused: the disk failed or the store was full, and senders try again. retried: the data were written later. "
        "left: the next start repeats the work. put_aside: a damaged file was renamed.",
        {"{{instance}} {{pandaeval_outcome}}": errors},
        width=8,
    )


def _log_lag() -> Panel:
    lag = f"sum by (instance, pandaeval_queue) (pandaeval_log_lag{_ON})"
    return graph(
        "Unread Kafka messages",
        "Unread messages in the partitions of this collector. Needs kafka.topic.",
        {"{{instance}} {{pandaeval_queue}}": lag},
        width=8,
    )


def _log_silence() -> Panel:
    silence = f"max by (instance, pandaeval_queue) (pandaeval_log_silence_seconds{_ON})"
    return graph(
        "Time since the last poll of Kafka",
        "Below a second during reading, up to a minute if no broker answers. If it keeps growing, the client hangs.",
        {"{{instance}} {{pandaeval_queue}}": silence},
        "s",
        width=8,
    )


def _log_lost() -> Panel:
    lost = f'pandaeval_log_messages_total{_ON[:-1]}, pandaeval_outcome=~"lost|dead"}}'
    uncommitted = f'pandaeval_log_errors_total{_ON[:-1]}, pandaeval_outcome="not_committed"}}'
    return graph(
        "Lost or dead messages, and uncommitted offsets",
        "lost: expired before they were read. dead: not OTLP. Not committed: a new owner reads these messages again.",
        {
            "{{pandaeval_outcome}} {{pandaeval_reason}}": per_bar(lost, _FATE),
            "offsets not committed": per_bar(uncommitted, "pandaeval_outcome"),
        },
        width=8,
        stacked=True,
    )

{{- define "pandaeval.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "pandaeval.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pandaeval.labels" -}}
{{ include "pandaeval.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: collector
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Whether collectors read from Kafka; empty if not. */}}
{{- define "pandaeval.reads" -}}
{{- with .Values.config.kafka }}{{ .topic }}{{ end -}}
{{- end }}

{{/* The configuration file: what the chart knows wins over .Values.config, since both sides of it must agree. */}}
{{- define "pandaeval.config" -}}
{{- $open := not (and .Values.tls.secretName (or .Values.token.secretName .Values.tls.clientCa)) }}
{{- if and $open (not .Values.insecureBind) }}
{{- fail "insecureBind is false: set tls.secretName, and token.secretName or tls.clientCa" }}
{{- end }}
{{- if and $open (not .Values.networkPolicy.enabled) }}
{{- fail "without TLS and a token, a network policy is required: set networkPolicy.enabled, or tls.secretName and token.secretName" }}
{{- end }}
{{- if and (not (include "pandaeval.reads" .)) (not .Values.persistence.enabled) }}
{{- fail "persistence.enabled is false: set config.kafka.topic, so that another pod can read lost spans again" }}
{{- end }}
{{- if and (not (include "pandaeval.reads" .)) .Values.autoscaling.enabled }}
{{- fail "autoscaling.enabled needs config.kafka.topic: behind a load balancer, each change of replicas splits traces" }}
{{- end }}
{{- $server := dict "grpc" "0.0.0.0:4327" "http" "0.0.0.0:4328" "health" "0.0.0.0:4329" "insecure_bind" $open }}
{{- if .Values.tls.secretName }}
{{- $tls := dict "cert" "/etc/pandaeval/tls/tls.crt" "key" "/etc/pandaeval/tls/tls.key" }}
{{- if .Values.tls.clientCa }}{{ $_ := set $tls "client_ca" "/etc/pandaeval/tls/ca.crt" }}{{ end }}
{{- $_ := set $server "tls" $tls }}
{{- end }}
{{- if .Values.token.secretName }}{{ $_ := set $server "token_env" "PANDAEVAL_INCOMING_TOKEN" }}{{ end }}
{{- $fixed := dict "server" $server "store" (dict "path" "/var/lib/pandaeval") }}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $fixed) }}
{{- end }}

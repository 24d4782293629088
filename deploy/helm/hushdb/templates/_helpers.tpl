{{- define "hushdb.name" -}}
{{- if contains "hushdb" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-hushdb" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "hushdb.selector" -}}
app.kubernetes.io/name: hushdb
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hushdb.labels" -}}
{{ include "hushdb.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* hushdb.toml: what the chart makes, then `config`. A value of JSON (text, number, true, list) is one of TOML, too. */ -}}
{{- define "hushdb.settings" -}}
{{- if not (or .Values.tables.folders .Values.tables.urls) }}{{ fail "tables.folders: name the folders of tables in tables.volume, or tables.urls" }}{{ end }}
{{- if and .Values.tables.folders (not .Values.tables.volume) }}{{ fail "tables.volume: say which volume has the tables, as {persistentVolumeClaim: {claimName: tables}}" }}{{ end }}
{{- if and (not .Values.tokens.secret) (not .Values.config.open) }}{{ fail "who may ask? Name a Secret of tokens in tokens.secret, or set config.open to true" }}{{ end }}
{{- if and .Values.tokens.secret .Values.config.open }}{{ fail "config.open is true, and tokens.secret is set: choose one" }}{{ end }}
{{- if and (index .Values.config "compact-at") (not .Values.tables.writable) }}{{ fail "config.compact-at writes tables: set tables.writable to true" }}{{ end }}
{{- if and .Values.tables.writable (gt (int .Values.replicas) 1) }}{{ fail "tables.writable: replicas must not share a volume that they write; set replicas to 1" }}{{ end }}
{{- $folders := list }}
{{- range .Values.tables.folders }}{{ $folders = append $folders (printf "/var/lib/hushdb/tables/%s" .) }}{{ end }}
{{- $settings := dict "tables" (concat $folders .Values.tables.urls) "listen" "0.0.0.0:7700" "listen-health" "0.0.0.0:7702" "keys" "/var/lib/hushdb/state/hushdb-keys.redb" }}
{{- if .Values.tables.urls }}{{ $_ := set $settings "cache" "/var/lib/hushdb/state/tables" }}{{ end }}
{{- if .Values.tls.secret }}
{{- $_ := set $settings "tls-cert" "/etc/hushdb/tls/tls.crt" }}
{{- $_ := set $settings "tls-key" "/etc/hushdb/tls/tls.key" }}
{{- with .Values.tls.clientCa }}{{ $_ := set $settings "tls-client-ca" (printf "/etc/hushdb/tls/%s" .) }}{{ end }}
{{- else if .Values.tls.clientCa }}{{ fail "tls.clientCa: only a server with a certificate asks for one: set tls.secret" }}
{{- end }}
{{- if .Values.tokens.secret }}{{ $_ := set $settings "tokens" (printf "/etc/hushdb/tokens/%s" .Values.tokens.key) }}{{ end }}
{{- range $key, $value := $settings }}
{{ $key }} = {{ toRawJson $value }}
{{- end }}
{{- range $key, $value := .Values.config }}
{{ $key }} = {{ toRawJson $value }}
{{- end }}
{{- end }}

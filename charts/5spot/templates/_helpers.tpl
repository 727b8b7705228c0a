{{- define "5spot.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimAll "-" }}
{{- end }}

{{- /* Helm takes dots in the name of a release; Services and the hosts of a StatefulSet do not. */}}
{{- define "5spot.fullname" -}}
{{- $name := include "5spot.name" . }}
{{- $own := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $own .Values.fullnameOverride | replace "." "-" | trunc 40 | trimAll "-" }}
{{- end }}

{{- /* Releases of Kubernetes that are still in use take only names of Services that begin with a letter. */}}
{{- define "5spot.serviceName" -}}
{{- $name := include "5spot.fullname" . | replace "5spot" "fivespot" }}
{{- regexMatch "^[a-z]" $name | ternary $name (printf "s-%s" $name) }}
{{- end }}

{{- define "5spot.webhookService" -}}
{{ include "5spot.serviceName" . }}-webhook
{{- end }}

{{- define "5spot.metricsService" -}}
{{ include "5spot.serviceName" . }}-metrics
{{- end }}

{{- define "5spot.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "5spot.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "5spot.certificateSecret" -}}
{{ include "5spot.fullname" . }}-webhook-certificates
{{- end }}

{{- /* Of cert-manager; not the one of the operator, which pods of before a switch still keep right. */}}
{{- define "5spot.issuedSecret" -}}
{{ include "5spot.fullname" . }}-webhook-tls
{{- end }}

{{- define "5spot.authoritySecret" -}}
{{ include "5spot.fullname" . }}-webhook-ca
{{- end }}

{{- define "5spot.selectorLabels" -}}
app.kubernetes.io/name: {{ include "5spot.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{- /* Of the pod of `helm test`. */}}
{{- define "5spot.checkLabels" -}}
app.kubernetes.io/name: {{ include "5spot.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: check
{{- end }}

{{- /* What selectors and Helm go by stays; what only describes, commonLabels may replace. */}}
{{- define "5spot.labels" -}}
{{- $kept := set (include "5spot.selectorLabels" . | fromYaml) "app.kubernetes.io/managed-by" .Release.Service }}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- $rest := dict "helm.sh/chart" $chart "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/part-of" "5spot" }}
{{- toYaml (merge $kept (default dict .Values.commonLabels) $rest) }}
{{- end }}

{{- /* The same with more of one kind of object, which win. */}}
{{- define "5spot.labelsAnd" -}}
{{- toYaml (mergeOverwrite (include "5spot.labels" .root | fromYaml) (default dict .more)) }}
{{- end }}

{{- define "5spot.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- if hasPrefix "REGISTRY/" .Values.image.repository }}
{{- fail (printf "image.repository: %s is a placeholder; set the repository that your nodes pull the image from, such as --set image.repository=registry.example.com/5spot" .Values.image.repository) }}
{{- end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else if eq $tag "latest" }}
{{- fail "image.tag: latest is a different image every day; name a version" }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{- /* Pods: at least one for each shard. */}}
{{- define "5spot.replicas" -}}
{{ max (int .Values.replicas) (int .Values.shards) }}
{{- end }}

{{- define "5spot.selfManaged" -}}
{{- if and .Values.webhooks.enabled (eq .Values.webhooks.certificates "self-managed") }}true{{ end }}
{{- end }}

{{- define "5spot.certManager" -}}
{{- if and .Values.webhooks.enabled (eq .Values.webhooks.certificates "cert-manager") }}true{{ end }}
{{- end }}

{{- define "5spot.leases" -}}
{{- if ne (toString (dig "leases" true .Values.settings)) "false" }}true{{ end }}
{{- end }}

{{- /* One kind after the other; `null` takes one off the list. */}}
{{- define "5spot.hostIdentity" -}}
{{- $entries := list }}
{{- range $kind, $fields := .Values.providers.hostIdentity }}
{{- if $fields }}
{{- $entries = append $entries (printf "%s: %s" $kind $fields) }}
{{- end }}
{{- end }}
{{- join "; " $entries }}
{{- end }}

{{- /* Whether callers of the webhooks must present a certificate. */}}
{{- define "5spot.clientCA" -}}
{{- if and .Values.webhooks.enabled .Values.webhooks.clientCASecret }}true{{ end }}
{{- end }}

{{- /* Settings of `5spot run`, as environment variables. */}}
{{- define "5spot.env" -}}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: OPERATOR_INSTANCE_COUNT
  value: {{ .Values.shards | quote }}
{{- with .Values.watchNamespaces }}
- name: FIVESPOT_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
- name: FIVESPOT_BOOTSTRAP_GROUPS
  value: {{ join "," .Values.providers.bootstrapGroups | quote }}
- name: FIVESPOT_INFRASTRUCTURE_GROUPS
  value: {{ join "," .Values.providers.infrastructureGroups | quote }}
- name: FIVESPOT_BOOTSTRAP_KINDS
  value: {{ join "," .Values.providers.bootstrapKinds | quote }}
- name: FIVESPOT_INFRASTRUCTURE_KINDS
  value: {{ join "," .Values.providers.infrastructureKinds | quote }}
- name: FIVESPOT_REFUSED_KINDS
  value: {{ join "," .Values.providers.refusedKinds | quote }}
- name: FIVESPOT_HOST_IDENTITY
  value: {{ include "5spot.hostIdentity" . | quote }}
{{- if .Values.calendars.configMaps }}
- name: FIVESPOT_CALENDAR_CONFIG_MAPS
  value: "true"
{{- end }}
{{- if and .Values.dashboard.enabled .Values.dashboard.machines (not (hasKey .Values.settings "machineMetrics")) }}
- name: FIVESPOT_MACHINE_METRICS
  value: "true"
{{- end }}
- name: FIVESPOT_WEBHOOKS
  value: {{ .Values.webhooks.enabled | quote }}
{{- if include "5spot.selfManaged" . }}
- name: FIVESPOT_CERTIFICATES
  value: self-managed
- name: FIVESPOT_CERTIFICATE_SECRET
  value: {{ include "5spot.certificateSecret" . }}
- name: FIVESPOT_WEBHOOK_SERVICE
  value: {{ include "5spot.webhookService" . }}
{{- else if include "5spot.certManager" . }}
- name: FIVESPOT_CERTIFICATES
  value: files
- name: FIVESPOT_CERTIFICATE_FILE
  value: /certificates/tls.crt
- name: FIVESPOT_KEY_FILE
  value: /certificates/tls.key
- name: FIVESPOT_AUTHORITY_FILE
  value: /certificates/ca.crt
{{- end }}
{{- if .Values.webhooks.enabled }}
- name: FIVESPOT_VALIDATING_CONFIGURATION
  value: {{ include "5spot.fullname" . }}-validating
- name: FIVESPOT_MUTATING_CONFIGURATION
  value: {{ include "5spot.fullname" . }}-mutating
{{- end }}
{{- if include "5spot.clientCA" . }}
- name: FIVESPOT_WEBHOOK_CLIENT_CA_FILE
  value: /client-ca/ca.crt
{{- end }}
{{- with .Values.notifications.url }}
- name: FIVESPOT_NOTIFY_URL
  value: {{ . | quote }}
{{- end }}
{{- if .Values.notifications.secret }}
- name: FIVESPOT_NOTIFY_SECRET_FOLDER
  value: /notifications
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: FIVESPOT_{{ $name | snakecase | upper }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

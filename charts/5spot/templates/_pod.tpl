{{- define "5spot.podTemplate" -}}
metadata:
  labels:
    {{- $kept := include "5spot.selectorLabels" . | fromYaml }}
    {{- toYaml (merge $kept (default dict .Values.podLabels) (include "5spot.labels" . | fromYaml)) | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "5spot.serviceAccountName" . | quote }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: operator
      image: {{ include "5spot.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [5spot, run]
      env:
        {{- include "5spot.env" . | nindent 8 }}
      ports:
        {{- if .Values.webhooks.enabled }}
        - name: webhooks
          containerPort: 9443
        {{- end }}
        - name: metrics
          containerPort: 8080
        - name: health
          containerPort: 8081
      startupProbe:
        httpGet:
          path: /health
          port: health
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet:
          path: /health
          port: health
        periodSeconds: 10
        timeoutSeconds: 5
        # A process that does not answer does not end in good order either: do not wait out the whole grace.
        terminationGracePeriodSeconds: 5
      readinessProbe:
        httpGet:
          path: /ready
          port: health
        periodSeconds: 5
        timeoutSeconds: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      {{- if or (include "5spot.certManager" .) (include "5spot.clientCA" .) .Values.notifications.secret }}
      volumeMounts:
        {{- if include "5spot.certManager" . }}
        - name: certificates
          mountPath: /certificates
          readOnly: true
        {{- end }}
        {{- if include "5spot.clientCA" . }}
        - name: client-ca
          mountPath: /client-ca
          readOnly: true
        {{- end }}
        {{- if .Values.notifications.secret }}
        - name: notifications
          mountPath: /notifications
          readOnly: true
        {{- end }}
      {{- end }}
  {{- if or (include "5spot.certManager" .) (include "5spot.clientCA" .) .Values.notifications.secret }}
  volumes:
    {{- if include "5spot.certManager" . }}
    - name: certificates
      secret:
        secretName: {{ include "5spot.issuedSecret" . }}
    {{- end }}
    {{- if include "5spot.clientCA" . }}
    - name: client-ca
      secret:
        secretName: {{ .Values.webhooks.clientCASecret | quote }}
        items:
          - key: ca.crt
            path: ca.crt
    {{- end }}
    {{- with .Values.notifications.secret }}
    - name: notifications
      secret:
        secretName: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- $default := list }}
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    {{- $default = append $default (dict "topologyKey" $key "maxSkew" 1 "whenUnsatisfiable" "ScheduleAnyway") }}
    {{- end }}
    {{- $selector := dict "labelSelector" (dict "matchLabels" (include "5spot.selectorLabels" . | fromYaml)) }}
    {{- range default $default .Values.topologySpreadConstraints }}
    - {{- toYaml (merge . $selector) | nindent 6 }}
    {{- end }}
{{- end }}

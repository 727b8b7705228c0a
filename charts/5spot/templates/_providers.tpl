{{- /* What is generated for the default providers, CRD and policies, for those that values name. */}}
{{- define "5spot.adapted" -}}
{{- $text := .text }}
{{- $default := dict "bootstrap" (list "bootstrap.cluster.x-k8s.io" "k0smotron.io") "infrastructure" (list "infrastructure.cluster.x-k8s.io" "k0smotron.io") }}
{{- range $part, $groups := $default }}
{{- $wanted := get $.values (printf "%sGroups" $part) | uniq | sortAlpha }}
{{- range $subject := list "self" (printf "variables.%s.apiVersion" $part) }}
{{- $parts := list }}
{{- range $groups }}
{{- $parts = append $parts (printf "%s.startsWith('%s/')" $subject . | replace "." "[.]" | replace "(" "[(]" | replace ")" "[)]") }}
{{- end }}
{{- $rules := list }}
{{- range $wanted }}
{{- $rules = append $rules (printf "%s.startsWith('%s/')" $subject .) }}
{{- end }}
{{- $text = regexReplaceAllLiteral (join "\\s+[|][|]\\s+" $parts) $text (join " || " $rules) }}
{{- end }}
{{- $text = replace (printf "allowed: %s" (join ", " $groups)) (printf "allowed: %s" (join ", " $wanted)) $text }}
{{- end }}
{{- $refused := list "*Template" "*List" "*Cluster" "*ControlPlane" "JoinTokenRequest" }}
{{- $text = replace (join "|" $refused | replace "*" ".*" | printf "^(%s)$") (join "|" .values.refusedKinds | replace "*" ".*" | printf "^(%s)$") $text }}
{{- $text = replace (printf "refused: %s" (join ", " $refused)) (printf "refused: %s" (join ", " .values.refusedKinds)) $text }}
{{- $text }}
{{- end }}

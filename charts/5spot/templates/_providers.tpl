{{- /*
What is generated for the default providers, CRD and policies, for those that values name. Each default text gives way to
a mark first and the marks to what is wanted afterwards, so that a wanted text that equals another default stays. YAML may
break lines at any space.
*/}}
{{- define "5spot.adapted" -}}
{{- $refused := list "*Template" "*List" "*Cluster" "*ControlPlane" "*Pool" "*Identity" "JoinTokenRequest" "K0sControllerConfig" "PooledRemoteMachine" }}
{{- $pairs := list
  (list (include "5spot.kinds" $refused) (include "5spot.kinds" .values.refusedKinds))
  (list (printf "but not %s" (join ", " $refused)) (printf "but not %s" (join ", " .values.refusedKinds)))
}}
{{- $default := dict
  "bootstrap" (dict "groups" (list "bootstrap.cluster.x-k8s.io" "k0smotron.io") "kinds" (list "*Config"))
  "infrastructure" (dict "groups" (list "infrastructure.cluster.x-k8s.io" "k0smotron.io") "kinds" (list "*Machine"))
}}
{{- range $part, $own := $default }}
{{- $groups := get $.values (printf "%sGroups" $part) | uniq | sortAlpha }}
{{- $kinds := get $.values (printf "%sKinds" $part) }}
{{- range $subject := list "self" (printf "variables.%s.apiVersion" $part) }}
{{- $pairs = append $pairs (list (include "5spot.groups" (list $subject $own.groups)) (include "5spot.groups" (list $subject $groups))) }}
{{- end }}
{{- $pairs = append $pairs (list (printf "allowed: %s" (join ", " $own.groups)) (printf "allowed: %s" (join ", " $groups))) }}
{{- $pairs = append $pairs (list (include "5spot.kinds" $own.kinds) (include "5spot.kinds" $kinds)) }}
{{- $pairs = append $pairs (list (printf "allowed: %s," (join ", " $own.kinds)) (printf "allowed: %s," (join ", " $kinds))) }}
{{- end }}
{{- $text := .text }}
{{- range $number, $pair := $pairs }}
{{- $text = regexReplaceAllLiteral (first $pair | regexQuoteMeta | replace " " "\\s+") $text (printf "@%d@" $number) }}
{{- end }}
{{- range $number, $pair := $pairs }}
{{- $text = replace (printf "@%d@" $number) (last $pair) $text }}
{{- end }}
{{- $text }}
{{- end }}

{{- define "5spot.kinds" -}}
{{ join "|" . | replace "*" ".*" | printf "^(%s)$" }}
{{- end }}

{{- define "5spot.groups" -}}
{{- $subject := first . }}
{{- $rules := list }}
{{- range last . }}
{{- $rules = append $rules (printf "%s.startsWith('%s/')" $subject .) }}
{{- end }}
{{- join " || " $rules }}
{{- end }}

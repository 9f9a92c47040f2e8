{{/* Objects come from the folder config, which is generated from the kustomize bases. A template changes what values say. */}}

{{/* slipway.check refuses values that contradict each other. */}}
{{- define "slipway.check" -}}
{{- if .Values.namespaces -}}
  {{- if .Values.webhook.enabled -}}
    {{- fail "webhook.enabled: an install that is limited to namespaces has no rights in the whole cluster, and a webhook needs some: leave it out, or leave namespaces empty" -}}
  {{- end -}}
  {{- if .Values.monitor.enabled -}}
    {{- fail "monitor.enabled: an install that is limited to namespaces has no rights in the whole cluster, and the monitor needs some: leave it out, or leave namespaces empty" -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.metrics.certificateSecret (not .Values.metrics.authentication) -}}
  {{- fail "metrics.certificateSecret: metrics.authentication is false, so nothing is served with it" -}}
{{- end -}}
{{- if and .Values.webhook.enabled (not .Values.gateway.enabled) (not .Values.backup.enabled) -}}
  {{- fail "webhook.enabled: gateway.enabled and backup.enabled are false, and the webhook is for APIGateways and Backups alone: leave it out, or set one of them to true" -}}
{{- end -}}
{{- if and (not .Values.gateway.classes) (not .Values.namespaces) -}}
  {{- fail "gateway.classes: namespaces is empty, so the operator has rights in the whole cluster, and those to GatewayClasses are among them: leave it out, or set namespaces" -}}
{{- end -}}
{{- if and .Values.gatewayAPI.install (not .Values.gateway.enabled) -}}
  {{- fail "gatewayAPI.install: gateway.enabled is false, so nothing of Slipway uses the Gateway API: leave it out, or set gateway.enabled=true" -}}
{{- end -}}
{{- if and .Values.gatewayAPI.install (not (lookup "v1" "Namespace" "" "default")) -}}
  {{- fail "gatewayAPI.install: Helm does not look at a cluster here, so it cannot tell which CustomResourceDefinitions are there: use --dry-run=server, or leave it out and install them with kubectl, as docs/install.md explains" -}}
{{- end -}}
{{- if and .Values.backup.hooks.enabled (not .Values.backup.enabled) -}}
  {{- fail "backup.hooks.enabled: backup.enabled is false, so there are no hooks to run: leave it out, or set backup.enabled=true" -}}
{{- end -}}
{{- if not (include "slipway.monitor" .) -}}
  {{- range $name := list "include" "exclude" "builtin" "config" "resources" -}}
    {{- if index $.Values.monitor $name -}}
      {{- fail (printf "monitor.%s: there is no monitor, because monitor.enabled is false or namespaces is set: leave it out" $name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range $name := list "metricsFrom" "clientsFrom" "gatewayNamespaces" -}}
  {{- if and (index $.Values.networkPolicy $name) (not $.Values.networkPolicy.enabled) -}}
    {{- fail (printf "networkPolicy.%s: networkPolicy.enabled is false, so there is no policy that it would change: leave it out, or set networkPolicy.enabled=true" $name) -}}
  {{- end -}}
{{- end -}}
{{- range $name := list "clientsFrom" "gatewayNamespaces" -}}
  {{- if and (index $.Values.networkPolicy $name) (not $.Values.gateway.enabled) -}}
    {{- fail (printf "networkPolicy.%s: gateway.enabled is false, so gateways get no policy: leave it out, or set gateway.enabled=true" $name) -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* slipway.webhook: "true" where the admission webhook is on. */}}
{{- define "slipway.webhook" -}}
{{- if and (or .Values.gateway.enabled .Values.backup.enabled) (not .Values.namespaces) (ne (toString .Values.webhook.enabled) "false") }}true{{ end -}}
{{- end }}

{{/* slipway.monitor: "true" where the monitor runs. */}}
{{- define "slipway.monitor" -}}
{{- if and (not .Values.namespaces) (ne (toString .Values.monitor.enabled) "false") }}true{{ end -}}
{{- end }}

{{/* slipway.authentication: "true" where the API server says who may read the metrics. */}}
{{- define "slipway.authentication" -}}
{{- if and .Values.metrics.enabled .Values.metrics.authentication }}true{{ end -}}
{{- end }}

{{/* slipway.hooks: "true" where the operator runs hooks of Backups. */}}
{{- define "slipway.hooks" -}}
{{- if and .Values.backup.enabled .Values.backup.hooks.enabled }}true{{ end -}}
{{- end }}

{{/* slipway.off: the controllers that do not run, with spaces between them. monitorkinds is none: it has a flag of its own. */}}
{{- define "slipway.off" -}}
{{- $off := list -}}
{{- if not .Values.gateway.enabled }}{{ $off = append $off "apigateway" }}{{ end -}}
{{- if not .Values.gateway.enabled }}{{ $off = append $off "gateway" }}{{ end -}}
{{- if not .Values.backup.enabled }}{{ $off = concat $off (list "backup" "backuprun" "restore") }}{{ end -}}
{{- if not (include "slipway.monitor" .) }}{{ $off = append $off "monitorkinds" }}{{ end -}}
{{- join " " $off -}}
{{- end }}

{{/* slipway.userRoles: "true" where the ClusterRoles for users are made. */}}
{{- define "slipway.userRoles" -}}
{{- if kindIs "bool" .Values.userRoles.create -}}
  {{- if .Values.userRoles.create }}true{{ end -}}
{{- else if not .Values.namespaces }}true{{ end -}}
{{- end }}

{{/* slipway.image: the name of an image. Takes root and image. */}}
{{- define "slipway.image" -}}
{{- with .root.Values.images.registry }}{{ . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* slipway.object: an object, in the release's namespace or the given one, with the release's labels. Takes root, object and namespace. */}}
{{- define "slipway.object" -}}
{{- $root := .root -}}
{{- $object := .object -}}
{{- $metadata := $object.metadata -}}
{{- if or .namespace (hasKey $metadata "namespace") -}}
  {{- $_ := set $metadata "namespace" (.namespace | default $root.Release.Namespace) -}}
{{- end -}}
{{- range $object.subjects -}}
  {{- $_ := set . "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- if $object.webhooks -}}
  {{- $webhooks := list -}}
  {{- range $object.webhooks -}}
    {{- $_ := set .clientConfig.service "namespace" $root.Release.Namespace -}}
    {{- $off := dict "apigateways.slipway.dev" (not $root.Values.gateway.enabled) "backups.slipway.dev" (not $root.Values.backup.enabled) -}}
    {{- if not (get $off .name) }}{{ $webhooks = append $webhooks . }}{{ end -}}
  {{- end -}}
  {{- $_ := set $object "webhooks" $webhooks -}}
{{- end -}}
{{- $release := dict "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $metadata "labels" (merge $release ($metadata.labels | default dict)) -}}
---
{{ toYaml $object }}
{{ end }}

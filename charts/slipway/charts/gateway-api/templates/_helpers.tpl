{{/*
gateway-api.outdated: "true" for a CustomResourceDefinition in the cluster that this release has installed, and that is to be replaced
by the chart's. One of a newer version is not, nor one of the experimental channel by one of the standard channel: objects would lose
fields. Takes root, crd and there.
*/}}
{{- define "gateway-api.outdated" -}}
{{- $release := .root.Release -}}
{{- $annotations := .there.metadata.annotations | default dict -}}
{{- $labels := .there.metadata.labels | default dict -}}
{{- $named := and (eq (get $annotations "meta.helm.sh/release-name") $release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $release.Namespace) -}}
{{- $own := and $named (eq (get $labels "app.kubernetes.io/managed-by") $release.Service) -}}
{{- $before := get $annotations "gateway.networking.k8s.io/bundle-version" -}}
{{- if and $own (regexMatch "^v[0-9]+\\.[0-9]+\\.[0-9]+" $before) -}}
  {{- $after := get .crd.metadata.annotations "gateway.networking.k8s.io/bundle-version" -}}
  {{- $step := (semver $after).Compare (semver $before) -}}
  {{- $from := get $annotations "gateway.networking.k8s.io/channel" -}}
  {{- $to := get .crd.metadata.annotations "gateway.networking.k8s.io/channel" -}}
  {{- if eq $from $to -}}
    {{- if gt $step 0 }}true{{ end -}}
  {{- else if eq $to "experimental" -}}
    {{- if ge $step 0 }}true{{ end -}}
  {{- end -}}
{{- end -}}
{{- end }}

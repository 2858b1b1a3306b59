{{/* The image of a component: a list of the root and the name in .Values.images. */}}
{{- define "podvisor.image" -}}
{{- $values := (index . 0).Values -}}
{{- $image := index $values.images (index . 1) -}}
{{- if $values.registry }}{{ $values.registry }}/{{ base $image }}{{ else }}{{ $image }}{{ end -}}
{{- end }}

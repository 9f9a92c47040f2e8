//go:build monitorbench

package monitorbench

import (
	"fmt"
	"strings"
)

// kind is a kind of objects.
type kind struct{ group, plural, name string }

func numbered(n int) kind {
	return kind{fmt.Sprintf("g%d.bench.example.com", n/5), fmt.Sprintf("kind%ds", n), fmt.Sprintf("Kind%d", n)}
}

func (k kind) version() string { return k.group + "/v1" }
func (k kind) crd() string     { return k.plural + "." + k.group }

// definition is the definition of a kind: a few fields with a type, as most have, and the rest free.
func (k kind) definition() string {
	return fmt.Sprintf(`"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"singular":%q,"kind":%q,"listKind":%q},"versions":[{"name":"v1","served":true,"storage":true,`+
		`"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"image":{"type":"string"},`+
		`"replicas":{"type":"integer"},"broken":{"type":"boolean"},"env":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],`+
		`"properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"conditions":{"type":"array",`+
		`"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type"],"x-kubernetes-preserve-unknown-fields":true,`+
		`"properties":{"type":{"type":"string"}}}}}}}}}}]}`, k.group, k.plural, strings.ToLower(k.name), k.name, k.name+"List")
}

// mixed makes a number of another that looks like a random one, always the same.
func mixed(n, salt int) uint64 {
	x := uint64(n)*0x9E3779B97F4A7C15 + uint64(salt)*0xBF58476D1CE4E5B9
	x ^= x >> 31
	x *= 0x94D049BB133111EB
	return x ^ x>>29
}

func uidOf(n int) string {
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", n, n%65536, mixed(n, 7)>>16)
}

var (
	prose = strings.Repeat("text that stays the same; ", 30)
	// managed are the entries that an API server adds: somebody applies the spec, and a controller writes the status.
	managed = `,"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"%[1]s","time":"2026-11-20T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:image":{},"f:replicas":{},` +
		`"f:broken":{},"f:note":{},"f:env":{"k:{\"name\":\"SETTING_0\"}":{".":{},"f:name":{},"f:value":{}}}}}},{"manager":"bench-controller","operation":"Update","apiVersion":"%[1]s","time":"2026-11-20T10:%02[2]d:%02[3]dZ",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:observedGeneration":{},"f:endpoint":{},"f:conditions":{}}},"subresource":"status"}]`
)

// appendObject appends object n as it is after some changes, about 2,000 bytes beside managedFields. Each third change is one of
// its spec, the others are of its status. When it is sent, it has what an API server adds.
func appendObject(b []byte, k kind, n int, resourceVersion string, sent bool, round int, broken bool) []byte {
	spec, status := (round+2)/3, round-(round+2)/3
	b = fmt.Appendf(b, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"object-%d","namespace":"default","labels":{"app":"web","tier":"%d"}`, k.version(), k.name, n, n%3)
	if resourceVersion != "" {
		b = fmt.Appendf(b, `,"resourceVersion":%q`, resourceVersion)
	}
	if sent {
		b = fmt.Appendf(b, `,"uid":%q,"generation":%d,"creationTimestamp":"2026-11-20T09:00:00Z"`, uidOf(n), spec+1)
		b = fmt.Appendf(b, managed, k.version(), status/60%60, status%60)
	}
	b = fmt.Appendf(b, `},"spec":{"image":"registry.example.com/team/app:%016x","replicas":%d,"broken":%t,"env":[`, mixed(n, spec), spec%9, broken)
	for i := range 12 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"SETTING_%d","value":"%016x"}`, i, mixed(n, 1000+i))
	}
	b = append(b, `],"note":"`...)
	b = append(b, prose...)
	ready, reason := "True", "AllReplicasReady"
	if status%2 == 1 {
		ready, reason = "False", "Progressing"
	}
	return fmt.Appendf(b, `"},"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"waiting for pod app-%08x to become ready"},`+
		`{"type":"Progressing","status":"False","reason":"Complete","message":"revision %x is rolled out"}],"endpoint":"10.%d.%d.%d:8080"}}`,
		status, ready, reason, uint32(mixed(n, status)), n, n%250, n/250%250, n%99)
}

package change_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// anyValue makes a value out of names and texts that the package treats in different ways.
func anyValue(s *generate.Source, depth int) any {
	if depth == 0 {
		return anyScalar(s)
	}
	switch s.Below(6) {
	case 0, 1:
		return anyObject(s, depth-1)
	case 2:
		return anyList(s, depth-1)
	case 3:
		return anyItems(s, depth-1)
	}
	return anyScalar(s)
}

func anyScalar(s *generate.Source) any {
	switch s.Below(8) {
	case 0:
		return nil
	case 1:
		return s.Maybe()
	case 2:
		return json.Number(generate.Pick(s, "0", "1", "-2.50", "1e3", "9007199254740993"))
	case 3:
		return s.Text()
	case 4:
		return generate.Pick(s, `{"password":"x"}`, `[{"name":"a"}]`, "token=x", "--password", "-token", "https://u:p@h", "redacted:hmac:0123456789abcdef", "Secret", "v1")
	}
	return s.Word()
}

func anyName(s *generate.Source) string {
	return generate.Pick(s, "a", "b", "name", "key", "value", "values", "type", "status", "password", "credentials", "secretRef", "secretTemplate", "tokens",
		"pass", "passwordFile", "tags", "ports", "port", "protocol", "rules", "conditions", "lastTransitionTime", "ownerReferences", "uid", "finalizers",
		"resourceRefs", "kind", "apiVersion", "metadata", "data", "stringData", "manifest", "env", "initContainers", "volumes", "args", "odd name", `q"[]=`,
		"0", "ghp_0123456789abcdefghijABCDEFGHIJ456789", "generation", "open", "login", "kubectl.kubernetes.io/last-applied-configuration", "")
}

func anyObject(s *generate.Source, depth int) map[string]any {
	result := map[string]any{}
	for range s.Below(6) {
		result[anyName(s)] = anyValue(s, depth)
	}
	return result
}

func anyList(s *generate.Source, depth int) []any {
	result := []any{}
	for range s.Below(7) {
		result = append(result, anyValue(s, depth))
	}
	return result
}

// anyItems makes a list of objects with keys.
func anyItems(s *generate.Source, depth int) []any {
	key := generate.Pick(s, "name", "type", "uid", "port", "key", "mountPath")
	result := []any{}
	for i := range s.Below(6) {
		item := map[string]any{key: fmt.Sprint(generate.Pick(s, "a", "b", "c", "DB_PASSWORD", `"]`), i*s.Below(2))}
		if depth > 0 && s.Maybe() {
			item[anyName(s)] = anyValue(s, depth-1)
		}
		result = append(result, item)
	}
	return result
}

// anyWidget makes an object.
func anyWidget(s *generate.Source) map[string]any {
	metadata := anyObject(s, 1)
	metadata["name"], metadata["uid"] = "one", "u-1"
	metadata["resourceVersion"] = fmt.Sprint(1 + s.Below(3))
	if s.Maybe() {
		metadata["annotations"] = anyObject(s, 1)
	}
	result := map[string]any{"metadata": metadata, "spec": anyObject(s, 4)}
	if s.Maybe() {
		result["status"] = anyObject(s, 3)
	}
	return result
}

// mutate changes a value here and there.
func mutate(s *generate.Source, value any) any {
	if s.Below(12) == 1 {
		return anyValue(s, 2)
	}
	switch v := value.(type) {
	case map[string]any:
		result := maps.Clone(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if s.Below(10) == 1 {
				delete(result, key)
			} else {
				result[key] = mutate(s, v[key])
			}
		}
		if s.Below(5) == 1 {
			result[anyName(s)] = anyValue(s, 1)
		}
		return result
	case []any:
		result := make([]any, 0, len(v))
		for _, item := range v {
			switch s.Below(8) {
			case 1:
			case 2:
				result = append(result, anyValue(s, 1), item)
			default:
				result = append(result, mutate(s, item))
			}
		}
		if s.Below(6) == 1 {
			slices.Reverse(result)
		}
		return result
	}
	return value
}

func mutateWidget(s *generate.Source, widget map[string]any) map[string]any {
	result, ok := mutate(s, widget).(map[string]any)
	if !ok {
		result = anyWidget(s)
	}
	metadata, ok := result["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["uid"], metadata["resourceVersion"] = "one", "u-1", "9"
	result["metadata"] = metadata
	return result
}

// write writes a value as JSON, with members in a random order if there is a source of it.
func write(value any, random *rand.Rand) []byte {
	var b bytes.Buffer
	writeTo(&b, value, random)
	return b.Bytes()
}

func writeTo(b *bytes.Buffer, value any, random *rand.Rand) {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if random != nil {
			random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		b.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			text, _ := json.Marshal(key)
			b.Write(text)
			b.WriteByte(':')
			writeTo(b, v[key], random)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeTo(b, item, random)
		}
		b.WriteByte(']')
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

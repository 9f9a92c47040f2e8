package feature

import (
	"encoding/json"
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// maxDuration is the longest duration that a field may have.
const maxDuration = 24 * time.Hour

// Duration reads a duration of a spec. The fallback is for an empty one.
func Duration(field string, text slipwayv1alpha1.Duration, fallback time.Duration) (time.Duration, *model.Fault) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > maxDuration {
		return 0, model.Invalid("%s: %q is not a duration such as 500ms or 10s of at most 24h", field, text)
	}
	return d, nil
}

// Describe returns equal texts for equal plain data, and different texts for different ones.
func Describe(data any) string {
	text, err := json.Marshal(data)
	if err != nil { // cannot happen for plain data
		return fmt.Sprintf("%+v", data)
	}
	return string(text)
}

// Words returns the elements of a list as plain text.
func Words[T ~string](list []T) []string {
	var out []string
	for _, word := range list {
		out = append(out, string(word))
	}
	return out
}

// Value returns what the pointer points to, or the default.
func Value[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}

package crdcheck

import (
	"encoding/json"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxValue is how many characters of a value a message shows, maxMessage how many characters it has.
const (
	maxValue   = 80
	maxMessage = 400
)

// shorten cuts a text to so many characters, with three dots for what is cut.
func shorten(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	count := 0
	for i := range text {
		if count == limit-3 {
			return text[:i] + "..."
		}
		count++
	}
	return text
}

// canonical returns a value as JSON in which equal values are equal texts.
func canonical(value apiextensionsv1.JSON) string {
	var decoded any
	if err := utiljson.Unmarshal(value.Raw, &decoded); err != nil {
		return string(value.Raw)
	}
	return jsonOf(decoded)
}

// jsonOf returns a value as JSON. Keys are sorted.
func jsonOf(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// show is a value in a message.
func show(value any) string { return shorten(jsonOf(value), maxValue) }

package health

import (
	"fmt"
	"regexp"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// What the API server puts before the reason why it refuses a pod, with the name of one
// that never existed.
var (
	forbiddenPod = regexp.MustCompile(`^pods "([^"]*)" is forbidden: `)
	invalidPod   = regexp.MustCompile(`^Pod "([^"]*)" is invalid: `)
)

// What a LimitRange says, which does not say its name.
var limitRange = regexp.MustCompile(`(?:(?:minimum|maximum) (\S+) usage per \S+ is .*?(request|limit)|(\S+) max limit to request ratio per)\b`)

// podCreation classifies the answer of the API server to the creation of a pod. subject
// is what creates it.
func podCreation(subject, answer string) Verdict {
	answer, forbidden := withoutPod(answer)
	failed := func(reason, format string, args ...any) Verdict {
		return Verdict{State: Failed, Reason: reason, Message: subject + " cannot create its pods: " + fmt.Sprintf(format, args...)}
	}
	if text, ok := Quota(answer); ok {
		return failed(slipwayv1alpha1.ReasonQuotaExceeded, "%s", text)
	}
	switch {
	case strings.Contains(answer, "error looking up service account"):
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s (spec.serviceAccountName)", answer)
	case limitRange.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "a LimitRange of the namespace does not allow them: %s%s", answer, inField(strings.Join(limitedFields(answer), ", ")))
	case forbidden, contains(answer, "is forbidden", "violates PodSecurity", "denied the request", "denied request"):
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s", answer)
	default:
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s", withoutAddresses(answer))
	}
}

// withoutPod takes away from an answer what names the pod, and tells whether it said that
// the pod is forbidden.
func withoutPod(answer string) (text string, forbidden bool) {
	for _, prefix := range []*regexp.Regexp{forbiddenPod, invalidPod} {
		if m := prefix.FindStringSubmatch(answer); m != nil {
			text := answer[len(m[0]):]
			if m[1] != "" {
				text = strings.ReplaceAll(text, m[1], "...")
			}
			return text, prefix == forbiddenPod
		}
	}
	return answer, false
}

// limitedFields are the fields of the spec that a LimitRange speaks of, each once.
func limitedFields(answer string) []string {
	var fields []string
	for _, m := range limitRange.FindAllStringSubmatch(answer, -1) {
		field := "spec.resources." + m[2] + "s." + m[1]
		if m[3] != "" {
			field = "spec.resources.limits." + m[3]
		}
		if !contains(strings.Join(fields, " ")+" ", field+" ") {
			fields = append(fields, field)
		}
	}
	return fields
}

// Addresses in the texts of programs that talk to each other: of pods, and with ports
// that differ at every attempt.
var address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?(->\d{1,3}(\.\d{1,3}){3}(:\d+)?)?|\[[0-9a-fA-F:]*:[0-9a-fA-F:]*\](:\d+)?(->\[[0-9a-fA-F:]*\](:\d+)?)?`)

// withoutAddresses takes IP addresses out of a text.
func withoutAddresses(text string) string { return address.ReplaceAllString(text, "(address)") }

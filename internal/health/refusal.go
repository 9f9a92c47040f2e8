package health

import (
	"fmt"
	"regexp"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// These are the prefixes of the API server's answer when it refuses a pod. They contain the
// name of a pod that never existed, or none if the creator may not create any.
var (
	forbiddenPod = regexp.MustCompile(`^pods(?: "([^"]*)")? is forbidden: `)
	invalidPod   = regexp.MustCompile(`^Pod "([^"]*)" is invalid: `)
)

// These are the beginnings of what the API server's plug-ins and others answer. What comes
// after them may be anything: an author of a policy, or the spec of the pod, chose it.
var (
	deniedByWebhook = regexp.MustCompile(`^admission webhook "[^"]*" denied the request\b`)
	noAccount       = regexp.MustCompile(`^error looking up service account `)
)

// limitRange matches the beginning of an answer of a LimitRange, and limit each of its
// parts. They do not contain the name of the LimitRange.
var (
	limitRange = regexp.MustCompile(`^\[?` + limitText)
	limit      = regexp.MustCompile(limitText)
)

const limitText = `(?:(?:minimum|maximum) (\S+) usage per \S+ is .*?(request|limit)|(\S+) max limit to request ratio per)\b`

// podCreation classifies the API server's answer to the creation of a pod, by how it
// begins. subject is the object that creates the pod.
func podCreation(subject, answer string) Verdict {
	answer, forbidden := withoutPod(answer)
	failed := func(reason, format string, args ...any) Verdict {
		return Verdict{State: Failed, Reason: reason, Message: subject + " cannot create its pods: " + fmt.Sprintf(format, args...)}
	}
	if !forbidden {
		if deniedByWebhook.MatchString(answer) {
			return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s", answer)
		}
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s", withoutAddresses(answer))
	}
	if text, ok := quota(answer); ok {
		return failed(slipwayv1alpha1.ReasonQuotaExceeded, "%s", text)
	}
	switch {
	case noAccount.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s (spec.serviceAccountName)", answer)
	case limitRange.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "a LimitRange of the namespace does not allow them: %s%s", answer, inField(strings.Join(limitedFields(answer), ", ")))
	default:
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s", answer)
	}
}

// withoutPod removes the pod's name from an answer. It reports whether the answer says that
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

// limitedFields returns the fields of the spec that the answer of a LimitRange is about,
// without duplicates.
func limitedFields(answer string) []string {
	var fields []string
	for _, m := range limit.FindAllStringSubmatch(answer, -1) {
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

// address matches addresses in the messages of network programs. Pod addresses and ports
// differ at every attempt.
var address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?(->\d{1,3}(\.\d{1,3}){3}(:\d+)?)?|\[[0-9a-fA-F:]*:[0-9a-fA-F:]*\](:\d+)?(->\[[0-9a-fA-F:]*\](:\d+)?)?`)

// withoutAddresses replaces the IP addresses in a text.
func withoutAddresses(text string) string { return address.ReplaceAllString(text, "(address)") }

package health

import (
	"fmt"
	"regexp"
	"strings"
)

// What the API server says of an object that a quota does not allow: that it uses too
// much, or that it does not say how much it uses.
var (
	exceededQuota = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)`)
	failedQuota   = regexp.MustCompile(`failed quota: ([^:]+): (must specify .*)$`)
	unspecified   = regexp.MustCompile(`(\S+) for: [^;]*`)
)

// Quota puts the answer of the API server to what a ResourceQuota does not allow into
// words: what is asked for and by which field of the spec, what is used and what there is.
// It is false for any other answer.
func Quota(answer string) (string, bool) {
	if m := failedQuota.FindStringSubmatch(answer); m != nil {
		return fmt.Sprintf("ResourceQuota %q wants a value for every container: %s", m[1], unspecified.ReplaceAllStringFunc(m[2], func(part string) string {
			name := unspecified.FindStringSubmatch(part)[1]
			return part + inField(quotaField(name))
		})), true
	}
	m := exceededQuota.FindStringSubmatch(answer)
	if m == nil {
		return "", false
	}
	used, hard := amounts(m[3]), amounts(m[4])
	var parts []string
	for _, pair := range strings.Split(m[2], ",") {
		name, asked, _ := strings.Cut(pair, "=")
		parts = append(parts, fmt.Sprintf("%s=%s is asked for%s and %s of %s is used", name, asked, inField(quotaField(name)), used[name], hard[name]))
	}
	return fmt.Sprintf("ResourceQuota %q does not allow it: %s", m[1], strings.Join(parts, ", ")), true
}

// amounts reads name=value,name=value.
func amounts(list string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// quotaField is the field of the spec that asks for what a quota counts, or empty.
func quotaField(name string) string {
	switch {
	case name == "pods", name == "count/pods":
		return "spec.replicas"
	case name == "requests.storage":
		return "spec.storage.size"
	case strings.HasPrefix(name, "requests."), strings.HasPrefix(name, "limits."):
		return "spec.resources." + name
	case name == "cpu", name == "memory", name == "ephemeral-storage":
		return "spec.resources.requests." + name
	default:
		return ""
	}
}

// inField names a field in brackets, if there is one.
func inField(field string) string {
	if field == "" {
		return ""
	}
	return " (" + field + ")"
}

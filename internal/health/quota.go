package health

import (
	"fmt"
	"regexp"
	"strings"
)

// These are the API server's answers for an object that exceeds a quota, and for one that
// does not set the resources that a quota requires.
var (
	exceededQuota = regexp.MustCompile(`^exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)`)
	failedQuota   = regexp.MustCompile(`^failed quota: ([^:]+): (must specify .*)$`)
	unspecified   = regexp.MustCompile(`(\S+) for: [^;]*`)
)

// forbiddenObject is the prefix of the API server's answer when it forbids an object.
var forbiddenObject = regexp.MustCompile(`^\S+ "[^"]*" is forbidden: `)

const fieldReplicas = "spec.replicas"

// Quota explains the API server's answer for an object that a ResourceQuota does not allow:
// what is requested and by which field of the spec, what is used and what the quota is. It
// returns false for any other answer, a policy's for example, that only speaks of quotas.
func Quota(answer string) (string, bool) {
	return quota(answer[len(forbiddenObject.FindString(answer)):], ofWebApp)
}

// quota explains an answer without its prefix.
func quota(answer string, fields podFields) (string, bool) {
	if m := failedQuota.FindStringSubmatch(answer); m != nil {
		return fmt.Sprintf("ResourceQuota %q wants a value for every container: %s", m[1], unspecified.ReplaceAllStringFunc(m[2], func(part string) string {
			name := unspecified.FindStringSubmatch(part)[1]
			return part + fields.in(quotaField(name, fields))
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
		parts = append(parts, fmt.Sprintf("%s=%s is asked for%s and %s of %s is used", name, asked, fields.in(quotaField(name, fields)), used[name], hard[name]))
	}
	return fmt.Sprintf("ResourceQuota %q does not allow it: %s", m[1], strings.Join(parts, ", ")), true
}

// amounts parses name=value,name=value.
func amounts(list string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// quotaField is the field of the spec for a resource of a quota, or "".
func quotaField(name string, fields podFields) string {
	switch {
	case name == "pods", name == "count/pods":
		return fields.replicas
	case name == "requests.storage":
		return fields.storage
	case strings.HasPrefix(name, "requests."), strings.HasPrefix(name, "limits."):
		return fields.resources + "." + name
	case name == "cpu", name == "memory", name == "ephemeral-storage":
		return fields.resources + ".requests." + name
	default:
		return ""
	}
}

// inField returns a field in brackets, or "" for no field.
func inField(field string) string {
	if field == "" {
		return ""
	}
	return " (" + field + ")"
}

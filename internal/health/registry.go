package health

import (
	"regexp"
	"strings"
)

// Reasons of the kubelet for a pull that failed.
const (
	reasonRegistryUnavailable = "RegistryUnavailable"
	reasonSignature           = "SignatureValidationFailed"
)

// pullAnswer is what a failed pull tells about the image.
type pullAnswer int

// The answers.
const (
	// pullUnanswered: nobody has said anything about the image.
	pullUnanswered pullAnswer = iota
	// pullDenied: the registry does not give the image to the one who asks.
	pullDenied
	// pullMissing: the registry does not have the image.
	pullMissing
)

// A message about a failed pull is a chain of errors, with ": " between them. Each part is one of a fixed set of texts, around
// what the user or the network chose: references, addresses, hosts. Most of that is in quotes, and none of it holds a space or
// is a whole part of the chain. So only whole parts count, without what is in quotes.
var (
	// quotation is a text as Go quotes it.
	quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// asksForStatus is the part before the status of an answer: containerd, its versions before 1.6, and the library of CRI-O.
	asksForStatus = regexp.MustCompile(`^(?:unexpected status(?: code \[[^\]]*\]| from [A-Z]+ request to \S+)?|received unexpected HTTP status)$`)
	asksForToken  = regexp.MustCompile(`^failed to fetch (?:anonymous|oauth) token$`)
	httpStatus    = regexp.MustCompile(`^(\d{3})(?:[ ,]|$)`)
)

// unreached are the parts after which nothing comes from the registry: it was not asked, or did not answer.
var unreached = regexp.MustCompile(`^(?:failed to do request|RegistryUnavailable|` +
	`image pull failed for \S+ because the registry is unavailable|failed to extract layer.*|failed to prepare extraction snapshot.*)$`)

// whole returns an expression for a whole part of a chain. These are the texts of containerd, of CRI-O's library, of Docker, and
// the codes of a registry (OCI distribution specification) in words.
func whole(parts ...string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join(parts, "|") + `)$`)
}

var (
	saysDenied = whole(
		`authorization failed`, `unauthorized`, `denied`, `authentication required`, `no basic auth credentials`, `invalid username/password`,
		`requested access to the resource is denied`, `failed to handle basic auth because missing username or secret`,
		`pull access denied, repository does not exist or may require authorization`,
		`pull access denied for \S+, repository does not exist or may require 'docker login'`,
	)
	saysMissing = whole(`not found`, `manifest unknown`, `name unknown`, `repository name not known to registry`, `manifest for \S+ not found`, `repository \S+ not found`)
)

// readPull reads what a failed pull tells. What it does not know tells nothing.
func readPull(message string) pullAnswer {
	message = quotation.ReplaceAllString(message, `""`)
	var denied, missing, status, token bool
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(message, ": ", "\n"), func(r rune) bool { return r == '\n' }) {
		code := ""
		if m := httpStatus.FindStringSubmatch(part); status && m != nil {
			code = m[1]
		}
		switch {
		case unreached.MatchString(part):
			return pullUnanswered
		case code == "401", code == "403", code == "" && saysDenied.MatchString(part):
			denied = true
		case code == "404" && !token, code == "" && saysMissing.MatchString(part):
			missing = true
		case code != "" && !denied && !missing:
			// The registry is busy or broken, whatever it says besides.
			return pullUnanswered
		}
		status = asksForStatus.MatchString(part)
		token = token || asksForToken.MatchString(part)
	}
	switch {
	case denied:
		return pullDenied
	case missing:
		return pullMissing
	default:
		return pullUnanswered
	}
}

// backingOff is how the kubelet's message begins while it waits before it pulls again. Then comes why the last pull failed, as
// the reason was called.
var backingOff = regexp.MustCompile(`^Back-off pulling image "(?:[^"\\]|\\.)*": ([A-Za-z]+): `)

// beforeBackOff returns the reason that the kubelet waits for, or "".
func beforeBackOff(message string) string {
	if m := backingOff.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

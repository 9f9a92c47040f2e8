package health

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// These identifiers in messages of container runtimes differ at every attempt.
var (
	podSuffix   = regexp.MustCompile(` \(pod: "[^"]*", container: [^)]*\)`)
	containerID = regexp.MustCompile(`[0-9a-f]{64}`)
)

func configError(message string) string { return podSuffix.ReplaceAllString(message, "") }

// These are the parts of a message of a container runtime that tell what cannot be done. Before them is its call chain. What is
// in quotes is as Go quotes it, so that no name ends it.
var (
	mounting  = regexp.MustCompile(`(?s)^(?:[^"]|"(?:[^"\\]|\\.)*")*?\berror mounting "(?:[^"\\]|\\.)*" to rootfs at ("(?:[^"\\]|\\.)*"): (.*)$`)
	executing = regexp.MustCompile(`(?s)^(?:[^"]|"(?:[^"\\]|\\.)*")*?\b(exec: ".*)$`)
	advice    = regexp.MustCompile(`: Are you trying to mount a directory onto a file.*$`)
)

// startError says why a container cannot be started: what is mounted where, or what is executed, and the cause. What is too long
// is cut between these two.
func startError(pod *corev1.Pod, status corev1.ContainerStatus, message string) string {
	message = redact.Clean(message)
	message = containerID.ReplaceAllString(message, "")
	if m := mounting.FindStringSubmatch(message); m != nil {
		if path, err := strconv.Unquote(m[1]); err == nil {
			return fmt.Sprintf("nothing can be mounted at %s%s: %s", text.Cut(m[1], maxPath), inField(mountField(pod, status.Name, path)), cause(m[2]))
		}
	}
	if m := executing.FindStringSubmatch(message); m != nil {
		message = m[1]
	}
	return lastLineWithEnd(message)
}

// maxPath bounds how much of a path is quoted.
const maxPath = 128

// cause returns the last error of a chain that says something. The runtime is asked to mount, and the paths on the node, which
// the chain has, differ at every attempt.
func cause(chain string) string {
	chain = advice.ReplaceAllString(strings.TrimSpace(chain), "")
	parts := strings.Split(quotation.ReplaceAllStringFunc(chain, func(q string) string { return strings.ReplaceAll(q, ": ", ":") }), ": ")
	for _, part := range slices.Backward(parts) {
		if part != "unknown" && part != "" {
			return text.Cut(part, maxTermination)
		}
	}
	return "the runtime does not say why"
}

// mountField returns the field of the spec that mounts something at a path of a container, or "".
func mountField(pod *corev1.Pod, container, path string) string {
	spec := specOf(pod, container)
	if spec == nil || !isWebApp(pod) || !isOwnContainer(pod, container) {
		return ""
	}
	for _, mount := range spec.VolumeMounts {
		if strings.TrimRight(mount.MountPath, "/") != strings.TrimRight(path, "/") {
			continue
		}
		if index, ok := strings.CutPrefix(mount.Name, filesVolume); ok {
			return fmt.Sprintf("spec.files[%s].mountPath", index)
		}
		if mount.Name == storageVolume {
			return "spec.storage.mountPath"
		}
	}
	return ""
}

// lastLineWithEnd is like lastLine. It cuts what is too long in the middle, because the cause is at the end.
func lastLineWithEnd(message string) string {
	last := wholeLastLine(message)
	if len(last) <= maxTermination {
		return last
	}
	begins := text.Cut(last, maxTermination/2)
	end := last[len(last)-maxTermination/2:]
	if _, after, found := strings.Cut(end, " "); found {
		end = after // which also begins between two characters
	}
	return begins + " " + strings.ToValidUTF8(end, "")
}

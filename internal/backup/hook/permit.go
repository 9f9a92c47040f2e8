package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/text"
)

// Permit is a command that a pod allows.
type Permit struct {
	Container string
	Command   []string
}

// Bounds of the annotation.
const (
	maxAnnotation = 64 << 10
	maxPermits    = 64
)

// ParsePermits reads the annotation. It is strict: what two readers could read differently is refused. Names of fields are
// as they are written, each stands once, nothing follows the list, and no text holds what JSON cannot say exactly.
func ParsePermits(annotation string) ([]Permit, error) {
	if len(annotation) > maxAnnotation {
		return nil, fmt.Errorf("it is longer than %d bytes", maxAnnotation)
	}
	if !utf8.ValidString(annotation) {
		return nil, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(strings.NewReader(annotation))
	if err := expect(decoder, json.Delim('[')); err != nil {
		return nil, err
	}
	var permits []Permit
	for decoder.More() {
		if len(permits) == maxPermits {
			return nil, fmt.Errorf("it has more than %d entries", maxPermits)
		}
		permit, err := parsePermit(decoder)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(permits)+1, err)
		}
		permits = append(permits, permit)
	}
	if err := expect(decoder, json.Delim(']')); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	return permits, nil
}

// parsePermit reads one entry. The names of its fields are read as tokens: encoding/json would take CONTAINER for container,
// and the last of two.
func parsePermit(decoder *json.Decoder) (Permit, error) {
	if err := expect(decoder, json.Delim('{')); err != nil {
		return Permit{}, err
	}
	var container, command json.RawMessage
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return Permit{}, err
		}
		field := map[any]*json.RawMessage{"container": &container, "command": &command}[name]
		switch {
		case field == nil:
			return Permit{}, fmt.Errorf("there is no field %q", name)
		case *field != nil:
			return Permit{}, fmt.Errorf("the field %q stands twice", name)
		}
		if err := decoder.Decode(field); err != nil {
			return Permit{}, err
		}
	}
	if err := expect(decoder, json.Delim('}')); err != nil {
		return Permit{}, err
	}
	return permitOf(container, command)
}

func permitOf(container, command json.RawMessage) (Permit, error) {
	name, err := exactText(container)
	if err != nil || name == "" {
		return Permit{}, errors.New("container must be the name of a container")
	}
	var words []json.RawMessage
	if err := json.Unmarshal(command, &words); err != nil || len(words) == 0 {
		return Permit{}, errors.New("command must be a list of texts, with one at least")
	}
	permit := Permit{Container: name}
	for _, raw := range words {
		word, err := exactText(raw)
		if err != nil {
			return Permit{}, fmt.Errorf("command: %w", err)
		}
		permit.Command = append(permit.Command, word)
	}
	return permit, nil
}

// exactText reads a text. Half of a surrogate pair would be read as another character than it is.
func exactText(raw json.RawMessage) (string, error) {
	var word *string
	if err := json.Unmarshal(raw, &word); err != nil || word == nil {
		return "", errors.New("every word must be a text")
	}
	if strings.ContainsAny(*word, "\ufffd\x00") {
		return "", errors.New("a word holds a character that cannot be compared")
	}
	return *word, nil
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err != nil || got != want {
		return fmt.Errorf("it is not a JSON list of objects with the fields container and command: %q is missing", want.String())
	}
	return nil
}

// Refusal is why a pod does not allow a command in a container, or nil where it does. field names the hook.
func Refusal(pod *corev1.Pod, container string, command []string, field string) *health.Trouble {
	refused := func(why string) *health.Trouble {
		return &health.Trouble{Reason: slipwayv1alpha1.ReasonHookNotAllowed, Message: text.Cut(fmt.Sprintf(
			"%s does not allow container %q to run %s (%s of the Backup): %s", Workload(
				pod,
			), container, quoted(command), field, why), maxMessage)}
	}
	annotation, ok := pod.Annotations[slipwayv1alpha1.AnnotationBackupHooks]
	if !ok {
		return refused("its pods have no annotation " + slipwayv1alpha1.AnnotationBackupHooks)
	}
	permits, err := ParsePermits(annotation)
	if err != nil {
		return refused("the annotation " + slipwayv1alpha1.AnnotationBackupHooks + " of its pods cannot be read: " + err.Error())
	}
	allowed := slices.ContainsFunc(permits, func(p Permit) bool {
		return p.Container == container && slices.Equal(p.Command, command)
	})
	if !allowed {
		return refused("the annotation " + slipwayv1alpha1.AnnotationBackupHooks + " of its pods lists other commands")
	}
	return nil
}

// maxMessage bounds what a message may be: the command may be long.
const maxMessage = 1024

func quoted(command []string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(command); err != nil {
		return ""
	}
	return text.Cut(strings.TrimSpace(out.String()), 300)
}

package webapp

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// fieldNames finds the field of a child that the API server complains of, and says which
// field of the WebApp it comes from. $1 is the first group. The first that matches counts.
var fieldNames = map[string][]fieldName{
	"Deployment": {
		fieldFrom(`spec\.template\.spec\.containers\[0\]\.(resources)\.(requests|limits)\[(.+)\]`, "spec.$1.$2.$3"),
		fieldFrom(`spec\.template\.spec\.containers\[0\]\.(image|command|args|resources)\b`, "spec.$1"),
		fieldFrom(`spec\.template\.spec\.containers\[0\]\.ports\[0\]\.containerPort`, "spec.port"),
		fieldFrom(`spec\.template\.spec\.containers\[0\]\.(?:startup|readiness)Probe\.(?:httpGet\.)?(path|periodSeconds|timeoutSeconds|failureThreshold)`, "spec.health.$1"),
		fieldFrom(`spec\.template\.spec\.(imagePullSecrets\[\d+\]|serviceAccountName)`, "spec.$1"),
		fieldFrom(`spec\.(progressDeadlineSeconds)`, "spec.rollout.$1"),
		fieldFrom(`spec\.replicas`, "spec.replicas"),
	},
	"Service":                 {fieldFrom(`spec\.ports\[\d+\]\.port`, "spec.port")},
	"HorizontalPodAutoscaler": {fieldFrom(`spec\.(minReplicas|maxReplicas)`, "spec.autoscaling.$1")},
	"PersistentVolumeClaim": {
		fieldFrom(`spec\.resources\b.*`, "spec.storage.size"),
		fieldFrom(`spec\.(storageClassName)`, "spec.storage.$1"),
	},
}

// fieldName is a pattern of the field of a child, and the field of the WebApp.
type fieldName struct {
	child *regexp.Regexp
	ours  string
}

func fieldFrom(child, ours string) fieldName {
	return fieldName{regexp.MustCompile("^" + child), ours}
}

// Items of lists of the Deployment, by what they are called there.
var (
	envItem    = regexp.MustCompile(`^spec\.template\.spec\.containers\[0\]\.env\[(\d+)\]`)
	sourceItem = regexp.MustCompile(`^spec\.template\.spec\.containers\[0\]\.envFrom\[(\d+)\]`)
	volumeItem = regexp.MustCompile(`^spec\.template\.spec\.(?:volumes|containers\[0\]\.volumeMounts)\[(\d+)\]`)
)

// inOurWords says of a child that the API server refuses which field of the WebApp it
// complains of. Any other error stays as it is.
func (s *scope) inOurWords(kind string, err error) error {
	answer := &outcome.Error{}
	if !errors.As(err, &answer) || !answer.Stalls() || answer.Err == nil {
		return err
	}
	named := *answer
	theirs, ours := outcome.Answer(answer.Err), outcome.AnswerNaming(answer.Err, func(field string) string {
		return s.ourField(kind, field)
	})
	named.Message = strings.Replace(answer.Message, theirs, ours, 1)
	return &named
}

// ourField is the field of the WebApp that a field of a child comes from, or that one
// itself where it comes from none.
func (s *scope) ourField(kind, field string) string {
	if kind == "Deployment" {
		if ours := s.ourItem(field); ours != "" {
			return ours
		}
	}
	for _, name := range fieldNames[kind] {
		if at := name.child.FindStringSubmatchIndex(field); at != nil {
			return string(name.child.ExpandString(nil, name.ours, field, at))
		}
	}
	return field
}

// ourItem is the field of the WebApp that an item of a list of the Deployment comes from,
// or empty.
func (s *scope) ourItem(field string) string {
	if i, ok := itemOf(envItem, field); ok {
		return s.ourVariable(i)
	}
	spec := s.target.Spec
	if i, ok := itemOf(sourceItem, field); ok {
		for at, source := range spec.EnvFrom {
			if len(source.Keys) > 0 {
				continue
			}
			if i == 0 {
				return fmt.Sprintf("spec.envFrom[%d]", at)
			}
			i--
		}
	}
	if i, ok := itemOf(volumeItem, field); ok {
		switch {
		case i < len(spec.Files):
			return fmt.Sprintf("spec.files[%d]", i)
		case i == len(spec.Files) && spec.Storage != nil:
			return "spec.storage"
		}
	}
	return ""
}

// ourVariable names an environment variable of the container, and where it is set.
func (s *scope) ourVariable(index int) string {
	if s.template == nil || index >= len(s.template.Spec.Containers[0].Env) {
		return ""
	}
	name := *s.template.Spec.Containers[0].Env[index].Name
	if _, ok := s.target.Spec.Env[name]; ok {
		return "spec.env." + name
	}
	at := -1
	for i, source := range s.target.Spec.EnvFrom {
		if gives(source, name) {
			at = i
		}
	}
	return fmt.Sprintf("spec.envFrom[%d] (variable %s)", at, name)
}

// gives reports whether a source has a key that becomes a variable of that name.
func gives(source slipwayv1alpha1.EnvFromSource, name string) bool {
	for _, key := range source.Keys {
		if source.Prefix+key == name {
			return true
		}
	}
	return false
}

// itemOf is the number of the item that a field begins with.
func itemOf(list *regexp.Regexp, field string) (int, bool) {
	found := list.FindStringSubmatch(field)
	if found == nil {
		return 0, false
	}
	i, err := strconv.Atoi(found[1])
	return i, err == nil
}

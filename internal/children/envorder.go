package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/text"
)

// InOrder puts each variable behind those that its value refers to: $(NAME) stands for a variable that comes before, and is
// left as it is otherwise. What refers to nothing that comes later stays where it is. Nothing is lost: several variables of one
// name keep their order, because the last one counts. Of variables that refer to each other none can come first, and which one
// does is left open.
func InOrder(list []*corev1ac.EnvVarApplyConfiguration) []*corev1ac.EnvVarApplyConfiguration {
	// first is where the first variable of a name is. That suffices for who refers to the name, and the others follow it.
	first := make(map[string]int, len(list))
	for i, variable := range list {
		if _, there := first[*variable.Name]; !there {
			first[*variable.Name] = i
		}
	}
	ordered := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(list))
	reached := make([]bool, len(list))
	var add func(at int)
	add = func(at int) {
		if reached[at] {
			return
		}
		reached[at] = true
		for _, name := range references(Or(list[at].Value, "")) {
			if other, there := first[name]; there {
				add(other)
			}
		}
		ordered = append(ordered, list[at])
	}
	for at := range list {
		add(at)
	}
	return ordered
}

// IsInOrder reports whether InOrder changes nothing.
func IsInOrder(list []*corev1ac.EnvVarApplyConfiguration) bool {
	return slices.Equal(list, InOrder(list))
}

// Bounds of what is said of variables that refer to each other.
const (
	maxReportedNames = 5
	maxReportedName  = 64
)

// EnvProblem says which variables refer to each other, so that none can come first, or nothing. A variable that refers to
// itself means what a source that is used whole gives it, and is wrong without one.
func EnvProblem(values map[string]slipwayv1alpha1.EnvValue, sources []slipwayv1alpha1.EnvFromSource) string {
	walk := envWalk{values: values, sources: sources, state: make(map[string]envState, len(values))}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if walk.state[name] != envNew || len(references(string(values[name]))) == 0 {
			continue
		}
		if circle := walk.visit(name); circle != nil {
			return describeCircle(circle)
		}
	}
	return ""
}

// envWalk looks for a circle of variables.
type envWalk struct {
	values  map[string]slipwayv1alpha1.EnvValue
	sources []slipwayv1alpha1.EnvFromSource
	state   map[string]envState
	// path are the variables that refer to the present one, one after the other.
	path []string
}

type envState int

const (
	envNew envState = iota
	envOpen
	envDone
)

// visit returns a circle that can be reached from a variable, or nil.
func (w *envWalk) visit(name string) []string {
	w.state[name] = envOpen
	w.path = append(w.path, name)
	for _, other := range references(string(w.values[name])) {
		if _, there := w.values[other]; !there || other == name && mayGive(w.sources, name) {
			continue
		}
		switch w.state[other] {
		case envOpen:
			return w.path[slices.Index(w.path, other):]
		case envNew:
			if circle := w.visit(other); circle != nil {
				return circle
			}
		case envDone:
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.state[name] = envDone
	return nil
}

// mayGive reports whether a source that is used whole may have a variable of the name.
func mayGive(sources []slipwayv1alpha1.EnvFromSource, name string) bool {
	return slices.ContainsFunc(sources, func(source slipwayv1alpha1.EnvFromSource) bool {
		return len(source.Keys) == 0 && strings.HasPrefix(name, source.Prefix)
	})
}

func describeCircle(circle []string) string {
	first := text.Cut(circle[0], maxReportedName)
	if len(circle) == 1 {
		return fmt.Sprintf("%s refers to itself: $(%s) is what an entry of envFrom without keys gives, and there is none; $$(%s) "+
			"is the text",
			first, first, first)
	}
	var names []string
	for _, name := range circle[:min(len(circle), maxReportedNames)] {
		names = append(names, text.Cut(name, maxReportedName))
	}
	if more := len(circle) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	return fmt.Sprintf("%s and %s refer to each other with $(NAME), so none of them has a value that another can use; $$(NAME) is the text",
		strings.Join(names[:last], ", "), names[last])
}

// references are the names in a value that stand as $(NAME), as the kubelet reads them: $$ is a $.
func references(value string) []string {
	var names []string
	for {
		at := strings.IndexByte(value, '$')
		if at < 0 || at+1 == len(value) {
			return names
		}
		next := value[at+1]
		value = value[at+2:]
		if next != '(' {
			continue
		}
		if end := strings.IndexByte(value, ')'); end >= 0 {
			names = append(names, value[:end])
			value = value[end+1:]
		}
	}
}

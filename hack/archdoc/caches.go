package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/operator"
)

// held is what one cache holds of a kind, as the page says it.
type held struct{ which, kept string }

// cachesTable makes the table of caches.
func cachesTable(text string, caches []operator.Cached) (string, error) {
	words, text, _ := strings.Cut(text, "\ncache ")
	kept, err := wordsOf(words)
	if err != nil {
		return "", err
	}
	var rows [][]string
	told := 0
	for section := range strings.SplitSeq(text, "\ncache ") {
		heading, section, _ := strings.Cut(section, "\n")
		name, all, _ := strings.Cut(heading, ": ")
		reasons, err := lines(section)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(caches, func(c operator.Cached) bool { return c.Name == name })
		if i < 0 {
			return "", fmt.Errorf("there is no cache %q", name)
		}
		kinds, err := kindsOf(caches[i], all, kept)
		if err != nil {
			return "", err
		}
		made, err := cacheRows(reasons, kinds)
		if err != nil {
			return "", fmt.Errorf("cache %s: %w", name, err)
		}
		rows = append(rows, made...)
		told++
	}
	if told != len(caches) {
		return "", fmt.Errorf("it has %d caches, and there are %d", told, len(caches))
	}
	return table([]string{"kind", "which", "what is kept", "why"}, rows), nil
}

// wordsOf says in words what a function keeps, by its name.
func wordsOf(text string) (map[string]string, error) {
	all, err := lines(text)
	words := map[string]string{}
	for _, l := range all {
		words[l.about[0]] = l.why
	}
	return words, err
}

// kindsOf says of each kind what the cache holds. all is said of a kind of which it holds every object.
func kindsOf(cached operator.Cached, all string, kept map[string]string) (map[string]held, error) {
	whole, limited := byKind(cached.Whole), byKind(cached.Limited)
	kinds := map[string]held{}
	for _, budget := range []map[string]cache.ByObject{limited, whole} {
		for kind, by := range budget {
			words, ok := kept[nameOf(by.Transform)]
			if !ok {
				return nil, fmt.Errorf("no line says what %s keeps, of %s", nameOf(by.Transform), kind)
			}
			kinds[kind] = held{selected(by, all), words}
		}
	}
	for kind, of := range kinds {
		if _, ok := limited[kind]; !ok {
			kinds[kind] = held{of.which + "; not where the operator is limited to some namespaces", of.kept}
		} else if _, ok := whole[kind]; !ok {
			kinds[kind] = held{of.which + "; only where the operator is limited to some namespaces", of.kept}
		}
	}
	return kinds, nil
}

// byKind has one entry for two versions of a kind.
func byKind(budget map[client.Object]cache.ByObject) map[string]cache.ByObject {
	kinds := map[string]cache.ByObject{}
	for object, by := range budget {
		kind := object.GetObjectKind().GroupVersionKind().Kind // of metadata
		if kind == "" {
			kind = reflect.TypeOf(object).Elem().Name()
		}
		kinds[kind] = by
	}
	return kinds
}

func selected(by cache.ByObject, all string) string {
	switch {
	case by.Field != nil:
		return "called `" + strings.TrimPrefix(by.Field.String(), "metadata.name=") + "`"
	case by.Label != nil && by.Namespaces != nil:
		return "in the operator's own namespace, with the label `" + by.Label.String() + "`"
	case by.Label != nil:
		return "with the label `" + by.Label.String() + "`"
	default:
		return all
	}
}

// closure is what the name of a function ends with that another one has made.
var closure = regexp.MustCompile(`(\.func\d+)+$`)

// nameOf is the name of a function, or of the one that has made it.
func nameOf(transform toolscache.TransformFunc) string {
	name := closure.ReplaceAllString(runtime.FuncForPC(reflect.ValueOf(transform).Pointer()).Name(), "")
	return name[strings.LastIndex(name, ".")+1:]
}

// cacheRows makes the rows of a cache: kinds of one line that are held in the same way share one.
func cacheRows(reasons []line, kinds map[string]held) ([][]string, error) {
	left := maps.Clone(kinds)
	var rows [][]string
	for _, l := range reasons {
		first := len(rows)
		for _, kind := range l.about {
			of, ok := left[kind]
			if !ok {
				return nil, fmt.Errorf("it has no %s", kind)
			}
			delete(left, kind)
			i := slices.IndexFunc(rows[first:], func(row []string) bool { return row[1] == of.which && row[2] == of.kept })
			if i >= 0 {
				rows[first+i][0] += ", " + kind
			} else {
				rows = append(rows, []string{kind, of.which, of.kept, l.why})
			}
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("no line says why it has %q", slices.Sorted(maps.Keys(left)))
	}
	return rows, nil
}

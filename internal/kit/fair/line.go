package fair

import "slices"

// Line is who waits, by namespace. The zero value is an empty line. It is not safe for concurrent use.
type Line[T comparable] struct {
	// waiting are those that wait, in the order in which they came. A namespace in which nobody waits is not in it.
	waiting map[string][]T
	// turns are the namespaces that wait, the next one first.
	turns []string
	count int
}

// Len is how many wait.
func (l *Line[T]) Len() int { return l.count }

// Has reports whether one waits.
func (l *Line[T]) Has(namespace string, item T) bool {
	return slices.Contains(l.waiting[namespace], item)
}

// Add lets one wait behind those of its namespace. Who calls it sees to it that nobody waits twice.
func (l *Line[T]) Add(namespace string, item T) {
	if l.waiting == nil {
		l.waiting = map[string][]T{}
	}
	if len(l.waiting[namespace]) == 0 {
		l.turns = append(l.turns, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], item)
	l.count++
}

// Next is who is served next: the first of the namespace that holds the fewest places. held says how many a namespace holds. may
// reports whether a namespace that holds so many may have another one, nil: always. It may not be true for more places when it is
// not for fewer.
func (l *Line[T]) Next(held func(namespace string) int, may func(held int) bool) (namespace string, item T, ok bool) {
	least := 0
	for _, each := range l.turns {
		holds := held(each)
		if !ok || holds < least {
			namespace, least, ok = each, holds, true
		}
		if holds == 0 {
			break // nobody holds fewer
		}
	}
	if !ok || may != nil && !may(least) {
		return "", item, false
	}
	return namespace, l.waiting[namespace][0], true
}

// Take removes the first of a namespace that waits, and lets the other namespaces come before it.
func (l *Line[T]) Take(namespace string) T {
	first := l.waiting[namespace][0]
	l.removeAt(namespace, 0)
	if i := slices.Index(l.turns, namespace); i >= 0 {
		l.turns = append(slices.Delete(l.turns, i, i+1), namespace)
	}
	return first
}

// Drop takes one out that does not wait any more, and reports whether it did.
func (l *Line[T]) Drop(namespace string, item T) bool {
	i := slices.Index(l.waiting[namespace], item)
	if i >= 0 {
		l.removeAt(namespace, i)
	}
	return i >= 0
}

func (l *Line[T]) removeAt(namespace string, i int) {
	l.count--
	queue := l.waiting[namespace]
	switch {
	case len(queue) == 1:
		delete(l.waiting, namespace)
		l.turns = slices.DeleteFunc(l.turns, func(each string) bool { return each == namespace })
	case i == 0:
		var none T
		queue[0] = none // the array outlives it
		l.waiting[namespace] = queue[1:]
	default:
		l.waiting[namespace] = slices.Delete(queue, i, i+1)
	}
}

// Share reports whether a namespace that holds so many places may have another one of those that are free: it must leave more free
// than it holds. So one namespace never holds more than half of all places, rounded up, and whatever one does, the
// next one finds a place.
func Share(held, free int) bool { return held < free }

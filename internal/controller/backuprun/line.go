package backuprun

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// line is who has a place and who waits for one. It is pure. Places go round the namespaces that wait, so that one with
// hundreds of runs does not keep the others waiting. In a namespace they go to who came first.
type line struct {
	// limit is how many places there are.
	limit int
	// placed are those that have a place.
	placed map[types.NamespacedName]bool
	// waiting are those that wait, by namespace, in the order in which they came. A namespace in which nobody waits is not in it.
	waiting map[string][]types.NamespacedName
	// turns are the namespaces that wait, the next one first.
	turns []string
}

func newLine(limit int) *line {
	return &line{limit: limit, placed: map[types.NamespacedName]bool{}, waiting: map[string][]types.NamespacedName{}}
}

// next is whose turn it is when a place is free, and whether anybody waits.
func (l *line) next() (key types.NamespacedName, waits bool) {
	if len(l.turns) == 0 {
		return key, false
	}
	return l.waiting[l.turns[0]][0], true
}

// called is who may take a place now.
func (l *line) called() (key types.NamespacedName, ok bool) {
	if len(l.placed) >= l.limit {
		return key, false
	}
	return l.next()
}

// enter takes a place if it is the turn of this one, and tells whether it has one. Otherwise it waits in line. Who works already
// has a place, whatever the limit is.
func (l *line) enter(key types.NamespacedName, works bool) bool {
	next, waits := l.next()
	switch {
	case l.placed[key]:
		return true
	case works, len(l.placed) < l.limit && (!waits || next == key):
		l.placed[key] = true
		if l.drop(key) {
			l.rotate(key.Namespace)
		}
		return true
	}
	if !slices.Contains(l.waiting[key.Namespace], key) {
		if len(l.waiting[key.Namespace]) == 0 {
			l.turns = append(l.turns, key.Namespace)
		}
		l.waiting[key.Namespace] = append(l.waiting[key.Namespace], key)
	}
	return false
}

// leave gives up a place, or the wait for one, and tells whether there was any.
func (l *line) leave(key types.NamespacedName) bool {
	had := l.placed[key]
	delete(l.placed, key)
	return l.drop(key) || had
}

// drop takes one out of those that wait, and tells whether it was among them.
func (l *line) drop(key types.NamespacedName) bool {
	queue := l.waiting[key.Namespace]
	i := slices.Index(queue, key)
	if i < 0 {
		return false
	}
	if len(queue) > 1 {
		l.waiting[key.Namespace] = slices.Delete(queue, i, i+1)
		return true
	}
	delete(l.waiting, key.Namespace)
	l.turns = slices.DeleteFunc(l.turns, func(namespace string) bool { return namespace == key.Namespace })
	return true
}

// rotate lets the other namespaces come before this one.
func (l *line) rotate(namespace string) {
	if i := slices.Index(l.turns, namespace); i >= 0 {
		l.turns = append(slices.Delete(l.turns, i, i+1), namespace)
	}
}

// Package watch finds the objects that an event is about: by a label, by an index, or by what they refer to. It also lists
// what belongs to one of them.
package watch

package crdcheck

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// State is how an object fares.
type State string

const (
	// Fine is an object that can be written as before.
	Fine State = "Fine"
	// BreaksOnEdit is an object of which some fields cannot be changed. Every other write is accepted.
	BreaksOnEdit State = "BreaksOnEdit"
	// Breaks is an object of which every write is refused, even of a label, or every write of its status.
	Breaks State = "Breaks"
	// Unknown is an object that was not checked. Incomplete says why.
	Unknown State = "Unknown"
)

// When is which writes a problem refuses.
type When string

const (
	// EveryWrite refuses whatever changes the object. With a subresource status, writes of the status may be accepted.
	EveryWrite When = "EveryWrite"
	// EveryStatusWrite refuses whatever changes the status.
	EveryStatusWrite When = "EveryStatusWrite"
	// OnEdit refuses what changes one field, or anything in it. An item of a list of type map whose key changes is another
	// item, so all of it counts as changed. Another order of such a list is no change.
	OnEdit When = "OnEdit"
	// OnCreation refuses to make such an object anew, as a restore would. Writes of the one that exists are accepted.
	OnCreation When = "OnCreation"
)

func (w When) rank() int {
	return slices.Index([]When{EveryWrite, EveryStatusWrite, OnEdit, OnCreation}, w)
}

// Problem is something in an object that makes the API server refuse writes.
type Problem struct {
	// When is which writes are refused.
	When When `json:"when"`
	// Edit is the field that cannot be changed, unless the change corrects it. It is set when When is OnEdit.
	Edit string `json:"edit,omitempty"`
	// Field is what is wrong, such as .spec.hosts[0].name. A field that is missing is named, too.
	Field string `json:"field"`
	// Message says what is wrong with it, as the API server would. It is at most 400 characters long and may hold parts of
	// the object.
	Message string `json:"message"`
}

// Verdict is how an object fares with a version of a definition.
type Verdict struct {
	// State sums the problems up.
	State State `json:"state"`
	// Problems are what is wrong, the worst first, and MoreProblems how many are left out.
	Problems     []Problem `json:"problems,omitempty"`
	MoreProblems int       `json:"moreProblems,omitempty"`
	// Pruned are the fields that are not there any more when the object is read. The storage has them until the next write.
	Pruned     []string `json:"pruned,omitempty"`
	MorePruned int      `json:"morePruned,omitempty"`
	// Defaulted are the fields that appear when the object is read.
	Defaulted     []string `json:"defaulted,omitempty"`
	MoreDefaulted int      `json:"moreDefaulted,omitempty"`
	// Incomplete says why the object was not checked, or not to the end. It is empty when it was.
	Incomplete string `json:"incomplete,omitempty"`
}

// maxProblems is how many problems of an object are kept.
const maxProblems = 50

// conclude sorts the problems and sums them up.
func (v *Verdict) conclude() {
	slices.SortFunc(v.Problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.When.rank(), b.When.rank()), cmp.Compare(a.Edit, b.Edit),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message),
		)
	})
	v.Problems = slices.Compact(v.Problems)
	v.State = Fine
	for _, problem := range v.Problems {
		switch problem.When {
		case EveryWrite, EveryStatusWrite:
			v.State = Breaks
		case OnEdit:
			if v.State != Breaks {
				v.State = BreaksOnEdit
			}
		}
	}
	if extra := len(v.Problems) - maxProblems; extra > 0 {
		v.Problems, v.MoreProblems = v.Problems[:maxProblems], v.MoreProblems+extra
	}
}

// withoutValue are the types of errors that are not about the value that is there.
var withoutValue = []field.ErrorType{field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong}

// messageOf says what is wrong as the API server does. Of a value that is a map or a list it shows nothing: that may be long.
func messageOf(err *field.Error) string {
	text := err.Type.String()
	switch value := err.BadValue.(type) {
	case string:
		if value != "" && !slices.Contains(withoutValue, err.Type) {
			text += ": " + show(value)
		}
	case bool, int64, float64:
		text += ": " + show(value)
	}
	if err.Detail != "" {
		text += ": " + err.Detail
	}
	return shorten(text, maxMessage)
}

// keyOf identifies an error among those of one object, whichever way it was found: of a status that is written, the API server's
// text names fields from the status on.
func keyOf(err *field.Error) string {
	place, core := sight(err)
	return string(err.Type) + "\x00" + place + "\x00" + core
}

// placeOf returns where the API server sees an error, an empty text for the root.
func placeOf(err *field.Error) string {
	place, _ := sight(err)
	return place
}

// sight returns where the API server sees an error, and what it says of it. What allOf, anyOf, oneOf and not refuse has its place
// only in the text, and so have numbers of the wrong type.
func sight(err *field.Error) (place, core string) {
	place = err.Field
	if place == "<nil>" {
		place = ""
	}
	// Whether a rule that compares two maps is false or ends in an error may depend on the order in which they are read.
	if _, rule, ok := strings.Cut(err.Detail, "rule: "); ok {
		return place, rule
	}
	if _, said, ok := strings.Cut(err.Detail, " in body "); ok {
		return place, said
	}
	if strings.HasPrefix(err.Detail, "Checked value must be ") {
		if i := strings.LastIndex(err.Detail, " in "); i >= 0 {
			return joined(place, err.Detail[i+len(" in "):]), err.Detail[:i]
		}
	}
	quoted, failed := strconv.QuotedPrefix(err.Detail)
	said, junctor := strings.CutPrefix(err.Detail[len(quoted):], " must ")
	if failed != nil || !junctor {
		return place, err.Detail
	}
	inner, failed := strconv.Unquote(quoted)
	if failed != nil {
		return place, err.Detail
	}
	return joined(place, inner), said
}

// joined puts a path behind another one. Either may be the root.
func joined(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "." + inner
}

// fieldOf names what is wrong: the place that exists, and what is missing there.
func fieldOf(object map[string]any, err *field.Error) string {
	place := placeOf(err)
	found, left := locateFrom(nil, object, strings.TrimPrefix(place, "."), maxSteps)
	if left == "" {
		return found.String()
	}
	if name, ok := strings.CutPrefix(left, "."); ok || found == nil {
		return found.prefix() + nameText(name)
	}
	return found.prefix() + shorten(left, maxValue)
}

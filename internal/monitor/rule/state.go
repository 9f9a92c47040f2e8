package rule

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Prefix is what the keys of all saved states begin with.
const Prefix = "rule/"

// Saved is a state as it is stored, and a key that is to be deleted where Data is nil.
type Saved struct {
	Key  string
	Data []byte
}

// state is what is remembered of a rule and an object. While nothing is the matter there is none. Times are in nanoseconds since
// 1970, and 0 is never.
type state struct {
	Object Object `json:"o"`
	// Print is that of the rule when this was found.
	Print string `json:"p"`
	// When is what the expression said last.
	When bool `json:"w,omitempty"`
	// Since is since when all conditions hold, and Cause by what.
	Since int64  `json:"s,omitempty"`
	Cause string `json:"c,omitempty"`
	// Message is the text of the alarm, and Health what health said, for a rule without a message.
	Message string `json:"m,omitempty"`
	Health  string `json:"h,omitempty"`
	// Fired is when the alarm was raised, Key with which key, and the others who was told.
	Fired    int64                           `json:"f,omitempty"`
	Key      string                          `json:"i,omitempty"`
	Rule     string                          `json:"rn,omitempty"`
	Severity slipwayv1alpha1.MonitorSeverity `json:"sv,omitempty"`
	Event    bool                            `json:"ev,omitempty"`
	Webhooks []string                        `json:"wh,omitempty"`
	// Seen is the resource version of the last change that was counted.
	Seen string `json:"rv,omitempty"`
	// Times are when the object changed, the oldest first.
	Times []int64 `json:"t,omitempty"`
	// Turns are the fields that were written, by their paths.
	Turns map[string]turns `json:"x,omitempty"`
	// Deleting is from when on the object should be gone, and Held are the finalizers that hold it.
	Deleting int64    `json:"d,omitempty"`
	Held     []string `json:"fz,omitempty"`
	// Look is when time alone may have changed what the expression says.
	Look int64 `json:"l,omitempty"`

	// due is when it has to be looked at again, the zero time if never.
	due time.Time
}

// turns are the writes of one field by another manager than before.
type turns struct {
	// Last is who wrote last and At when, Other who wrote before that, and Times when it passed from one to the other.
	Last  string  `json:"l"`
	Other string  `json:"o,omitempty"`
	At    int64   `json:"a"`
	Times []int64 `json:"t,omitempty"`
}

// isEmpty reports whether there is nothing to remember.
func (s *state) isEmpty() bool {
	return s.Since == 0 && s.Fired == 0 && len(s.Times) == 0 && len(s.Turns) == 0 && s.Deleting == 0 && s.Look == 0
}

// clone copies what is changed in place.
func (s *state) clone() *state {
	c := *s
	c.Times = slices.Clone(s.Times)
	c.Turns = maps.Clone(s.Turns)
	return &c
}

// renew forgets what another expression has found. An alarm stands until the new one has been evaluated.
func (s *state) renew(print string) {
	if s.Print == print {
		return
	}
	s.Print, s.When, s.Since, s.Times, s.Turns, s.Deleting, s.Held, s.Look, s.Seen = print, false, 0, nil, nil, 0, nil, 0, ""
}

func keyOf(rule, object types.UID) string { return Prefix + string(rule) + "/" + string(object) }

func (s *state) save(rule types.UID) Saved {
	data, _ := json.Marshal(s) // of texts, numbers and lists of them: never fails
	return Saved{Key: keyOf(rule, s.Object.UID), Data: data}
}

var errForeign = errors.New("it is not the state of a rule")

// restore reads what save wrote.
func restore(saved Saved) (rule types.UID, s *state, err error) {
	rest, ok := strings.CutPrefix(saved.Key, Prefix)
	first, object, found := strings.Cut(rest, "/")
	if !ok || !found || first == "" || object == "" {
		return "", nil, errForeign
	}
	s = &state{}
	if err := json.Unmarshal(saved.Data, s); err != nil {
		return "", nil, errForeign
	}
	if string(s.Object.UID) != object || s.Object.Kind == "" {
		return "", nil, errForeign
	}
	return types.UID(first), s, nil
}

// at is a stored time.
func at(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

const (
	standardLimit = 100
	maxLimit      = 500
	// maxAnswer is how many bytes of fields one answer has, about. What does not fit is on the next page.
	maxAnswer = 4 << 20
	// maxPages is how often the store is asked for one page, when a filter leaves little of what it returns.
	maxPages = 10
)

func changesParams() []string {
	return []string{
		paramKind, paramNamespace, paramName, paramUID, paramSince, paramUntil, paramActor, paramType, paramPath, paramLimit,
		paramCursor, paramOrder, paramFields,
	}
}

func historyParams() []string { return changesParams() }

// filter is which changes are asked for.
type filter struct {
	store.Query
	// path is the beginning of the path of a field that changed, empty for any.
	path string
	// fields reports whether the fields are wanted.
	fields bool
	// kinds are those in question.
	kinds []schema.GroupResource
}

// changes answers with changes, the newest first.
func (s *server) changes(r *request) (any, *api.View, error) {
	f, err := s.readFilter(r)
	if err != nil {
		return nil, nil, err
	}
	answer, err := s.page(r, f)
	if err != nil {
		return nil, nil, err
	}
	return answer, &answer.View, nil
}

// history answers with the changes of one object. An object of the same name that was there before has its changes in it, too.
func (s *server) history(r *request) (any, *api.View, error) {
	if r.params[paramKind] == "" || r.params[paramName] == "" {
		return nil, nil, failure.New(failure.BadRequest, "history needs a kind and a name")
	}
	return s.changes(r)
}

// readFilter reads which changes are asked for, and refuses kinds that the user may not list.
func (s *server) readFilter(r *request) (*filter, error) {
	f := &filter{path: r.params[paramPath]}
	var err error
	if f.Namespace, err = r.params.namespace(); err != nil {
		return nil, err
	}
	f.Name, f.UID, f.Actor = r.params[paramName], types.UID(r.params[paramUID]), r.params[paramActor]
	now := s.options.Clock.Now()
	if f.Since, err = r.params.time(paramSince, now); err != nil {
		return nil, err
	}
	if f.Until, err = r.params.time(paramUntil, now); err != nil {
		return nil, err
	}
	if f.Limit, err = r.params.number(paramLimit, standardLimit, maxLimit); err != nil {
		return nil, err
	}
	if f.fields, err = r.params.flag(paramFields, true); err != nil {
		return nil, err
	}
	if f.path != "" && f.path[0] != '.' && f.path[0] != '[' {
		return nil, failure.New(failure.BadRequest, "a path begins with a point, such as .spec.replicas")
	}
	switch r.params[paramOrder] {
	case "", "newest":
	case "oldest":
		f.OldestFirst = true
	default:
		return nil, failure.New(failure.BadRequest, "order is newest or oldest")
	}
	if f.Types, err = readTypes(r.params[paramType]); err != nil {
		return nil, err
	}
	if f.Cursor, err = s.cursors.open(r.params[paramCursor]); err != nil {
		return nil, err
	}
	return f, f.restrict(r)
}

// restrict limits a filter to what the user may see. The rights are asked for before the history is: what does not exist and what
// may not be seen are refused alike.
func (f *filter) restrict(r *request) error {
	kind, asked, err := r.params.kind()
	if err != nil {
		return err
	}
	f.Allow = r.rights.share
	if !asked {
		f.kinds = r.visible(f.Namespace)
		return nil
	}
	if !r.rights.In(kind, f.Namespace) {
		return notFound()
	}
	f.Group, f.Resource, f.kinds = kind.Group, kind.Resource, []schema.GroupResource{kind}
	if _, ok := r.kinds.all[kind]; !ok {
		f.kinds = nil // of a kind that is gone there is nothing to be late about
	}
	return nil
}

func readTypes(text string) ([]change.Type, error) {
	if text == "" {
		return nil, nil
	}
	known := []change.Type{change.Baseline, change.Created, change.Updated, change.Deleted, change.Gap}
	var read []change.Type
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(known, change.Type(part)) {
			return nil, failure.New(failure.BadRequest, "type is a list, with commas, of Baseline, Created, Updated, Deleted and Gap")
		}
		if !slices.Contains(read, change.Type(part)) {
			read = append(read, change.Type(part))
		}
	}
	return read, nil
}

// cursors are places in the history, sealed. A place says how many changes there were, also of what a user may not see, so nobody
// gets one in the clear.
type cursors struct{ *signin.Sealer }

// open opens a cursor that this monitor gave.
func (c cursors) open(sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	place, err := c.Open(sealed)
	if err != nil {
		return "", failure.New(failure.BadRequest, "the cursor is not one that this monitor gave")
	}
	return string(place), nil
}

func (c cursors) seal(place string) string {
	if place == "" {
		return ""
	}
	return c.Seal([]byte(place))
}

// page reads one page.
func (s *server) page(r *request, f *filter) (*api.Changes, error) {
	answer := &api.Changes{View: s.viewOf(r.kinds, f.kinds...), Changes: []api.Change{}}
	wanted, size := f.Limit, 0
	q := f.Query
	for range maxPages {
		q.Limit = wanted - len(answer.Changes)
		page, err := s.options.Store.Changes(r.Context(), q)
		if err != nil {
			return nil, err
		}
		if len(page.Unreadable) > 0 {
			answer.Incomplete = append(answer.Incomplete, "a file of the history is damaged, and what it had is missing")
		}
		for i := range page.Changes {
			one := &page.Changes[i]
			if !f.matches(one) {
				continue
			}
			if size += f.trim(one); size > maxAnswer && len(answer.Changes) > 0 {
				// The ID of a change is a cursor after it.
				answer.Next = answer.Changes[len(answer.Changes)-1].ID
				return s.finish(r, f, answer)
			}
			answer.Changes = append(answer.Changes, api.Change{Record: one.Record, ID: s.cursors.seal(one.Position)})
		}
		answer.Next, q.Cursor = s.cursors.seal(page.Next), page.Next
		if page.Next == "" || len(answer.Changes) >= wanted {
			break
		}
	}
	return s.finish(r, f, answer)
}

// finish says what is missing in an answer.
func (s *server) finish(r *request, f *filter, answer *api.Changes) (*api.Changes, error) {
	if r.rights.Incomplete() {
		answer.Incomplete = append(answer.Incomplete, tooManyQuestions)
	}
	if f.Namespace == "" || len(f.kinds) == 0 || answer.Next != "" {
		return answer, nil
	}
	until, err := s.options.Store.Removed(r.Context(), f.Namespace)
	if err == nil && reportsRemoved(r.rights.share(f.kinds[0], f.Namespace), f.Since, until) {
		answer.Incomplete = append(answer.Incomplete, fmt.Sprintf(
			"to make room, changes of the namespace %q up to %s were removed: of all namespaces it had the most", f.Namespace,
			until.UTC().Format(time.RFC3339)))
	}
	return answer, err
}

// reportsRemoved reports whether who sees that share of a namespace, and asks for changes since a time, misses what was removed. What was
// removed before the namespace was made was of the one that had its name before.
func reportsRemoved(share store.Share, since, until time.Time) bool {
	seen := share.All || share.Of != nil && until.After(share.Of.Created)
	return seen && !until.IsZero() && !since.After(until)
}

const tooManyQuestions = "there are too many kinds and namespaces to ask about each whether you may see it: name a kind or a namespace"

// matches reports whether a field of the change has a path that begins as it should.
func (f *filter) matches(c *store.Change) bool {
	if f.path == "" {
		return true
	}
	return slices.ContainsFunc(c.Fields, func(field change.Field) bool {
		rest, ok := strings.CutPrefix(field.Path, f.path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || strings.HasSuffix(f.path, "."))
	})
}

// trim leaves the fields out if they are not wanted, and returns how large the change is.
func (f *filter) trim(c *store.Change) int {
	if !f.fields {
		c.Fields = nil
	}
	const rest = 500
	size := rest
	for i := range c.Fields {
		size += len(c.Fields[i].Path) + len(c.Fields[i].Old) + len(c.Fields[i].New) + 50
	}
	return size
}

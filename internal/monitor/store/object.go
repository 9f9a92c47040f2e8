package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Past is an object as it was.
type Past struct {
	// Change is the last change up to the time that was asked for. Its Position is empty if that change is not in the history any
	// more, or there was none.
	Change Change
	// Body is the object: redacted, and without noise. It is nil if the object did not exist then.
	Body []byte
}

// maxSteps is how many changes Object works through.
const maxSteps = 10_000

// Object returns an object as it was at a time. It begins with a whole content that is stored, and applies the changes after it,
// or takes back those before it. The error is NotFound when the history does not say, and Invalid without Options.Patch.
func (s *Store) Object(ctx context.Context, kind schema.GroupResource, uid types.UID, at time.Time) (Past, error) {
	if s.options.Patch == nil {
		return Past{}, invalid("without Options.Patch no object can be put together")
	}
	if at.IsZero() || !storable(at) {
		return Past{}, invalid("the time %s", at)
	}
	q := Query{Group: kind.Group, Resource: kind.Resource, UID: uid, Limit: maxLimit}
	past, steps, err := s.forward(ctx, q, at)
	if err != nil || steps {
		return past, err
	}
	return s.backward(ctx, kind, q, past.Change, at)
}

// forward looks for the last whole content before a time, and applies what came after it. It reports whether that was possible.
func (s *Store) forward(ctx context.Context, q Query, at time.Time) (past Past, done bool, err error) {
	// Until is exclusive, and the change at that very time counts.
	q.Until = at.Add(1)
	var steps []Change
	err = s.walk(ctx, q, func(c Change, body []byte) (bool, error) {
		if c.Type == change.Gap {
			return true, nil
		}
		if len(steps) == 0 {
			past.Change = c
			if c.Type == change.Deleted {
				done = true
				return false, nil
			}
		}
		if body != nil {
			past.Body, done = body, true
			return false, nil
		}
		if c.Truncated || c.MetadataOnly || c.Type == change.Deleted {
			return false, nil // what it changed is not known
		}
		steps = append(steps, c)
		return len(steps) < maxSteps, nil
	})
	if err != nil || !done || past.Body == nil {
		return past, done, err
	}
	for _, step := range slices.Backward(steps) {
		if past.Body, err = s.options.Patch(past.Body, step.Fields); err != nil {
			return past, true, &Error{Trouble: Failed, What: "applying the change " + step.Position, Err: err}
		}
	}
	return past, true, nil
}

// backward looks for the first whole content after a time, or the last state, and takes back what came before it. The target is
// the last change up to the time, if the history has it.
func (s *Store) backward(ctx context.Context, kind schema.GroupResource, q Query, target Change, at time.Time) (Past, error) { //nolint:gocognit // one walk back, with every way to end it
	missing := &Error{Trouble: NotFound, What: "the object " + string(q.UID) + " as it was at " + at.UTC().Format(time.RFC3339)}
	var steps []Change
	var body []byte
	blocked, notYet := false, false
	q.OldestFirst, q.Cursor = true, target.Position
	err := s.walk(ctx, q, func(c Change, snapshot []byte) (bool, error) {
		if target.Position == "" && !c.Time.After(at) {
			blocked = true // the order of the times is not that of the changes
			return false, nil
		}
		if target.Position == "" && len(steps) == 0 && c.Type == change.Created && !c.InGap {
			notYet = true
			return false, nil
		}
		if c.Truncated || c.MetadataOnly || c.Type == change.Deleted || c.Type == change.Created || c.Type == change.Baseline {
			blocked = true
			return false, nil
		}
		steps = append(steps, c)
		body = snapshot
		return body == nil && len(steps) < maxSteps, nil
	})
	if err != nil {
		return Past{}, err
	}
	if notYet {
		return Past{}, nil
	}
	if blocked || (len(steps) == 0 && target.Position == "") || len(steps) == maxSteps {
		return Past{}, missing
	}
	if target.Position == "" {
		// What was removed to make room may have changed it since.
		if until, err := s.Removed(ctx, steps[0].Namespace); err != nil || !until.Before(at) {
			return Past{}, errors.Join(err, missing)
		}
	}
	if body == nil {
		state, err := s.State(ctx, kind, q.UID)
		switch {
		case Is(err, NotFound):
			return Past{}, missing
		case err != nil:
			return Past{}, err
		}
		last := target
		if len(steps) > 0 {
			last = steps[len(steps)-1]
		}
		if state.MetadataOnly || state.ResourceVersion != last.ResourceVersion {
			return Past{}, missing // a commit came in between, or the state is of something else
		}
		body = state.Body
	}
	for _, step := range slices.Backward(steps) {
		if body, err = s.options.Patch(body, invert(step.Fields)); err != nil {
			return Past{}, &Error{Trouble: Failed, What: "taking back the change " + step.Position, Err: err}
		}
	}
	return Past{Change: target, Body: body}, nil
}

// invert returns the fields that take a change back.
func invert(fields []change.Field) []change.Field {
	back := make([]change.Field, 0, len(fields))
	for _, f := range slices.Backward(fields) {
		op := f.Op
		switch f.Op {
		case change.Added:
			op = change.Removed
		case change.Removed:
			op = change.Added
		}
		back = append(back, change.Field{Path: f.Path, Op: op, Old: f.New, New: f.Old})
	}
	return back
}

// walk calls f with the changes of an object, and the whole content after each where it is stored, until f has enough.
func (s *Store) walk(ctx context.Context, q Query, f func(Change, []byte) (bool, error)) error {
	q.Limit = min(2*s.options.SnapshotEvery, maxLimit)
	for {
		page, err := s.Changes(ctx, q)
		if err != nil {
			return err
		}
		if len(page.Unreadable) > 0 {
			return &Error{Trouble: Corrupt, File: page.Unreadable[0], What: "reading the changes of an object"}
		}
		for _, c := range page.Changes {
			body, err := s.snapshot(ctx, c.Position)
			if err != nil {
				return err
			}
			more, err := f(c, body)
			if err != nil || !more {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.Cursor, q.Limit = page.Next, maxLimit
	}
}

// snapshot returns the whole content that is stored with a change, nil if there is none or it is damaged.
func (s *Store) snapshot(ctx context.Context, at string) (body []byte, err error) {
	p, err := parsePosition(at)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, p.name.String(), "reading an object of the past", func(r *reader) error {
		var packed []byte
		err := r.db.QueryRowContext(ctx, `SELECT body FROM bodies WHERE id = ?`, p.id).Scan(&packed)
		if noRow(err) {
			return nil
		}
		if err != nil {
			return err
		}
		body, err = s.unpack(packed)
		if errors.Is(err, errDamaged) {
			body, err = nil, nil
		}
		return err
	})
	return body, err
}

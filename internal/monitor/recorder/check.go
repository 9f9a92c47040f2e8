package recorder

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// ObjectsReport says what a change of a definition means for the objects that there were when they were checked.
type ObjectsReport struct {
	// Version is the version by which they were checked: the one that is stored.
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time"`
	// Checked is how many were looked at, and Fine, BreaksOnEdit, Breaks and Unknown how they fare.
	Checked      int64 `json:"checked"`
	Fine         int64 `json:"fine"`
	BreaksOnEdit int64 `json:"breaksOnEdit"`
	Breaks       int64 `json:"breaks"`
	Unknown      int64 `json:"unknown"`
	// Examples are objects that break, at most 100.
	Examples []ObjectVerdict `json:"examples,omitempty"`
	// Problem says why no object could be checked, empty when they were.
	Problem string `json:"problem,omitempty"`
}

// ObjectVerdict is how one object fares.
type ObjectVerdict struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	crdcheck.Verdict
}

const (
	maxExamples = 100
	// secretField is why an object was not checked to the end.
	secretField = "a field that is hidden as a secret cannot be checked"
)

// checks are definitions whose objects have to be checked.
type checks struct {
	mutex   sync.Mutex
	waiting []wantedCheck
	woken   chan struct{}
}

type wantedCheck struct {
	name       string
	generation int64
}

func (c *checks) add(wanted wantedCheck) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.waiting = append(c.waiting, wanted)
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *checks) take() (wantedCheck, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.waiting) == 0 {
		return wantedCheck{}, false
	}
	next := c.waiting[0]
	c.waiting = c.waiting[1:]
	return next, true
}

// runChecks checks objects until the context ends. It begins with what an earlier life has left.
func (r *Recorder) runChecks(ctx context.Context) {
	_ = r.insist(ctx, func() error { return r.recallChecks(ctx) })
	for ctx.Err() == nil {
		next, found := r.checks.take()
		if !found {
			select {
			case <-ctx.Done():
				return
			case <-r.checks.woken:
			}
			continue
		}
		err := r.insist(ctx, func() error { return r.check(ctx, next) })
		if err != nil && ctx.Err() == nil {
			r.log.Warn("the objects of a definition were not checked", "definition", next.name, "error", err.Error())
		}
	}
}

func (r *Recorder) recallChecks(ctx context.Context) error {
	values, err := r.store.Values(ctx, reportName)
	if err != nil {
		return err
	}
	for _, v := range values {
		report := Report{}
		if json.Unmarshal(v.Data, &report) == nil && report.Objects == nil {
			r.checks.add(wantedCheck{report.Name, report.Generation})
		}
	}
	return nil
}

// check checks the objects of a definition, and stores what it found.
func (r *Recorder) check(ctx context.Context, wanted wantedCheck) error {
	reports, err := Reports(ctx, r.store, wanted.name)
	if err != nil {
		return err
	}
	for i := range reports {
		report := &reports[i]
		if report.Generation != wanted.generation || report.Objects != nil {
			continue
		}
		if report.Objects, err = r.checkObjects(ctx, wanted); err != nil {
			return err
		}
		data, err := json.Marshal(report)
		if err != nil {
			return err
		}
		return r.store.Commit(ctx, store.Batch{Values: []store.Value{{Key: reportKey(report.Name, report.Generation), Data: data}}})
	}
	return nil
}

func (r *Recorder) checkObjects(ctx context.Context, wanted wantedCheck) (*ObjectsReport, error) {
	found := &ObjectsReport{Time: r.clock.Now()}
	known, err := r.store.Definitions(ctx, wanted.name)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 || known[0].Generation != wanted.generation {
		found.Problem = "the definition has changed again"
		return found, nil
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(known[0].Content, definition); err != nil {
		found.Problem = "the definition cannot be read"
		return found, nil
	}
	for _, v := range definition.Spec.Versions {
		if v.Storage {
			found.Version = v.Name
		}
	}
	checker, err := crdcheck.NewChecker(definition, found.Version)
	if err != nil {
		found.Problem = err.Error()
		return found, nil
	}
	kind := schema.GroupResource{Group: definition.Spec.Group, Resource: definition.Spec.Names.Plural}
	ticker := r.clock.NewTicker(time.Second / time.Duration(r.options.ChecksPerSecond))
	defer ticker.Stop()
	for state, err := range r.store.StatesOf(ctx, kind) {
		if err != nil && !store.Is(err, store.Corrupt) {
			return nil, err
		}
		found.add(&state, checkState(ctx, checker, &state))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C():
		}
	}
	return found, nil
}

// checkState says how an object fares. What is hidden is not judged.
func checkState(ctx context.Context, checker *crdcheck.Checker, state *change.State) crdcheck.Verdict {
	object := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(state.Body, &object); err != nil || state.MetadataOnly {
		return crdcheck.Verdict{State: crdcheck.Unknown, Incomplete: "the object is not read: " + state.Reason}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata["generation"], metadata["resourceVersion"] = state.Generation, state.ResourceVersion
	}
	verdict := checker.Check(ctx, object)
	if state.Redacted == 0 || len(verdict.Problems) == 0 {
		return verdict
	}
	for _, problem := range verdict.Problems {
		if strings.Contains(problem.Message, change.Redacted) {
			return crdcheck.Verdict{State: crdcheck.Unknown, Incomplete: secretField}
		}
	}
	return verdict
}

func (o *ObjectsReport) add(state *change.State, verdict crdcheck.Verdict) {
	o.Checked++
	switch verdict.State {
	case crdcheck.Fine:
		o.Fine++
		return
	case crdcheck.BreaksOnEdit:
		o.BreaksOnEdit++
	case crdcheck.Breaks:
		o.Breaks++
	default:
		o.Unknown++
	}
	if len(o.Examples) < maxExamples {
		o.Examples = append(o.Examples, ObjectVerdict{Namespace: state.Namespace, Name: state.Name, Verdict: verdict})
	}
}

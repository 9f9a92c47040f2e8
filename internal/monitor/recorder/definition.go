package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// definitions is the kind of the definitions. When it is followed, their versions are stored, and their changes are checked.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// Report says what a change of a definition breaks.
type Report struct {
	// Name, UID and Generation are of the definition after the change, and Previous is the generation before it.
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Previous   int64     `json:"previous"`
	Time       time.Time `json:"time"`
	// Findings are what changed, the worst first.
	Findings []crdcheck.Finding `json:"findings,omitempty"`
	// Objects says what that means for the objects there are, nil while they are not checked.
	Objects *ObjectsReport `json:"objects,omitempty"`
}

const (
	reportName  = "crdcheck/"
	keptReports = 10
	// reportDigits is how many digits a generation has in the name of a value, so that names are in the order of generations.
	reportDigits = 20
)

func reportKey(name string, generation int64) string {
	return fmt.Sprintf("%s%s/%0*d", reportName, name, reportDigits, generation)
}

// Reports returns what the last changes of a definition break, the oldest first.
func Reports(ctx context.Context, s *store.Store, name string) ([]Report, error) {
	values, err := s.Values(ctx, reportName+name+"/")
	if err != nil {
		return nil, err
	}
	reports := make([]Report, 0, len(values))
	for _, v := range values {
		one := Report{}
		if json.Unmarshal(v.Data, &one) == nil {
			reports = append(reports, one)
		}
	}
	return reports, nil
}

// define stores a version of a definition, and what its change breaks. Of other kinds it does nothing.
func (j *journal) define(ctx context.Context, e *entry, after *change.State, c change.Context, raw []byte) error {
	if j.key != definitions || after == nil || c.Gone || len(raw) == 0 {
		return nil
	}
	now := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, now); err != nil {
		return nil // it is recorded as any object is; the supervisor says that it cannot be read
	}
	now = trim(now)
	if j.unstored[now.Name] {
		if err := j.pipe.drain(ctx); err != nil {
			return err
		}
		clear(j.unstored)
	}
	var known []store.Definition
	err := j.recorder.insist(ctx, func() (err error) {
		known, err = j.recorder.store.Definitions(ctx, now.Name)
		return err
	})
	if err != nil {
		return err
	}
	if len(known) > 0 && known[0].UID == now.UID && known[0].Generation == now.Generation {
		return nil
	}
	content, err := json.Marshal(now)
	if err != nil {
		return err
	}
	e.definitions = append(e.definitions, store.Definition{
		Name: now.Name, UID: now.UID, Generation: now.Generation, Time: c.Time, Content: content,
	})
	if j.unstored == nil {
		j.unstored = map[string]bool{}
	}
	j.unstored[now.Name] = true
	if len(known) > 0 {
		j.report(ctx, e, &known[0], now, c.Time)
	}
	return nil
}

// report compares two versions of a definition.
func (j *journal) report(
	ctx context.Context, e *entry, known *store.Definition, now *apiextensionsv1.CustomResourceDefinition, at time.Time,
) {
	before := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(known.Content, before); err != nil {
		return
	}
	report := Report{
		Name: now.Name, UID: now.UID, Generation: now.Generation, Previous: known.Generation, Time: at,
		Findings: crdcheck.Compare(before, now),
	}
	if len(report.Findings) == 0 {
		return
	}
	data, err := json.Marshal(report)
	if err != nil {
		return
	}
	e.values = append(e.values, store.Value{Key: reportKey(now.Name, now.Generation), Data: data})
	e.values = append(e.values, j.oldReports(ctx, now.Name)...)
	for i := range e.records {
		if e.records[i].Type == change.Updated {
			e.records[i].Reason = cmp.Or(e.records[i].Reason, summary(report.Findings))
		}
	}
	e.check = &wantedCheck{now.Name, now.Generation}
}

// oldReports are those that are forgotten. When they cannot be read, they stay.
func (j *journal) oldReports(ctx context.Context, name string) []store.Value {
	values, err := j.recorder.store.Values(ctx, reportName+name+"/")
	if err != nil || len(values) < keptReports {
		return nil
	}
	gone := values[:len(values)-keptReports+1]
	for i := range gone {
		gone[i].Data = nil
	}
	return gone
}

// summary is the findings in a line.
func summary(findings []crdcheck.Finding) string {
	breaking, risky := 0, 0
	for _, f := range findings {
		switch f.Severity {
		case crdcheck.Breaking:
			breaking++
		case crdcheck.Risky:
			risky++
		}
	}
	if breaking+risky == 0 {
		return "nothing that was accepted is refused"
	}
	return fmt.Sprintf("%d breaking and %d risky changes, the first: %s", breaking, risky, findings[0].Message)
}

// trim leaves what defines the kind. Annotations may hold anything.
func trim(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, UID: d.UID, Generation: d.Generation, CreationTimestamp: d.CreationTimestamp},
		Spec:       d.Spec,
		Status:     apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: d.Status.StoredVersions},
	}
}

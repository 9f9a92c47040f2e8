package server

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

// maxVersions is how many versions of a definition are compared for one answer, and maxFindings how many findings each may have.
const (
	maxVersions = 20
	maxFindings = 200
)

var definitionsKind = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

// definitions answers with the versions of a definition, and what each has changed. It needs the right to list definitions, as
// reading one from the cluster does.
func (s *server) definitions(r *request) (any, *api.View, error) {
	name := r.params[paramName]
	content, err := r.params.flag(paramContent, false)
	if err != nil {
		return nil, nil, err
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, nil, failure.New(failure.BadRequest, "name is that of a definition, such as widgets.example.com")
	}
	if !r.rights.Everywhere(definitionsKind) {
		return nil, nil, notFound()
	}
	stored, err := s.options.Store.Definitions(r.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	if len(stored) == 0 {
		return nil, nil, notFound()
	}
	answer := &api.Definitions{View: s.viewOf(r.kinds.ofDefinitions(), definitionsKind), Name: name}
	if len(stored) > maxVersions {
		stored = stored[:maxVersions]
	}
	answer.Versions = versionsOf(stored, content)
	if err := s.addChecks(r, answer); err != nil {
		return nil, nil, err
	}
	return answer, &answer.View, r.Context().Err()
}

// addChecks tells how the objects fare. It names them, so it needs the right to list them.
func (s *server) addChecks(r *request, answer *api.Definitions) error {
	resource, group, _ := strings.Cut(answer.Name, ".")
	if s.options.Reports == nil || !r.rights.Everywhere(schema.GroupResource{Group: group, Resource: resource}) {
		return nil
	}
	reports, err := s.options.Reports(r.Context(), answer.Name)
	if err != nil {
		return err
	}
	for i := range answer.Versions {
		version := &answer.Versions[i]
		for j := range reports {
			if report := &reports[j]; report.UID == version.UID && report.Generation == version.Generation && report.Objects != nil {
				version.Objects = checkedObjects(report.Objects)
			}
		}
	}
	return nil
}

func checkedObjects(from *recorder.ObjectsReport) *api.CheckedObjects {
	checked := &api.CheckedObjects{
		Version: from.Version, Time: from.Time, Checked: from.Checked, Fine: from.Fine, BreaksOnEdit: from.BreaksOnEdit,
		Breaks:  from.Breaks,
		Unknown: from.Unknown, Problem: from.Problem,
	}
	for i := range from.Examples {
		example := &from.Examples[i]
		one := api.CheckedObject{Namespace: example.Namespace, Name: example.Name, State: string(example.State)}
		if len(example.Problems) > 0 {
			worst := example.Problems[0]
			one.Field, one.Message, one.More = worst.Field, worst.Message, len(example.Problems)-1+example.MoreProblems
		}
		checked.Examples = append(checked.Examples, one)
	}
	return checked
}

// ofDefinitions returns the kinds as if only that of definitions was covered.
func (k *kinds) ofDefinitions() *kinds {
	own := *k
	own.covered = map[schema.GroupResource]*supervisor.KindCoverage{definitionsKind: &k.coverage.Definitions}
	return &own
}

// versionsOf compares each version with the one before.
func versionsOf(stored []store.Definition, content bool) []api.DefinitionVersion {
	var versions []api.DefinitionVersion
	for i := range stored {
		one := api.DefinitionVersion{Generation: stored[i].Generation, Time: stored[i].Time, UID: stored[i].UID}
		if content && json.Valid(stored[i].Content) {
			one.Content = stored[i].Content
		}
		after, err := readDefinition(stored[i].Content)
		if err != nil {
			one.Problem = "what was stored of it cannot be read"
			versions = append(versions, one)
			continue
		}
		for _, v := range after.Spec.Versions {
			one.Versions = append(one.Versions, api.Version{Name: v.Name, Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated})
		}
		if i+1 < len(stored) {
			compareVersions(&one, stored[i+1].Content, after)
		}
		versions = append(versions, one)
	}
	return versions
}

func readDefinition(content []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, json.Unmarshal(content, definition)
}

func compareVersions(one *api.DefinitionVersion, content []byte, after *apiextensionsv1.CustomResourceDefinition) {
	before, err := readDefinition(content)
	if err != nil {
		one.Problem = "what was stored of the version before cannot be read"
		return
	}
	for i, f := range crdcheck.Compare(before, after) {
		if i == maxFindings {
			one.Problem = "there are more findings than are listed"
			return
		}
		one.Findings = append(one.Findings, api.Finding{
			Severity: string(f.Severity), Version: f.Version, Path: f.Path, Code: string(f.Code), Message: f.Message,
		})
	}
}

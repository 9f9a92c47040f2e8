package watch

import (
	"os"
	goreflect "reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// fieldsOf returns the JSON names of the fields of a struct, without embedded ones.
func fieldsOf(of any) []string {
	var names []string
	for _, field := range goreflect.VisibleFields(goreflect.TypeOf(of)) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); len(field.Index) == 1 && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A new field of the API must be added to wireSpec or operatorSpec. It belongs into
// operatorSpec only if a gateway that does not know it may ignore it.
func TestEveryFieldOfTheSpecIsTheGatewaysOrTheOperators(t *testing.T) {
	ours, theirs := fieldsOf(wireSpec{}), fieldsOf(operatorSpec{})
	for _, name := range ours {
		if slices.Contains(theirs, name) {
			t.Errorf("%s is the gateway's and the operator's", name)
		}
	}
	both := slices.DeleteFunc(slices.Concat(ours, theirs), func(name string) bool { return name == "pods" }) // reserved for later
	slices.Sort(both)
	if diff := cmp.Diff(fieldsOf(slipwayv1alpha1.APIGatewaySpec{}), both); diff != "" {
		t.Errorf("fields of the API and of this program (-API +program):\n%s", diff)
	}
}

// The API server writes defaults into every object. A gateway that does not know such a
// field would refuse a spec in which the user has not set it.
func TestNoFieldOfTheGatewayHasADefaultOfTheAPIServer(t *testing.T) {
	text, err := os.ReadFile("../../../config/crd/slipway.dev_apigateways.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Default    any               `json:"default"`
		Properties map[string]schema `json:"properties"`
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	operators := fieldsOf(operatorSpec{})
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if fields["replicas"].Default == nil {
		t.Fatal("spec.replicas has a default, and the test sees none")
	}
	// Every gateway knows the fields of v0.1.0.
	known := []string{"spec.accessLog.samplePercent"}
	var check func(path string, field schema)
	check = func(path string, field schema) {
		if field.Default != nil && !slices.Contains(known, path) {
			t.Errorf("%s has a default", path)
		}
		for name, part := range field.Properties {
			check(path+"."+name, part)
		}
	}
	for name, field := range fields {
		if !slices.Contains(operators, name) && name != "expose" { // of expose only the type is read
			check("spec."+name, field)
		}
	}
}

func TestASpecWithAFieldThatIsNotKnownIsNotServed(t *testing.T) {
	for spec, field := range map[string]string{
		`{accessControl: {allow: [10.0.0.0/8]}}`:            "spec.accessControl",
		`{connections: {max: 7, maxPerSubnet: 1}}`:          "spec.connections.maxPerSubnet",
		`{accessLog: {samplePercent: 7, redact: [a]}}`:      "spec.accessLog.redact",
		`{mutualTLS: null}`:                                 "spec.mutualTLS",
		`{expose: {type: ClusterIP, loadBalancer: {a: b}}}`: "",
		`{pods: {nodeSelector: {a: b}}}`:                    "",
		`{replicas: 3, image: x, imagePullSecrets: [{name: a, later: b}], resources: {later: c}, autoscaling: {later: d}, drainSeconds: 5}`: "",
	} {
		t.Run(spec, func(t *testing.T) {
			f := newFixture(t)
			f.synced()
			f.spec("u", 1, `routes: [`+hello+`]`)
			f.look(t.Context())
			f.says(1)
			f.spec("u", 2, strings.Replace(spec, "{", `{routes: [{name: next, directResponse: {statusCode: 200}}], `, 1))
			f.look(t.Context())
			got := f.options.Board.Current().Rejected
			if field == "" {
				f.says(2)
				if got != nil || f.routes() != "next" {
					t.Errorf("serves %q, rejected %+v", f.routes(), got)
				}
				return
			}
			f.says(1)
			want := field + ": this version of the gateway does not know the field"
			if got == nil || got.Generation != 2 || got.Reason != slipwayv1alpha1.ReasonImageIncompatible || got.Message != want || f.routes() != "hello" {
				t.Errorf("serves %q, rejected %+v, want %s", f.routes(), got, want)
			}
		})
	}
}

// A pod that starts with such a spec has no earlier configuration to serve.
func TestAGatewayDoesNotBeginWithAFieldThatItDoesNotKnow(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `{accessControl: {}, routes: [`+hello+`]}`)
	f.look(t.Context())
	f.says(0)
	if got := f.options.Board.Current().Rejected; got == nil || got.Generation != 1 || len(f.applied) != 0 {
		t.Errorf("rejected %+v, served %d times", got, len(f.applied))
	}
}

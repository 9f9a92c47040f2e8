package crdcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// changeCase is a change of a definition, objects that exist, and how each of them fares. The unit test asks the Checker. The test
// against an API server applies the change, tries writes, and compares what happens.
type changeCase struct {
	name string
	// before and after are the schemas of the spec, or with whole those of the object.
	before, after string
	whole         bool
	// status and scale are the subresources, scale only after the change.
	status, scale bool
	// objects are the specs of the objects, or with whole all of them but kind, version and metadata.
	objects []string
	// want are the verdicts, as verdictLines has them.
	want [][]string
}

// verdictLines is a verdict without its messages.
func verdictLines(v Verdict) []string {
	lines := []string{string(v.State)}
	for _, problem := range v.Problems {
		line := string(problem.When) + " " + problem.Field
		if problem.Edit != "" {
			line += " by " + problem.Edit
		}
		lines = append(lines, line)
	}
	for _, field := range v.Pruned {
		lines = append(lines, "pruned "+field)
	}
	for _, field := range v.Defaulted {
		lines = append(lines, "defaulted "+field)
	}
	return lines
}

func (c changeCase) definitions(t testing.TB) (before, after *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	schema := specSchema
	if c.whole {
		schema = schemaFrom
	}
	before, after = definition(schema(t, c.before)), definition(schema(t, c.after))
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{before, after} {
		if c.status {
			withStatus(crd)
		}
	}
	if c.scale {
		if after.Spec.Versions[0].Subresources == nil {
			after.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{}
		}
		after.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		}
	}
	return before, after
}

func (c changeCase) object(t testing.TB, i int) map[string]any {
	t.Helper()
	if !c.whole {
		return widget(t, c.objects[i])
	}
	object := objectFrom(t, c.objects[i])
	object["apiVersion"], object["kind"] = "example.com/v1", "Widget"
	object["metadata"] = map[string]any{"name": "w", "namespace": "default"}
	return object
}

var changeCases = []changeCase{
	{
		name:    "an enum is restricted",
		before:  "{type: object, properties: {mode: {type: string, enum: [fast, slow]}, size: {type: integer}}}",
		after:   "{type: object, properties: {mode: {type: string, enum: [fast]}, size: {type: integer}}}",
		objects: []string{"{mode: slow, size: 1}", "{mode: fast, size: 1}", "{size: 1}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.mode by .spec.mode"}, {"Fine"}, {"Fine"}},
	},
	{
		name:    "a field of the spec is required",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}",
		after:   "{type: object, required: [b], properties: {a: {type: string}, b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}",
		objects: []string{"{a: x, c: {d: x}}", "{a: x, b: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.b by .spec"}, {"Fine"}},
	},
	{
		name: "a field of the root is required", whole: true,
		before:  "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, extra: {type: string}}}",
		after:   "{type: object, required: [extra], properties: {spec: {type: object, properties: {a: {type: string}}}, extra: {type: string}}}",
		objects: []string{"{spec: {a: x}}", "{spec: {a: x}, extra: v}"},
		want:    [][]string{{"Breaks", "EveryWrite .extra"}, {"Fine"}},
	},
	{
		name: "a field of the root is required, and the status is written", whole: true, status: true,
		before:  "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {phase: {type: string}}}, extra: {type: string}}}",
		after:   "{type: object, required: [extra], properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {phase: {type: string}}}, extra: {type: string}}}",
		objects: []string{"{spec: {a: x}, status: {phase: p}}"},
		want:    [][]string{{"Breaks", "EveryWrite .extra"}},
	},
	{
		name:    "types change",
		before:  "{type: object, properties: {a: {type: integer}, b: {type: string}, c: {type: number}, d: {type: object, properties: {e: {type: string}}}}}",
		after:   "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: integer}, d: {type: object, properties: {e: {type: boolean}}}}}",
		objects: []string{"{a: 1, b: x, c: 1.5, d: {e: x}}", "{b: x, c: 2}"},
		want: [][]string{{
			"BreaksOnEdit", "OnEdit .spec.a by .spec.a", "OnEdit .spec.c by .spec.c", "OnEdit .spec.c by .spec.c", "OnEdit .spec.d.e by .spec.d.e",
		}, {"Fine"}},
	},
	{
		name:    "fields go and defaults come",
		before:  "{type: object, properties: {a: {type: string}, old: {type: object, properties: {x: {type: string}}}, l: {type: array, items: {type: object, properties: {q: {type: string}, gone: {type: string}}}}}}",
		after:   "{type: object, properties: {a: {type: string}, b: {type: string, default: z}, l: {type: array, items: {type: object, properties: {q: {type: string}, m: {type: integer, default: 3}}}}}}",
		objects: []string{"{a: x, old: {x: v}, l: [{q: a, gone: b}, {q: c}]}"},
		want: [][]string{{
			"Fine", "pruned .spec.l[0].gone", "pruned .spec.old", "defaulted .spec.b", "defaulted .spec.l[0].m", "defaulted .spec.l[1].m",
		}},
	},
	{
		name:   "a rule about two fields",
		before: "{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: object, properties: {d: {type: string}}}}}",
		after:  "{type: object, x-kubernetes-validations: [{rule: '!has(self.a) || !has(self.b) || self.a < self.b', message: a is less than b}], properties: {a: {type: integer}, b: {type: integer}, c: {type: object, properties: {d: {type: string}}}}}",
		objects: []string{
			"{a: 2, b: 1, c: {d: x}}", "{a: 1, b: 2}", "{a: 3}",
		},
		want: [][]string{{"BreaksOnEdit", "OnEdit .spec by .spec"}, {"Fine"}, {"Fine"}},
	},
	{
		name:    "a rule that names a field in its fieldPath",
		before:  "{type: object, properties: {a: {type: integer}, b: {type: integer}}}",
		after:   "{type: object, x-kubernetes-validations: [{rule: 'self.a < self.b', fieldPath: .a, reason: FieldValueForbidden}], properties: {a: {type: integer}, b: {type: integer}}}",
		objects: []string{"{a: 2, b: 1}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.a by .spec"}},
	},
	{
		name: "a rule of the root", whole: true, status: true,
		before:  "{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}, status: {type: object, properties: {phase: {type: string}}}}}",
		after:   "{type: object, x-kubernetes-validations: [{rule: self.spec.a > 1}], properties: {spec: {type: object, properties: {a: {type: integer}}}, status: {type: object, properties: {phase: {type: string}}}}}",
		objects: []string{"{spec: {a: 1}, status: {phase: x}}", "{spec: {a: 2}, status: {phase: x}}"},
		want:    [][]string{{"Breaks", "EveryWrite ."}, {"Fine"}},
	},
	{
		name:    "a rule that ends in an error",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		after:   "{type: object, x-kubernetes-validations: [{rule: self.a.startsWith('x')}], properties: {a: {type: string}, b: {type: string}}}",
		objects: []string{"{b: x}", "{a: v, b: x}", "{a: x, b: x}"},
		want:    [][]string{{"Breaks", "EveryWrite .spec"}, {"BreaksOnEdit", "OnEdit .spec by .spec"}, {"Fine"}},
	},
	{
		name:    "a field becomes immutable",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}, b: {type: string}}}",
		objects: []string{"{a: x, b: x}"},
		want:    [][]string{{"Fine"}},
	},
	{
		name:    "a rule with oldSelf that no unchanged value satisfies",
		before:  "{type: object, properties: {a: {type: integer}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf}]}, b: {type: string}}}",
		objects: []string{"{a: 1, b: x}", "{b: x}"},
		want:    [][]string{{"Breaks", "EveryWrite .spec.a"}, {"Fine"}},
	},
	{
		name:    "a rule for new objects only",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: oldSelf.hasValue() || self.size() > 3, optionalOldSelf: true}]}, b: {type: string}}}",
		objects: []string{"{a: x, b: x}", "{a: long, b: x}"},
		want:    [][]string{{"Fine", "OnCreation .spec.a"}, {"Fine"}},
	},
	{
		name:    "items of an atomic list",
		before:  "{type: object, properties: {l: {type: array, items: {type: object, properties: {q: {type: string}, m: {type: string}}}}, b: {type: string}}}",
		after:   "{type: object, properties: {l: {type: array, items: {type: object, properties: {q: {type: string, maxLength: 2}, m: {type: string}}}}, b: {type: string}}}",
		objects: []string{"{l: [{q: ok, m: x}, {q: long, m: x}], b: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.l[1].q by .spec.l"}},
	},
	{
		name:   "items of a list of type map",
		before: "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, q: {type: string}, m: {type: string}}}}, b: {type: string}}}",
		after:  "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, pattern: '^[a-z]$'}, q: {type: string, maxLength: 2}, m: {type: string}}}}, b: {type: string}}}",
		objects: []string{
			"{l: [{k: a, q: ok, m: x}, {k: b, q: long, m: x}], b: x}", "{l: [{k: A, q: ok, m: x}, {k: b, q: ok, m: x}], b: x}",
		},
		want: [][]string{
			{"BreaksOnEdit", "OnEdit .spec.l[1].q by .spec.l[1].q"}, {"BreaksOnEdit", "OnEdit .spec.l[0].k by .spec.l[0].k"},
		},
	},
	{
		name:    "items of a list of type map with two keys, and one with a rule",
		before:  "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, j], items: {type: object, required: [k, j], properties: {k: {type: string}, j: {type: integer}, q: {type: integer}, m: {type: string}}}}}}",
		after:   "{type: object, properties: {l: {type: array, maxItems: 9, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, j], items: {type: object, required: [k, j], x-kubernetes-validations: [{rule: self.q > self.j}], properties: {k: {type: string}, j: {type: integer}, q: {type: integer}, m: {type: string}}}}}}",
		objects: []string{"{l: [{k: a, j: 1, q: 2, m: x}, {k: a, j: 2, q: 2, m: x}]}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.l[1] by .spec.l[1]"}},
	},
	{
		name:    "duplicates in lists that become sets and maps",
		before:  "{type: object, properties: {s: {type: array, items: {type: string}}, m: {type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}, b: {type: string}}}",
		after:   "{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}}, m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}, b: {type: string}}}",
		objects: []string{"{s: [a, b, a], b: x}", "{m: [{k: a}, {k: a}], b: x}", "{s: [a, b], m: [{k: a}], b: x}"},
		want:    [][]string{{"Fine", "OnCreation .spec.s[2]"}, {"Fine", "OnCreation .spec.m[1]"}, {"Fine"}},
	},
	{
		name:    "null",
		before:  "{type: object, properties: {a: {type: string, nullable: true}, l: {type: array, items: {type: string, nullable: true}}, d: {type: string, nullable: true}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: string}, l: {type: array, items: {type: string}}, d: {type: string, default: x}, b: {type: string}}}",
		objects: []string{"{a: null, b: x}", "{l: [a, null], b: x}", "{d: null, b: x}"},
		want: [][]string{
			{"Fine", "pruned .spec.a", "defaulted .spec.d"},
			{"BreaksOnEdit", "OnEdit .spec.l[1] by .spec.l", "defaulted .spec.d"},
			{"Fine", "defaulted .spec.d"},
		},
	},
	{
		name:    "integer or string",
		before:  "{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: integer}, b: {type: string}}}",
		objects: []string{"{a: x, b: x}", "{a: 1, b: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.a by .spec.a"}, {"Fine"}},
	},
	{
		name:    "values of a map",
		before:  "{type: object, properties: {m: {type: object, additionalProperties: {type: string}}, b: {type: string}}}",
		after:   "{type: object, properties: {m: {type: object, maxProperties: 2, additionalProperties: {type: string, enum: [a]}}, b: {type: string}}}",
		objects: []string{"{m: {x.y/z: b, q: a}, b: x}", "{m: {k: a, l: a, m: a}, b: x}"},
		want:    [][]string{{"BreaksOnEdit", `OnEdit .spec.m["x.y/z"] by .spec.m["x.y/z"]`}, {"BreaksOnEdit", "OnEdit .spec.m by .spec.m"}},
	},
	{
		name:    "unknown fields are not kept",
		before:  "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}",
		after:   "{type: object, properties: {b: {type: string}}}",
		objects: []string{"{other: {x: [1, 2]}, b: x}"},
		want:    [][]string{{"Fine", "pruned .spec.other"}},
	},
	{
		name:   "alternatives",
		before: "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: object, properties: {d: {type: string}, e: {type: string}}}}}",
		after:  "{type: object, anyOf: [{required: [b]}, {required: [c]}], properties: {a: {type: string, not: {enum: [x]}}, b: {type: string}, c: {type: object, oneOf: [{required: [d]}, {required: [e]}], properties: {d: {type: string}, e: {type: string}}}}}",
		objects: []string{
			"{a: x}", "{a: x, b: x}", "{a: v, c: {d: x, e: x}}", "{a: v, c: {d: x}}",
		},
		want: [][]string{
			{"BreaksOnEdit", "OnEdit .spec by .spec", "OnEdit .spec.b by .spec", "OnEdit .spec.a by .spec.a"},
			{"BreaksOnEdit", "OnEdit .spec.a by .spec.a"},
			{"BreaksOnEdit", "OnEdit .spec.c by .spec.c"},
			{"Fine"},
		},
	},
	{
		name:    "an alternative about a field within",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}",
		after:   "{type: object, allOf: [{properties: {a: {enum: [v]}, c: {properties: {d: {maxLength: 1}}}}}], properties: {a: {type: string}, b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}",
		objects: []string{"{a: x, b: x}", "{a: v, c: {d: long}}"},
		want: [][]string{
			{"BreaksOnEdit", "OnEdit .spec by .spec", "OnEdit .spec.a by .spec"},
			{"BreaksOnEdit", "OnEdit .spec by .spec", "OnEdit .spec.c.d by .spec"},
		},
	},
	{
		name: "scale comes", scale: true,
		before:  "{type: object, properties: {replicas: {type: integer}, b: {type: string}}}",
		after:   "{type: object, properties: {replicas: {type: integer}, b: {type: string}}}",
		objects: []string{"{replicas: -1, b: x}", "{replicas: 1, b: x}"},
		want:    [][]string{{"Breaks", "EveryWrite .spec.replicas"}, {"Fine"}},
	},
	{
		name: "the status", whole: true, status: true,
		before: "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {phase: {type: string}, q: {type: integer}}}}}",
		after:  "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, required: [q], properties: {phase: {type: string, enum: [Up]}, q: {type: integer}}}}}",
		objects: []string{
			"{spec: {a: x}, status: {phase: Down, q: 1}}", "{spec: {a: x}, status: {phase: Up}}", "{spec: {a: x}}",
		},
		want: [][]string{
			{"BreaksOnEdit", "OnEdit .status.phase by .status.phase"}, {"Breaks", "EveryStatusWrite .status.q"}, {"Fine"},
		},
	},
	{
		name: "lists, alternatives and numbers of a status", whole: true, status: true,
		before: "{type: object, properties: {spec: {type: object}, status: {type: object, properties: {l: {type: array, items: {type: object, properties: {c: {type: number}, d: {type: string}}}}, b: {type: string}, e: {type: object, properties: {f: {type: string}, g: {type: number}}}}}}}",
		after:  "{type: object, properties: {spec: {type: object}, status: {type: object, properties: {l: {type: array, items: {type: object, properties: {c: {type: number, maximum: 1}, d: {type: string}}}}, b: {type: string}, e: {type: object, not: {required: [f]}, properties: {f: {type: string}, g: {type: integer}}}}}}}",
		objects: []string{
			"{spec: {}, status: {l: [{c: 2, d: x}], b: x, e: {f: x}}}", "{spec: {}, status: {b: x, e: {g: 1.5}}}",
		},
		want: [][]string{
			{"BreaksOnEdit", "OnEdit .status.e by .status.e", "OnEdit .status.l[0].c by .status.l"},
			{"BreaksOnEdit", "OnEdit .status.e.g by .status.e.g", "OnEdit .status.e.g by .status.e.g"},
		},
	},
	{
		name: "a status that is no subresource", whole: true,
		before:  "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {phase: {type: string}, q: {type: integer}}}}}",
		after:   "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, required: [q], properties: {phase: {type: string, enum: [Up]}, q: {type: integer}}}}}",
		objects: []string{"{spec: {a: x}, status: {phase: Down}}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .status.q by .status", "OnEdit .status.phase by .status.phase"}},
	},
	{
		name:    "an embedded object",
		before:  "{type: object, properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true}, b: {type: string}}}",
		after:   "{type: object, properties: {o: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}, b: {type: string}}}",
		objects: []string{"{o: {x: 1}, b: x}", "{o: {apiVersion: v1, kind: Pod, metadata: {name: x}, x: 1}, b: x}"},
		want:    [][]string{{"Breaks", "EveryWrite .spec.o.apiVersion", "EveryWrite .spec.o.kind"}, {"Fine"}},
	},
	{
		name:    "formats and patterns",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}",
		after:   "{type: object, properties: {a: {type: string, format: date-time}, b: {type: string, pattern: '^[0-9]+$'}, c: {type: string, format: unheard-of}}}",
		objects: []string{"{a: yesterday, b: x, c: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.a by .spec.a", "OnEdit .spec.b by .spec.b"}},
	},
	{
		name: "the name", whole: true,
		before:  "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}",
		after:   "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 0}}}, spec: {type: object, properties: {a: {type: string}}}}}",
		objects: []string{"{spec: {a: x}}"},
		want:    [][]string{{"Fine", "OnCreation .metadata.name"}},
	},
	{
		name:    "two things wrong with a field, and a rule that waits for the first",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		after:   "{type: object, properties: {a: {type: string, enum: [v], x-kubernetes-validations: [{rule: self != 'x'}]}, b: {type: string}}}",
		objects: []string{"{a: x, b: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec.a by .spec.a", "OnEdit .spec.a by .spec.a"}},
	},
	{
		name:    "a rule of the spec beside a wrong value that is let through",
		before:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		after:   "{type: object, x-kubernetes-validations: [{rule: self.a != 'x'}], properties: {a: {type: string, enum: [v]}, b: {type: string}}}",
		objects: []string{"{a: x, b: x}"},
		want:    [][]string{{"BreaksOnEdit", "OnEdit .spec by .spec", "OnEdit .spec.a by .spec.a"}},
	},
}

func TestCheck(t *testing.T) {
	for _, test := range changeCases {
		t.Run(test.name, func(t *testing.T) {
			before, after := test.definitions(t)
			was, is := checker(t, before), checker(t, after)
			if len(test.want) != len(test.objects) {
				t.Fatalf("%d verdicts of %d objects", len(test.want), len(test.objects))
			}
			for i := range test.objects {
				object := test.object(t, i)
				if v := was.Check(t.Context(), object); v.State != Fine || len(v.Problems) > 0 {
					t.Errorf("%s: it is not fine to begin with: %+v", test.objects[i], v)
				}
				v := is.Check(t.Context(), object)
				if diff := cmp.Diff(test.want[i], verdictLines(v)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%+v", test.objects[i], diff, v)
				}
				if diff := cmp.Diff(test.object(t, i), object); diff != "" {
					t.Errorf("%s: the object was changed (-want +got):\n%s", test.objects[i], diff)
				}
				if diff := cmp.Diff(v, is.Check(t.Context(), object)); diff != "" {
					t.Errorf("%s: a second check says something else:\n%s", test.objects[i], diff)
				}
			}
		})
	}
}

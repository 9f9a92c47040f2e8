package change_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

var seen = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// said is what the records of a change say, in short.
func said(records []change.Record, folded int64) []string {
	var result []string
	for _, r := range records {
		line := fmt.Sprintf("%s %s@%s", r.Type, r.UID, r.ResourceVersion)
		for name, is := range map[string]bool{" in a gap": r.InGap, " by schema": r.SchemaDriven, " with its definition": r.WithDefinition, " metadata only": r.MetadataOnly, " truncated": r.Truncated} {
			if is {
				line += name
			}
		}
		if r.Folded > 0 {
			line += fmt.Sprintf(" folded %d", r.Folded)
		}
		if r.Actor.Confidence != change.Unknown {
			line += " by " + r.Actor.Name
		}
		if r.Reason != "" {
			line += " because " + r.Reason
		}
		result = append(result, line)
		for _, f := range lines(r.Fields) {
			result = append(result, "  "+f)
		}
	}
	if folded > 0 {
		result = append(result, fmt.Sprintf("folded %d", folded))
	}
	return result
}

func TestRecords(t *testing.T) {
	small := func(version string) string {
		return owned(version, `"spec":{"size":1}`, entry("kubectl", "1", `"f:spec":{"f:size":{}}`))
	}
	large := func(version string) string {
		return owned(version, `"spec":{"size":2}`, entry("op", "2", `"f:spec":{"f:size":{}}`))
	}
	other := func(object string) string { return strings.Replace(object, "u-1", "u-2", 1) }
	doubtful := func(version string) string { return widgetAt(version, "", `"x":{"a":1,"a":2}`) }
	size := "  Changed .spec.size from 1 to 2"
	for name, c := range map[string]struct {
		before, after string
		context       change.Context
		want          []string
	}{
		"nothing":                           {"", "", change.Context{Folded: 2}, []string{"folded 2"}},
		"what was there":                    {"", small("1"), change.Context{First: true}, []string{"Baseline u-1@1"}},
		"created":                           {"", small("1"), change.Context{}, []string{"Created u-1@1 by kubectl"}},
		"created in a gap":                  {"", small("1"), change.Context{InGap: true}, []string{"Created u-1@1 in a gap by kubectl"}},
		"updated":                           {small("1"), large("2"), change.Context{}, []string{"Updated u-1@2 by op", size}},
		"updated in a gap":                  {small("1"), large("9"), change.Context{InGap: true, Folded: 4}, []string{"Updated u-1@9 in a gap folded 4 by op", size}},
		"the same again":                    {small("1"), small("1"), change.Context{Folded: 3}, []string{"folded 3"}},
		"a version and nothing else":        {small("1"), small("2"), change.Context{Folded: 3}, []string{"folded 4"}},
		"an older version is no news":       {large("5"), small("4"), change.Context{}, nil},
		"an older version in a list":        {large("5"), small("4"), change.Context{InGap: true}, []string{"Updated u-1@4 in a gap by kubectl because its version is older than the one before: the cluster was set back", "  Changed .spec.size from 2 to 1"}},
		"versions that are no numbers":      {small("x"), large("a"), change.Context{}, []string{"Updated u-1@a by op", size}},
		"the same version, other content":   {small("5"), large("5"), change.Context{Folded: 1}, []string{"Updated u-1@5 by schema folded 1", size}},
		"deleted, nothing more is known":    {small("5"), "", change.Context{InGap: true, Folded: 2}, []string{"Deleted u-1@ in a gap folded 2"}},
		"deleted with its definition":       {small("5"), "", change.Context{WithDefinition: true}, []string{"Deleted u-1@ with its definition"}},
		"deleted, as the watch says":        {small("5"), small("6"), change.Context{Gone: true}, []string{"Deleted u-1@6"}},
		"deleted, with what changed":        {small("5"), large("6"), change.Context{Gone: true}, []string{"Deleted u-1@6", size}},
		"deleted, at the last version":      {small("5"), small("5"), change.Context{Gone: true}, []string{"Deleted u-1@"}},
		"deleted, never seen":               {"", small("6"), change.Context{Gone: true}, []string{"Deleted u-1@6"}},
		"another object of the name":        {small("5"), other(large("9")), change.Context{InGap: true, Folded: 1}, []string{"Deleted u-1@ in a gap folded 1", "Created u-2@9 in a gap by op"}},
		"another object, on the watch":      {small("5"), other(large("9")), change.Context{}, []string{"Deleted u-1@ in a gap", "Created u-2@9 in a gap by op"}},
		"another object came and went":      {small("5"), other(large("9")), change.Context{Gone: true}, []string{"Deleted u-1@ in a gap", "Deleted u-2@9 in a gap"}},
		"the end of an object before it":    {other(small("9")), small("5"), change.Context{Gone: true}, nil},
		"content that cannot be read":       {small("1"), doubtful("2"), change.Context{}, []string{"Updated u-1@2 metadata only because it has a key twice"}},
		"content that can be read again":    {doubtful("1"), small("2"), change.Context{}, []string{"Updated u-1@2 metadata only because what it was before is not known: it has a key twice"}},
		"other content that is not read":    {doubtful("1"), strings.Replace(doubtful("2"), `"a":2`, `"a":3`, 1), change.Context{}, []string{"Updated u-1@2 metadata only because it has a key twice"}},
		"the same content that is not read": {doubtful("1"), doubtful("2"), change.Context{}, []string{"folded 1"}},
		"created, and not read":             {"", doubtful("2"), change.Context{}, []string{"Created u-1@2 metadata only because it has a key twice"}},
		"deleted, and not read":             {doubtful("1"), doubtful("2"), change.Context{Gone: true}, []string{"Deleted u-1@2 metadata only because it has a key twice"}},
	} {
		c.context.Kind, c.context.Time = widgets, seen
		var before, after *change.State
		if c.before != "" {
			before = at(reduce(t, c.before, nil), version(c.before))
		}
		if c.after != "" {
			after = at(reduce(t, c.after, nil), version(c.after))
		}
		records, folded := change.Records(before, after, c.context)
		if diff := cmp.Diff(c.want, said(records, folded), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		for _, r := range records {
			if r.Kind != widgets || r.Name != "one" || r.Namespace != "shop" || !r.Time.Equal(seen) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		again, foldedAgain := change.Records(before, after, c.context)
		if diff := cmp.Diff(records, again); diff != "" || folded != foldedAgain {
			t.Errorf("%s: another time\n%s", name, diff)
		}
	}
}

func version(object string) string {
	_, rest, _ := strings.Cut(object, `"resourceVersion":"`)
	result, _, _ := strings.Cut(rest, `"`)
	return result
}

// records says what follows from two objects.
func records(t *testing.T, before, after string, s *change.Schema) ([]change.Record, int64) {
	t.Helper()
	old, now := reduce(t, before, s), reduce(t, after, s)
	return change.Records(&old, &now, change.Context{Kind: widgets, Schema: s, Time: seen})
}

// A false meaning is worse than none. Each of these was seen in other tools.

func TestHeartbeatIsNoChange(t *testing.T) {
	node := func(version, beat string) string {
		return widgetAt(version, "", `"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"`+beat+`"},{"type":"Disk","status":"False","lastHeartbeatTime":"`+beat+`"}]}`)
	}
	if got, folded := records(t, node("1", "10:00"), node("2", "10:05"), nil); len(got) != 0 || folded != 2 {
		t.Errorf("%v, folded %d", said(got, folded), folded)
	}
}

func TestDefaultingOnReadIsNoEdit(t *testing.T) {
	got, _ := records(t, widgetAt("7", "", `"spec":{"size":1}`), widgetAt("7", "", `"spec":{"size":1,"mode":"fast"}`), nil)
	if len(got) != 1 || !got[0].SchemaDriven || got[0].Actor.Confidence != change.Unknown {
		t.Errorf("%v", said(got, 0))
	}
}

// A default that shows up together with a write of something else is not by who wrote.
func TestDefaultIsNotByWhoWroteTheStatus(t *testing.T) {
	before := owned("1", `"spec":{"size":1}`, entry("op/status", "1", `"f:status":{"f:phase":{}}`))
	after := owned("2", `"spec":{"size":1,"mode":"fast"}`, entry("op/status", "2", `"f:status":{"f:phase":{}}`))
	got, _ := records(t, before, after, nil)
	if len(got) != 1 || got[0].Actor.Confidence != change.Unknown {
		t.Errorf("%v", said(got, 0))
	}
}

func TestStorageMigrationIsNoChange(t *testing.T) {
	before := owned("1", `"spec":{"size":1}`, entry("op", "1", `"f:spec":{}`))
	after := owned("2", `"spec":{"size":1}`, entry("op", "1", `"f:spec":{}`), entry("storage-version-migrator", "2", ``))
	if got, folded := records(t, before, after, nil); len(got) != 0 || folded != 1 {
		t.Errorf("%v", said(got, folded))
	}
}

// The name of a program is no user: it is never certain, and says where it is from.
func TestManagerIsNotShownAsUser(t *testing.T) {
	got, _ := records(t, owned("1", `"spec":{"size":1}`), owned("2", `"spec":{"size":2}`, entry("system:admin", "2", `"f:spec":{"f:size":{}}`)), nil)
	if len(got) != 1 || got[0].Actor.Confidence != change.Likely || got[0].Actor.Source != "managedFields" {
		t.Errorf("%+v", got)
	}
}

// Who removed a finalizer is not who deleted the object.
func TestDeletionHasNoActor(t *testing.T) {
	before := reduce(t, widgetAt("1", `"finalizers":["a"]`), nil)
	after := reduce(t, widgetAt("2", `"managedFields":[`+entry("gc", "2", `"f:metadata":{"f:finalizers":{}}`)+`]`), nil)
	got, _ := change.Records(&before, &after, change.Context{Gone: true})
	if len(got) != 1 || got[0].Type != change.Deleted || got[0].Actor.Confidence != change.Unknown || len(got[0].Fields) == 0 {
		t.Errorf("%v", said(got, 0))
	}
}

func TestFlippingOrderIsNoChange(t *testing.T) {
	refs := func(version, first, second string) string {
		return widgetAt(version, "", `"spec":{"resourceRefs":[{"apiVersion":"a/v1","kind":"X","name":"`+first+`"},{"apiVersion":"a/v1","kind":"X","name":"`+second+`"}]}`)
	}
	if got, folded := records(t, refs("1", "a", "b"), refs("2", "b", "a"), nil); len(got) != 0 || folded != 1 {
		t.Errorf("%v", said(got, folded))
	}
}

func TestLastAppliedIsNoChange(t *testing.T) {
	applied := func(version, text string) string {
		return widgetAt(version, `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+text+`"}`)
	}
	if got, folded := records(t, applied("1", "a"), applied("2", "b"), nil); len(got) != 0 || folded != 1 {
		t.Errorf("%v", said(got, folded))
	}
}

// Nobody wrote at the same version: if a secret reads in another way, it is hidden by another policy or with another key.
func TestAnotherKeyOfThePolicyIsNoChange(t *testing.T) {
	object := widgetAt("7", "", `"spec":{"password":"x","user":"y"}`)
	before := reduce(t, object, nil)
	for name, options := range map[string]change.Options{"another key": {Key: []byte("another key for tests")}, "another path": {Paths: []string{".spec.user"}}} {
		after := reduceWith(t, object, nil, newPolicy(t, options))
		if got, _ := change.Records(&before, &after, change.Context{}); len(got) != 0 {
			t.Errorf("%s: %v", name, said(got, 0))
		}
	}
}

// A schema that begins to say how items are told apart changes their order here, and nothing for anybody.
func TestNewListTypeIsNoChange(t *testing.T) {
	object := widgetAt("7", "", `"spec":{"tags":["b","a"]}`)
	before, after := reduce(t, object, nil), reduce(t, object, newSchema(t, widgetSchema))
	if got, folded := change.Records(&before, &after, change.Context{Schema: newSchema(t, widgetSchema)}); len(got) != 0 || before.Hash == after.Hash {
		t.Errorf("%v", said(got, folded))
	}
}

// What the store lost is no reason to lose a change.
func TestStateBeforeThatCannotBeRead(t *testing.T) {
	before := reduce(t, widgetAt("1", "", `"spec":{"size":1}`), nil)
	before.Body = before.Body[:10]
	after := reduce(t, widgetAt("2", "", `"spec":{"size":2}`), nil)
	for _, c := range []change.Context{{}, {Gone: true}} {
		got, _ := change.Records(&before, &after, c)
		if len(got) != 1 || !got[0].Truncated || !strings.Contains(got[0].Reason, "cannot be read") {
			t.Errorf("%v", said(got, 0))
		}
	}
}

// Of a state whose content was not kept it is known that the object changed, and not how: nothing is made up.
func TestRecordsAfterAStateWithoutContent(t *testing.T) {
	one := owned("1", `"spec":{"size":1}`, entry("kubectl", "1", `"f:spec":{"f:size":{}}`))
	two := owned("2", `"spec":{"size":2}`, entry("op", "2", `"f:spec":{"f:size":{}}`))
	same := owned("2", `"spec":{"size":1}`, entry("kubectl", "1", `"f:spec":{"f:size":{}}`))
	unknown := " truncated because what it was before is not known: " + change.NoRoom
	for name, c := range map[string]struct {
		after   string
		context change.Context
		want    []string
	}{
		"the same again":          {same, change.Context{}, []string{"folded 1"}},
		"updated":                 {two, change.Context{}, []string{"Updated u-1@2" + unknown}},
		"deleted":                 {"", change.Context{}, []string{"Deleted u-1@ metadata only because " + change.NoRoom}},
		"deleted, with a change":  {two, change.Context{Gone: true}, []string{"Deleted u-1@2" + unknown}},
		"deleted, without change": {one, change.Context{Gone: true}, []string{"Deleted u-1@"}},
	} {
		c.context.Kind, c.context.Time = widgets, seen
		last := at(reduce(t, one, nil), "1")
		last.Created = seen
		before := last.WithoutContent()
		var after *change.State
		if c.after != "" {
			after = at(reduce(t, c.after, nil), version(c.after))
		}
		records, folded := change.Records(&before, after, c.context)
		if diff := cmp.Diff(c.want, said(records, folded), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if created := change.CreatedIn(before.Body); !created.Equal(seen) {
			t.Errorf("it was made at %v, and its content says %v", seen, created)
		}
	}
}

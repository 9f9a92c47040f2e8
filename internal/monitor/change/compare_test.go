package change_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func TestCompare(t *testing.T) {
	s := newSchema(t, widgetSchema)
	for name, c := range map[string]struct {
		before, after string
		schema        *change.Schema
		want          []string
	}{
		"a value":                         {`"spec":{"size":1,"x":"a"}`, `"spec":{"size":2,"x":"a"}`, nil, []string{`Changed .spec.size from 1 to 2`}},
		"a number written in another way": {`"spec":{"size":1}`, `"spec":{"size":1.0}`, nil, []string{`Changed .spec.size from 1 to 1.0`}},
		"another type":                    {`"spec":{"port":80}`, `"spec":{"port":"80"}`, nil, []string{`Changed .spec.port from 80 to "80"`}},
		"an object that comes":            {`"spec":{}`, `"spec":{"a":{"b":1}}`, nil, []string{`Added .spec.a to {"b":1}`}},
		"an object that goes":             {`"spec":{"a":{"b":1}}`, `"spec":{}`, nil, []string{`Removed .spec.a from {"b":1}`}},
		"null comes":                      {`"spec":{}`, `"spec":{"a":null}`, nil, []string{`Added .spec.a to null`}},
		"null is a value":                 {`"spec":{"a":null}`, `"spec":{"a":{}}`, nil, []string{`Changed .spec.a from null to {}`}},
		"names in quotes": {
			`"spec":{"example.com/a":1,"b c":1,"0":1,"ü":1,"q\"":1,"-x":1}`, `"spec":{"example.com/a":2,"b c":2,"0":2,"ü":2,"q\"":2,"-x":2}`, nil,
			[]string{`Changed .spec["-x"] from 1 to 2`, `Changed .spec["0"] from 1 to 2`, `Changed .spec["b c"] from 1 to 2`, `Changed .spec["example.com/a"] from 1 to 2`, `Changed .spec["q\""] from 1 to 2`, `Changed .spec["ü"] from 1 to 2`},
		},
		"in the order of paths": {`"status":{"b":1,"a":1},"spec":{"z":1}`, `"spec":{"z":2},"status":{"a":2,"b":2}`, nil, []string{`Changed .spec.z from 1 to 2`, `Changed .status.a from 1 to 2`, `Changed .status.b from 1 to 2`}},
		"a set": {
			`"spec":{"tags":["b","a"]}`, `"spec":{"tags":["c","a"]}`, s,
			[]string{`Removed .spec.tags[="b"] from "b"`, `Added .spec.tags[="c"] to "c"`},
		},
		"a map by its keys": {
			`"spec":{"ports":[{"port":80,"protocol":"TCP","name":"x"},{"port":80,"protocol":"UDP"},{"port":81}]}`,
			`"spec":{"ports":[{"port":81},{"port":80,"protocol":"TCP","name":"y"},{"port":82,"protocol":"TCP"}]}`, s,
			[]string{`Changed .spec.ports[port=80,protocol="TCP"].name from "x" to "y"`, `Removed .spec.ports[port=80,protocol="UDP"] from {"port":80,"protocol":"UDP"}`, `Added .spec.ports[port=82,protocol="TCP"] to {"port":82,"protocol":"TCP"}`},
		},
		"a set in a map": {
			`"spec":{"ports":[{"port":80,"paths":["a","b"]}]}`, `"spec":{"ports":[{"port":80,"paths":["b","c"]}]}`, s,
			[]string{`Removed .spec.ports[port=80].paths[="a"] from "a"`, `Added .spec.ports[port=80].paths[="c"] to "c"`},
		},
		"an atomic list": {`"spec":{"rules":[{"a":"x"},{"a":"y"}]}`, `"spec":{"rules":[{"a":"x"},{"a":"z"}]}`, s, []string{`Changed .spec.rules from [{"a":"x"},{"a":"y"}] to [{"a":"x"},{"a":"z"}]`}},
		"conditions":     {`"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"A","status":"True"}]}`, `"status":{"conditions":[{"type":"A","status":"True"},{"type":"Ready","status":"False"}]}`, nil, []string{`Changed .status.conditions[type="Ready"].status from "True" to "False"`}},
		"containers":     {`"spec":{"containers":[{"name":"a","image":"x"},{"name":"b"}]}`, `"spec":{"containers":[{"name":"a","image":"y"},{"name":"b"}]}`, nil, []string{`Changed .spec.containers[name="a"].image from "x" to "y"`}},
		"items in another order": {
			`"spec":{"stages":[{"name":"a"},{"name":"b","x":1}]}`, `"spec":{"stages":[{"name":"b","x":2},{"name":"a"}]}`, nil,
			[]string{`Changed .spec.stages[name="b"].x from 1 to 2`, `Changed .spec.stages[] from ["name=\"a\"","name=\"b\""] to ["name=\"b\"","name=\"a\""]`},
		},
		"an item at the end":             {`"spec":{"stages":[{"name":"b"}]}`, `"spec":{"stages":[{"name":"b"},{"name":"a"}]}`, nil, []string{`Added .spec.stages[name="a"] to {"name":"a"}`}},
		"an item before others":          {`"spec":{"stages":[{"name":"b"}]}`, `"spec":{"stages":[{"name":"a"},{"name":"b"}]}`, nil, []string{`Added .spec.stages[name="a"] to {"name":"a"}`, `Changed .spec.stages[] from ["name=\"b\""] to ["name=\"a\"","name=\"b\""]`}},
		"owners":                         {`"x":{"ownerReferences":[{"uid":"1","name":"a"}]}`, `"x":{"ownerReferences":[{"uid":"2","name":"a"}]}`, nil, []string{`Removed .x.ownerReferences[uid="1"] from {"name":"a","uid":"1"}`, `Added .x.ownerReferences[uid="2"] to {"name":"a","uid":"2"}`}},
		"references":                     {`"x":{"resourceRefs":[{"kind":"A","name":"a"},{"kind":"B","name":"a"}]}`, `"x":{"resourceRefs":[{"kind":"B","name":"a"}]}`, nil, []string{`Removed .x.resourceRefs[kind="A",name="a"] from {"kind":"A","name":"a"}`}},
		"a list with the same key twice": {`"spec":{"stages":[{"name":"a"},{"name":"a"}]}`, `"spec":{"stages":[{"name":"a"},{"name":"b"}]}`, nil, []string{`Changed .spec.stages[1].name from "a" to "b"`}},
		"an item that goes at the start": {`"spec":{"args":["a","b","c"]}`, `"spec":{"args":["b","c"]}`, nil, []string{`Removed .spec.args[0] from "a"`}},
		"items that come and go":         {`"spec":{"args":["a","b","c","d"]}`, `"spec":{"args":["b","x","d","e"]}`, nil, []string{`Removed .spec.args[0] from "a"`, `Changed .spec.args[1] from "c" to "x"`, `Added .spec.args[3] to "e"`}},
		"a member of a moved item":       {`"spec":{"list":["gone",{"a":1,"b":1},"last"]}`, `"spec":{"list":[{"a":1,"b":2},"last"]}`, nil, []string{`Changed .spec.list[0] from "gone" to {"a":1,"b":2}`, `Removed .spec.list[1] from {"a":1,"b":1}`}},
		"finalizers":                     {`"x":{"finalizers":["b","a"]}`, `"x":{"finalizers":["b"]}`, nil, []string{`Removed .x.finalizers[="a"] from "a"`}},
		"a list that becomes an object":  {`"spec":{"a":[1]}`, `"spec":{"a":{"0":1}}`, nil, []string{`Changed .spec.a from [1] to {"0":1}`}},
	} {
		before, after := reduce(t, widget(c.before), c.schema), reduce(t, widget(c.after), c.schema)
		fields, truncated, err := change.Compare(&before, &after, c.schema)
		if diff := cmp.Diff(c.want, lines(fields)); diff != "" || truncated || err != nil {
			t.Errorf("%s: %v, %v\n%s", name, truncated, err, diff)
		}
		patched, err := change.Patch(before.Body, fields, c.schema)
		if err != nil || string(patched) != string(after.Body) {
			t.Errorf("%s: %v\n%s\n%s", name, err, patched, after.Body)
		}
	}
}

func TestCompareIsBounded(t *testing.T) {
	many := func(value string) string {
		var members []string
		for i := range change.MaxFields + 50 {
			members = append(members, fmt.Sprintf(`"f%d":%s`, i, value))
		}
		return `"spec":{` + strings.Join(members, ",") + `}`
	}
	long := strings.Repeat("x", change.MaxFieldValue)
	for name, c := range map[string]struct {
		before, after string
		fields        int
	}{
		"many fields":        {many("1"), many("2"), change.MaxFields},
		"a large value":      {`"spec":{"a":"` + long + `"}`, `"spec":{"a":"b"}`, 1},
		"a large new value":  {`"spec":{}`, `"spec":{"a":"` + long + `"}`, 1},
		"a long path":        {`"spec":{"` + long + `":1}`, `"spec":{"` + long + `":2}`, 0},
		"many large values":  {many("1"), many(`"` + long[:change.MaxFieldValue/8] + `"`), change.MaxFields},
		"a list, other item": {`"spec":{"a":[` + strings.Repeat("1,", 30_000) + `1]}`, `"spec":{"a":[` + strings.Repeat("2,", 30_000) + `2]}`, change.MaxFields},
	} {
		before, after := reduce(t, widget(c.before), nil), reduce(t, widget(c.after), nil)
		start := time.Now()
		fields, truncated, err := change.Compare(&before, &after, nil)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s takes %v", name, took)
		}
		if len(fields) != c.fields || !truncated || err != nil {
			t.Errorf("%s: %d fields, want %d, truncated %v, %v", name, len(fields), c.fields, truncated, err)
		}
		size := 0
		for _, f := range fields {
			size += len(f.Old) + len(f.New)
		}
		if size > 256<<10 {
			t.Errorf("%s: %d bytes of values", name, size)
		}
		if c.fields == 1 {
			if fields[0].New == nil && fields[0].Op == change.Removed {
				t.Errorf("%s: %+v", name, fields[0])
			}
		}
	}
}

func TestCompareOfDoubtfulStatesIsOfTheMetadata(t *testing.T) {
	full := reduce(t, widgetAt("1", `"labels":{"a":"1"}`, `"spec":{"size":1}`), nil)
	doubtful := reduce(t, widgetAt("2", `"labels":{"a":"2"}`, `"spec":{"size":1,"size":2}`), nil)
	for _, c := range []struct {
		before, after change.State
		want          []string
	}{
		{full, doubtful, []string{`Changed .metadata.labels.a from "1" to "2"`}},
		{doubtful, full, []string{`Changed .metadata.labels.a from "2" to "1"`}},
	} {
		fields, _, err := change.Compare(&c.before, &c.after, nil)
		if diff := cmp.Diff(c.want, lines(fields)); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// A policy that hides more than the one before does not show in its first record what it hides from now on.
func TestValueThatIsHiddenNowIsNotShownFromBefore(t *testing.T) {
	before := reduce(t, widget(`"spec":{"user":"`+canary+`"}`), nil)
	after := reduceWith(t, widget(`"spec":{"user":"other"}`), nil, newPolicy(t, change.Options{Paths: []string{".spec.user"}}))
	fields, _, err := change.Compare(&before, &after, nil)
	if err != nil || len(fields) != 1 || string(fields[0].Old) != `"redacted:hmac:"` {
		t.Errorf("%v, %v", lines(fields), err)
	}
}

func TestCompareRefusesWhatIsNoState(t *testing.T) {
	good := reduce(t, widget(), nil)
	for _, body := range []string{"", "{", "[]", `{"` + canary} {
		bad := change.State{Body: []byte(body)}
		for _, pair := range [][2]*change.State{{&good, &bad}, {&bad, &good}} {
			if _, _, err := change.Compare(pair[0], pair[1], nil); err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%q: %v", body, err)
			}
		}
	}
}

func TestPatchRefuses(t *testing.T) {
	body := `{"a":{"b":1},"list":["x"],"named":[{"name":"x"}]}`
	for name, f := range map[string]change.Field{
		"a path that is none":         {Path: "a", Op: change.Added, New: json.RawMessage("1")},
		"the root":                    {Path: "", Op: change.Changed, New: json.RawMessage("1")},
		"a value that was left out":   {Path: ".a.b", Op: change.Changed},
		"a member that is there":      {Path: ".a.b", Op: change.Added, New: json.RawMessage("1")},
		"a member that is not there":  {Path: ".a.c", Op: change.Removed},
		"below a value":               {Path: ".a.b.c", Op: change.Added, New: json.RawMessage("1")},
		"an item of an object":        {Path: ".a[0]", Op: change.Removed},
		"an item behind the end":      {Path: ".list[1]", Op: change.Removed},
		"an item far behind the end":  {Path: ".list[2147483647]", Op: change.Added, New: json.RawMessage("1")},
		"an item that is not there":   {Path: `.named[name="y"]`, Op: change.Removed},
		"an item that is there":       {Path: `.named[name="x"]`, Op: change.Added, New: json.RawMessage("{}")},
		"an order of other items":     {Path: `.named[]`, Op: change.Changed, New: json.RawMessage(`["name=\"y\""]`)},
		"an order that is none":       {Path: `.named[]`, Op: change.Changed, New: json.RawMessage(`1`)},
		"a member of a list":          {Path: `.list.a`, Op: change.Added, New: json.RawMessage(`1`)},
		"any item":                    {Path: `.list[*]`, Op: change.Changed, New: json.RawMessage(`1`)},
		"a path that is far too deep": {Path: strings.Repeat(".a", 1000), Op: change.Added, New: json.RawMessage(`1`)},
	} {
		if got, err := change.Patch([]byte(body), []change.Field{f}, nil); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, err := change.Patch([]byte("{"), nil, nil); err == nil {
		t.Error("a body that is no JSON is patched")
	}
}

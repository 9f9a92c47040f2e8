package rule

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Whatever a rule and an object say: a look ends soon, gives the same twice, and its texts are bounded and safe to show.
func FuzzObserve(f *testing.F) {
	f.Add("object.a == 1", "'x' + string(object.a)", `{"a":1}`)
	f.Add("object.l.all(a, object.l.all(b, object.l.all(c, a == b || b == c)))", "object.s", `{"l":[1,2,3],"s":"\u001b[31m"}`)
	f.Add("object.s.matches('(a+)+$')", "object.s + object.s + object.s", `{"s":"`+strings.Repeat("a", 2000)+`!"}`)
	f.Add("!has(object.status)", "changes[0].path", `{"metadata":{"creationTimestamp":"0000"}}`)
	f.Add("now > timestamp(object.t)", "oldObject.x", `{"t":"2026-01-01T00:00:00Z"}`)
	c := compiler(f)
	f.Fuzz(func(t *testing.T, when, message, body string) {
		r, problems := c.Compile(monitorRule(spec{When: when, Message: message}))
		if (r == nil) != (len(problems) > 0) {
			t.Fatalf("a rule %v with the problems %v", r, problems)
		}
		if r == nil {
			if text := Sentence(problems); len(text) > MaxText || !safe(text) {
				t.Fatalf("the problem is %q", text)
			}
			return
		}
		see := func() Effects {
			e := NewEngine()
			e.SetRules([]*Rule{r})
			effects, err := e.Observe(t.Context(), Observation{
				Kind: widget, Time: start, Records: []change.Record{{Type: change.Created, UID: "u", ResourceVersion: "1", Time: start}},
				After: &change.State{Name: "a", UID: "u", ResourceVersion: "1", Body: []byte(body)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if s := e.Status(r.UID); len(s.Failure) > MaxText || !safe(s.Failure) {
				t.Fatalf("the failure is %q", s.Failure)
			}
			return effects
		}
		begun := time.Now()
		first := see()
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("it took %s", took)
		}
		for _, a := range first.Alarms {
			if len(a.Message) > MaxText || !safe(a.Message) {
				t.Fatalf("the message is %q", a.Message)
			}
		}
		if diff := cmp.Diff(first, see()); diff != "" {
			t.Fatalf("a second look says something else:\n%s", diff)
		}
	})
}

func safe(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// A pattern means what the expression means that has .* for each *.
func FuzzGlob(f *testing.F) {
	f.Add("team-*", "team-a")
	f.Add("*a*b*", "xaab")
	f.Add("a*a", "a")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want := regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(text)
		if got := glob(pattern, text); got != want {
			t.Errorf("glob(%q, %q) is %v, want %v", pattern, text, got, want)
		}
	})
}

// What is safe already stays as it is, and everything else becomes safe.
func FuzzText(f *testing.F) {
	f.Add("plain ünïcode")
	f.Add("\x1b[31m\u202e\xff\n")
	f.Add(strings.Repeat("ü", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		got := Text(text)
		if len(got) > MaxText || !safe(got) || Text(got) != got {
			t.Errorf("Text(%q) is %q", text, got)
		}
	})
}

// A stored state is refused, or reads the same when it is stored again.
func FuzzRestore(f *testing.F) {
	f.Add("rule/r/u", []byte(`{"o":{"k":"Widget","n":"a","u":"u"},"p":"x","s":1,"t":[1,2],"x":{".a":{"l":"x","a":3}}}`))
	f.Add("rule/r", []byte(`null`))
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		uid, s, err := restore(Saved{key, data})
		if err != nil {
			return
		}
		saved := s.save(uid)
		if saved.Key != key || !json.Valid(saved.Data) {
			t.Fatalf("%q is stored as %q: %s", key, saved.Key, saved.Data)
		}
		if _, again, err := restore(saved); err != nil || string(again.save(uid).Data) != string(saved.Data) {
			t.Fatalf("it is not the same again: %v", err)
		}
		e := NewEngine()
		e.Load([]Saved{{key, data}})
		for range 3 {
			for _, kind := range e.Kinds() {
				e.Tick(kind, start)
				e.Sweep(kind, start)
			}
		}
	})
}

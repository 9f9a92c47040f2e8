package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/rights"
)

// TestAReaderCannotHaveTheAPIServerAskedWithoutALimit: the history has more namespaces than a request may ask about, and one user asks for
// all of it on and on. Another user is answered as if nobody else was there.
func TestAReaderCannotHaveTheAPIServerAskedWithoutALimit(t *testing.T) {
	const namespaces, rounds, pause = 2500, 8, rights.NamespaceFor + time.Millisecond
	apples := kindOf("apples", true)
	clock := testingclock.NewFakeClock(time.Now())
	m := newMonitor(t, func(o *Options) { o.Clock = clock }, apples)
	for n := 0; n < namespaces; {
		batch := store.Batch{Kind: apples}
		for ; n < namespaces && len(batch.Records) < 1000; n++ {
			batch.Records = append(batch.Records, change.Record{
				Kind: apples, Namespace: fmt.Sprintf("n%d", n), Name: "a", UID: types.UID(fmt.Sprintf("u%d", n)), ResourceVersion: fmt.Sprint(n + 10),
				Type: change.Updated, Time: clock.Now(), ObjectCreated: clock.Now(), Actor: change.Actor{Confidence: change.Unknown},
			})
		}
		m.commit(batch)
	}
	asked := func() int {
		m.cluster.mutex.Lock()
		defer m.cluster.mutex.Unlock()
		return m.cluster.asked + m.cluster.namespacesRead
	}
	before := asked()
	for range rounds {
		page := get[api.Changes](m, "user", api.Prefix+"changes")
		if len(page.Incomplete) == 0 {
			t.Error("it does not say that it is incomplete")
		}
		clock.Step(pause)
	}
	most := rights.QuestionsAtOnce + int(rounds*pause.Seconds()*rights.QuestionsEachSecond)
	if got := asked() - before; got > most || got < rights.MaxQuestions {
		t.Errorf("the API server was asked %d times, and %d is the most", got, most)
	}
	m.cluster.allow("user-other", "apples.example.com", "n1", true)
	page := get[api.Changes](m, "user-other", api.Prefix+"changes?kind=apples.example.com&namespace=n1")
	if len(page.Changes) != 1 || len(page.Incomplete) > 0 {
		t.Errorf("another user gets %d changes, %v", len(page.Changes), page.Incomplete)
	}
}

// remade is a namespace that was made again: what was recorded of the one before, and what is recorded of the one that is there now.
type remade struct {
	*monitor
	apples change.Kind
	alarms *fixedRules
	clock  *testingclock.FakeClock
}

func newRemade(t *testing.T) *remade {
	apples := kindOf("apples", true)
	r := &remade{apples: apples, alarms: &fixedRules{}, clock: testingclock.NewFakeClock(time.Now())}
	r.monitor = newMonitor(t, func(o *Options) { o.Rules, o.Clock = r.alarms, r.clock }, apples)
	r.cluster.allow("user-before", "apples.example.com", "north", true)
	r.cluster.allow("user-all", "apples.example.com", "", true)
	return r
}

// pass lets the time pass for which it counts which namespace has a name.
func (r *remade) pass() { r.clock.Step(rights.NamespaceFor + time.Millisecond) }

// add records an object, and an alarm about it.
func (r *remade) add(name, word string) change.Record {
	record := r.record(r.apples, "north", name, word)
	r.alarms.alarms = append(r.alarms.alarms, Alarm{
		Rule: "rule", Message: word, Kind: r.apples.GroupResource(), Namespace: "north", Name: name, UID: record.UID,
	})
	return record
}

// questions are all that can be asked about the namespace, and about the objects in it by their UIDs.
func (r *remade) questions(name string, records ...change.Record) []string {
	all := everyQuestion("apples.example.com", "north", name, "")
	for _, record := range records {
		object := fmt.Sprintf("kind=apples.example.com&namespace=north&name=%s&uid=%s", name, record.UID)
		all = append(all, api.Prefix+"object?"+object, api.Prefix+"object?at=0s&"+object, api.Prefix+"history?"+object)
	}
	return all
}

// TestANamespaceThatIsMadeAgainShowsNothingFromBefore asks everything about a namespace that changed hands: who has rights in the one
// that is there now finds its objects and no word of those before, though one of them had the same name and the monitor has not
// heard of the end of another.
func TestANamespaceThatIsMadeAgainShowsNothingFromBefore(t *testing.T) {
	r := newRemade(t)
	old := r.add("same", "theirs1")
	lingering := r.add("lingering", "theirs2")
	r.gone(r.apples, old)
	cursor := get[api.Changes](r.monitor, "user-all", api.Prefix+"changes?limit=1").Changes[0].ID
	r.remake("north", time.Hour)
	r.cluster.allow("user-before", "apples.example.com", "north", false)
	r.cluster.allow("user-now", "apples.example.com", "north", true)
	fresh := r.add("same", "ours")
	found := false
	for _, question := range append(r.questions("same", old, fresh), r.questions("lingering", lingering)...) {
		question = strings.Replace(question, "cursor=", "cursor="+cursor, 1)
		body := r.ask("user-now", question).Body.String()
		if strings.Contains(body, "theirs") || strings.Contains(body, "lingering") || strings.Contains(body, string(old.UID)) {
			t.Errorf("who has the namespace now sees what was before in %s: %s", question, body)
		}
		found = found || strings.Contains(body, "ours")
	}
	r.pass()
	for _, question := range r.questions("same", old, fresh) {
		if body := r.ask("user-before", question).Body.String(); strings.Contains(body, "ours") {
			t.Errorf("who had the namespace before sees what is there now in %s: %s", question, body)
		}
	}
	if !found {
		t.Error("who has the namespace now sees nothing of it")
	}
	counted := get[api.HealthSummary](r.monitor, "user-now", api.Prefix+"health?namespace=north")
	if n := counted.Counts["Progressing"] + counted.Counts["Failed"] + counted.Counts["Unknown"] + counted.Counts["Healthy"]; n != 1 {
		t.Errorf("it counts %v, and there is one object", counted.Counts)
	}
	if all := get[api.Changes](r.monitor, "user-all", api.Prefix+"changes?kind=apples.example.com"); len(all.Changes) != 4 {
		t.Errorf("who may list the kind everywhere sees %d changes of 4", len(all.Changes))
	}
}

// TestARightEndsWithItsNamespace: what was answered about a namespace does not count for the one of the same name that comes after it.
func TestARightEndsWithItsNamespace(t *testing.T) {
	r := newRemade(t)
	r.add("first", "first")
	question := api.Prefix + "changes?kind=apples.example.com&namespace=north"
	if all := get[api.Changes](r.monitor, "user-before", question); len(all.Changes) != 1 {
		t.Fatalf("%v", names(all.Changes))
	}
	for _, step := range []struct {
		name   string
		change func()
		users  map[string]int
	}{
		{"there is none", func() { r.unmake("north") }, map[string]int{"user-before": 404, "user-now": 404, "user-all": 200}},
		{"it is made again", func() { r.remake("north", time.Hour) }, map[string]int{"user-before": 404, "user-now": 200, "user-all": 200}},
	} {
		step.change()
		r.pass()
		r.cluster.allow("user-before", "apples.example.com", "north", false)
		r.cluster.allow("user-now", "apples.example.com", "north", true)
		for user, want := range step.users {
			if w := r.ask(user, question); w.Code != want {
				t.Errorf("%s, %s: %d, want %d", step.name, user, w.Code, want)
			}
		}
	}
}

// TestInTheSecondInWhichANamespaceIsMadeTheVersionsTell: times have whole seconds, and a manifest makes a namespace and what is in it
// within one.
func TestInTheSecondInWhichANamespaceIsMadeTheVersionsTell(t *testing.T) {
	for name, tc := range map[string]struct {
		// later is an update of the namespace after the objects were recorded, and heard that something of the kind is stored since.
		later, heard bool
		want         string
	}{
		"as it was made":                       {want: "ours"},
		"updated since":                        {later: true, want: ""},
		"updated, and the kind is followed on": {later: true, heard: true, want: "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemade(t)
			old := r.add("old", "theirs")
			r.gone(r.apples, old)
			r.remake("north", 0)
			r.cluster.allow("user-now", "apples.example.com", "north", true)
			r.add("new", "ours")
			if tc.later {
				r.touch("north")
			}
			if tc.heard {
				r.number++
				r.commit(store.Batch{Kind: r.apples, Checkpoint: fmt.Sprint(1000 + r.number)})
			}
			for _, question := range []string{"changes?namespace=north", "health?all=true&namespace=north"} {
				body := r.ask("user-now", api.Prefix+question).Body.String()
				if strings.Contains(body, "theirs") || strings.Contains(body, "ours") != (tc.want != "") {
					t.Errorf("%s: %s", question, body)
				}
			}
		})
	}
}

// TestAStreamEndsWithItsNamespace: a stream that was opened by who had the namespace tells nothing of the one that comes after it.
func TestAStreamEndsWithItsNamespace(t *testing.T) {
	r := newRemade(t)
	server := httptest.NewServer(r.handler)
	defer server.Close()
	defer server.CloseClientConnections()
	l := listen(t, server.URL, "user-before", "stream?kind=apples.example.com&namespace=north", "")
	l.next("view")
	r.add("first", "first")
	r.clock.Step(lookEvery)
	if _, data := l.next("change"); !strings.Contains(data, "first") {
		t.Fatal(data)
	}
	r.remake("north", time.Hour)
	r.cluster.allow("user-before", "apples.example.com", "north", false)
	r.add("second", "second")
	r.pass()
	if _, data := l.next("failure"); strings.Contains(data, "second") {
		t.Error(data)
	}
}

// TestNothingIsShownWhileNamespacesCannotBeRead: not even to who may list in the namespace, but who may list everywhere needs none.
func TestNothingIsShownWhileNamespacesCannotBeRead(t *testing.T) {
	r := newRemade(t)
	r.add("one", "word")
	r.cluster.mutex.Lock()
	r.cluster.namespacesDown = errDown
	r.cluster.mutex.Unlock()
	for _, question := range r.questions("one") {
		w := r.ask("user-before", question)
		if strings.Contains(w.Body.String(), "word") {
			t.Errorf("%s: %d %s", question, w.Code, w.Body)
		}
	}
	if w := r.ask("user-all", api.Prefix+"changes?namespace=north"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "word") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

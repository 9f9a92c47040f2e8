package server

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// everyQuestion returns requests of all endpoints, about everything and about one object.
func everyQuestion(kind, namespace, name, cursor string) []string {
	about := url.Values{"kind": {kind}, "namespace": {namespace}, "name": {name}}
	in := url.Values{"kind": {kind}, "namespace": {namespace}}
	var all []string
	for _, endpoint := range []string{"changes", "gaps", "rate", "health", "kinds", "coverage", "rules", "definitions?name=" + kind} {
		all = append(all, api.Prefix+endpoint)
	}
	for _, endpoint := range []string{"kinds", "coverage", "changes", "health", "rate", "gaps"} {
		all = append(all, api.Prefix+endpoint+"?namespace="+namespace)
	}
	for _, endpoint := range []string{"changes", "health", "rate", "gaps"} {
		all = append(all, api.Prefix+endpoint+"?kind="+kind, api.Prefix+endpoint+"?"+in.Encode())
	}
	all = append(all, api.Prefix+"health?all=true", api.Prefix+"changes?actor=editor&path=.spec", api.Prefix+"changes?cursor="+cursor)
	for _, endpoint := range []string{"history", "object"} {
		all = append(all, api.Prefix+endpoint+"?"+about.Encode(), api.Prefix+endpoint+"?kind="+kind+"&name="+name)
	}
	return append(all, api.Prefix+"object?at=0s&"+about.Encode(), api.Prefix+"object?at=24h&"+about.Encode())
}

// TestNobodySeesWhatTheyMayNotList tries a few users. With the build tag monitortest there are more.
func TestNobodySeesWhatTheyMayNotList(t *testing.T) { tryRandomRights(t, 1, 6) }

// tryRandomRights gives users random rights: each object, gap and alarm has a word of its own in whatever is recorded of it, and no
// answer has a word of what its reader may not list. What may be listed is found.
func tryRandomRights(t *testing.T, seed uint64, users int) {
	t.Helper()
	kinds := []change.Kind{kindOf("apples", true), kindOf("pears", true), kindOf("plums", true), kindOf("trees", false)}
	namespaces := []string{"north", "south", "west"}
	type thing struct {
		kind                  change.Kind
		namespace, name, word string
	}
	var things []thing
	alarms := &fixedRules{}
	m := newMonitor(t, func(o *Options) { o.Rules = alarms }, kinds...)
	add := func(kind change.Kind, namespace string) {
		word := fmt.Sprintf("canary%s%s", kind.Resource, namespace)
		one := thing{kind, namespace, "name-" + word, word}
		things = append(things, one)
		m.record(kind, namespace, one.name, word)
		alarms.alarms = append(alarms.alarms, Alarm{Rule: "rule", Message: word, Kind: kind.GroupResource(), Namespace: namespace, Name: one.name})
	}
	for _, kind := range kinds {
		if kind.Namespaced {
			for _, namespace := range namespaces {
				add(kind, namespace)
			}
		} else {
			add(kind, "")
		}
		m.commit(store.Batch{Kind: kind, Records: []change.Record{{Kind: kind, Type: change.Gap, Time: time.Now(), Since: time.Now().Add(-time.Minute), Reason: "gapof" + kind.Resource}}})
	}
	m.cluster.allow("user-all", "*.*", "", true)
	for _, kind := range kinds {
		m.cluster.allow("user-all", kind.GroupResource().String(), "", true)
	}
	cursor := get[api.Changes](m, "user-all", api.Prefix+"changes?limit=1").Next
	random := rand.New(rand.NewPCG(seed, 2))
	seen := 0
	for round := range users {
		user := fmt.Sprintf("user%d", round)
		rights := map[string]bool{}
		for _, kind := range kinds {
			name := kind.GroupResource().String()
			if random.IntN(6) == 0 {
				m.cluster.allow(user, name, "", true)
				rights[name] = true
			}
			for _, namespace := range namespaces {
				if random.IntN(4) == 0 {
					m.cluster.allow(user, name, namespace, true)
					rights[name+"/"+namespace] = true
				}
			}
		}
		may := func(kind change.Kind, namespace string) bool {
			name := kind.GroupResource().String()
			return rights[name] || namespace != "" && rights[name+"/"+namespace]
		}
		about := things[random.IntN(len(things))]
		for _, question := range everyQuestion(about.kind.GroupResource().String(), about.namespace, about.name, cursor) {
			answer := m.ask(user, question)
			body := answer.Body.String() + fmt.Sprint(answer.Header())
			if strings.Contains(body, "definition-") && !strings.Contains(body, "canary") && !strings.Contains(body, "gapof") {
				t.Errorf("%s sees a definition in %s: %s", user, question, body)
			}
			for _, one := range things {
				if may(one.kind, one.namespace) {
					if strings.Contains(body, one.word) {
						seen++
					}
					continue
				}
				if strings.Contains(body, one.word) {
					t.Errorf("%s may not see %s in %s, and does in %s:\n%s", user, one.kind.Resource, one.namespace, question, body)
				}
			}
			for _, kind := range kinds {
				anywhere := rights[kind.GroupResource().String()]
				for _, namespace := range namespaces {
					anywhere = anywhere || kind.Namespaced && rights[kind.GroupResource().String()+"/"+namespace]
				}
				if !anywhere && strings.Contains(body, kind.GroupResource().String()) {
					t.Errorf("%s may list no %s, and sees that there are some in %s:\n%s", user, kind.Resource, question, body)
				}
			}
		}
		all := get[api.Changes](m, user, api.Prefix+"changes?limit=500&type=Updated")
		want := 0
		for _, one := range things {
			if may(one.kind, one.namespace) {
				want++
			}
		}
		if len(all.Changes) != want {
			t.Errorf("%s sees %d changes, and may see %d", user, len(all.Changes), want)
		}
	}
	if seen == 0 {
		t.Error("nobody saw anything")
	}
}

// TestWhatMayNotBeSeenIsRefusedLikeWhatDoesNotExist compares the answers, all but the time.
func TestWhatMayNotBeSeenIsRefusedLikeWhatDoesNotExist(t *testing.T) {
	apples := kindOf("apples", true)
	m := newMonitor(t, nil, apples)
	m.record(apples, "north", "there", "hidden")
	m.cluster.allow("user", "pears.example.com", "north", true)
	for _, endpoint := range []string{"changes", "history", "object", "health", "gaps", "rate"} {
		params := "?kind=%s&namespace=north"
		if endpoint == "history" || endpoint == "object" {
			params += "&name=there"
		}
		hidden := m.ask("user", api.Prefix+endpoint+fmt.Sprintf(params, "apples.example.com"))
		missing := m.ask("user", api.Prefix+endpoint+fmt.Sprintf(params, "nothing.example.com"))
		if diff := cmp.Diff(missing.Body.String(), hidden.Body.String()); diff != "" || hidden.Code != missing.Code {
			t.Errorf("%s: %d and %d %s", endpoint, missing.Code, hidden.Code, diff)
		}
		if diff := cmp.Diff(missing.Header(), hidden.Header()); diff != "" {
			t.Errorf("%s: %s", endpoint, diff)
		}
		if hidden.Code != http.StatusNotFound {
			t.Errorf("%s: %d", endpoint, hidden.Code)
		}
	}
}

func TestARightInANamespaceGivesNoneToAKindWithoutNamespaces(t *testing.T) {
	trees := kindOf("trees", false)
	m := newMonitor(t, nil, trees)
	m.record(trees, "", "oak", "hidden")
	m.commit(store.Batch{Kind: trees, Records: []change.Record{{Kind: trees, Type: change.Gap, Time: time.Now(), Reason: "hidden"}}})
	m.cluster.allow("user", "trees.example.com", "north", true)
	for _, question := range everyQuestion("trees.example.com", "north", "oak", "") {
		if body := m.ask("user", question).Body.String(); strings.Contains(body, "hidden") || strings.Contains(body, "oak") {
			t.Errorf("%s: %s", question, body)
		}
	}
}

func TestNothingIsShownWhileRightsCannotBeAsked(t *testing.T) {
	apples := kindOf("apples", true)
	m := newMonitor(t, nil, apples)
	m.record(apples, "north", "there", "hidden")
	m.cluster.allow("user", "apples.example.com", "", true)
	if w := m.ask("user", api.Prefix+"whoami"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	m.cluster.mutex.Lock()
	m.cluster.down = errDown
	m.cluster.mutex.Unlock()
	for _, question := range everyQuestion("apples.example.com", "north", "there", "") {
		w := m.ask("user", question)
		if strings.Contains(w.Body.String(), "hidden") || w.Code == http.StatusOK && !strings.Contains(question, "rules") {
			t.Errorf("%s: %d %s", question, w.Code, w.Body)
		}
	}
}

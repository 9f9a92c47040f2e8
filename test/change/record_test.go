//go:build e2e || change

package change

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// clock is how a time of day is printed.
	clock = "15:04:05.000"
	// around a failure the events of so much time before and after it are printed.
	before, after = 8 * time.Second, time.Second
	// printed is how many failures are printed with their surroundings.
	printed = 10
)

// record is what was going on, and what came of it.
type record struct {
	mutex    sync.Mutex
	doing    string // the change under way
	events   []event
	failures []failure
	counts   map[string]*count
	// log gets the first failures as they happen.
	log func(format string, args ...any)
}

// event is something that happened to a pod, or a change.
type event struct {
	at   time.Time
	what string
}

// failure is a request that failed or a stream that was cut.
type failure struct {
	event

	doing string
}

// count counts requests or streams.
type count struct{ good, failed int }

func newRecord(log func(format string, args ...any)) *record {
	return &record{counts: map[string]*count{}, doing: "before the first change", log: log}
}

// note notes that something happened.
func (r *record) note(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, event{time.Now(), fmt.Sprintf(format, args...)})
}

// begin notes that a change begins.
func (r *record) begin(what string) {
	r.note("%s", what)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.doing = what
}

// ended counts a request or a stream of a protocol. detail says more of one that failed.
func (r *record) ended(protocol string, start time.Time, detail string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c := r.counts[protocol]
	if c == nil {
		c = &count{}
		r.counts[protocol] = c
	}
	if err == nil {
		c.good++
		return
	}
	c.failed++
	now := time.Now()
	what := fmt.Sprintf("%s, begun %v before: %s: %v", protocol, now.Sub(start).Round(time.Millisecond), detail, err)
	r.failures = append(r.failures, failure{event{now, what}, r.doing})
	if len(r.failures) <= printed {
		r.log("%s, during %s: %s", now.Format(clock), r.doing, what)
	}
}

// sum adds up the protocols that are wanted.
func (r *record) sum(wanted func(protocol string) bool) (total count) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for protocol, c := range r.counts {
		if wanted(protocol) {
			total.good += c.good
			total.failed += c.failed
		}
	}
	return total
}

// lines are the counts, a line for each protocol.
func (r *record) lines() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var lines []string
	for protocol, c := range r.counts {
		lines = append(lines, fmt.Sprintf("%s: %d, of which %d failed", protocol, c.good+c.failed, c.failed))
	}
	slices.Sort(lines)
	return lines
}

// report describes the first failures, each with what went on at that moment.
func (r *record) report() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var b strings.Builder
	var shown time.Time
	for i, f := range r.failures {
		if i == printed {
			fmt.Fprintf(&b, "and %d more\n", len(r.failures)-printed)
			break
		}
		fmt.Fprintf(&b, "%s %s\n    during: %s\n", f.at.Format(clock), f.what, f.doing)
		for _, e := range r.events {
			if e.at.After(shown) && e.at.After(f.at.Add(-before)) && e.at.Before(f.at.Add(after)) {
				fmt.Fprintf(&b, "    %s %s\n", e.at.Format(clock), e.what)
				shown = e.at
			}
		}
	}
	return b.String()
}

// find returns the events that hold a word.
func (r *record) find(word string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []string
	for _, e := range r.events {
		if strings.Contains(e.what, word) {
			found = append(found, e.at.Format(clock)+" "+e.what)
		}
	}
	return found
}

package gatewayattack

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/http2"
)

// The oracles. Each is something that must hold whatever is sent.
const (
	// oracleUnsent: a request that a backend sees is one of those that were sent, with its method.
	oracleUnsent = "unsent"
	// oracleTwice: it sees each at most once.
	oracleTwice = "twice"
	// oracleKey: none whose path some server reads as a protected one came without its key.
	oracleKey = "key"
	// oracleRefused: it sees none that must be refused.
	oracleRefused = "refused"
	// oracleFields: it sees no field that is not the client's to send, and those that the gateway vouches for.
	oracleFields = "fields"
	// oracleWhole: a request that is cut short does not look whole to the backend, nor an answer to the client.
	oracleWhole = "whole"
	// oracleReaders: every reader reads the gateway's bytes alike.
	oracleReaders = "readers"
	// oracleAnswers: nobody gets more answers than requests were sent, or somebody else's, or bytes that are none.
	oracleAnswers = "answers"
	// oracleVictim: who asks afterwards, over the same connections to the backend, gets the answer to that.
	oracleVictim = "victim"
	// oracleHead: the head of an answer tells its length at most once and in digits, and so many bytes follow.
	oracleHead = "head"
	// oracleReused: no request comes on the connection of an answer that was so wrong that it might go on.
	oracleReused = "reused"
	// oracleServed: a request that is as it should be reaches the backend as it is.
	oracleServed = "served"
)

var oracles = []string{
	oracleUnsent, oracleTwice, oracleKey, oracleRefused, oracleFields, oracleWhole, oracleReaders, oracleAnswers, oracleVictim, oracleHead, oracleReused, oracleServed,
}

// maxRefusals is how often a request that a backend says it has not processed may come again, without retries.
const maxRefusals = 3

// violation is an oracle that was violated.
type violation struct {
	oracle string
	text   string
}

// judge finds what was wrong, by attack.
type judge struct {
	attacks map[int64]*played
	found   map[*played][]violation
	// reached counts the requests of each attack that its backend saw.
	reached map[*played]int
	// prefaces are the attacks that are blamed when a backend is spoken to in HTTP/2: the
	// preface has no id.
	prefaces map[*lane]*played
	// relayed are the requests that a proxy in front of the gateway has sent to it, as often as it did; nil where there
	// is none. Where there is one, what it makes of an attack is its own business: then the gateway is judged by what it
	// makes of the proxy's requests.
	relayed map[string]int
	// stray is what belongs to no attack.
	stray []violation
}

func newJudge(attacks []*played) *judge {
	j := &judge{attacks: map[int64]*played{}, found: map[*played][]violation{}, reached: map[*played]int{}, prefaces: map[*lane]*played{}}
	for _, p := range attacks {
		j.attacks[p.number] = p
		if p.family == protocolFamily {
			j.prefaces[p.lane] = p
		}
	}
	return j
}

func (j *judge) add(p *played, oracle, format string, args ...any) {
	v := violation{oracle: oracle, text: fmt.Sprintf(format, args...)}
	if p == nil {
		j.stray = append(j.stray, v)
		return
	}
	j.found[p] = append(j.found[p], v)
}

// blame is the attack whose id is in the bytes of a connection.
func (j *judge) blame(l *lane, bytes []byte) *played {
	if strings.HasPrefix(string(bytes), http2.ClientPreface[:16]) {
		return j.prefaces[l]
	}
	id, _ := findID(string(bytes))
	return j.owner(id)
}

// owner is the attack whose id that is.
func (j *judge) owner(id string) *played {
	if len(id) < 8 {
		return nil
	}
	var number int64
	if _, err := fmt.Sscanf(id[2:8], "%d", &number); err != nil {
		return nil
	}
	return j.attacks[number]
}

// relays notes what a proxy in front of the gateway has sent to it.
func (j *judge) relays(between *recorder) {
	j.relayed = map[string]int{}
	for _, stream := range between.streams() {
		for {
			m, n, state := strictly.next(stream)
			if m != nil { // its body may be nonsense
				id, _ := findID(m.target)
				j.relayed[id]++
			}
			if state != whole {
				break
			}
			stream = stream[n:]
		}
	}
}

// lanes judges what the backends saw.
func (j *judge) lanes(lanes []*lane) {
	times := map[string]int{}
	for _, l := range lanes {
		requests := l.requests()
		for _, s := range requests {
			j.request(s, times)
		}
		j.reused(requests)
		if !l.real {
			j.streams(l)
		}
	}
}

func (j *judge) request(s *seen, times map[string]int) {
	p := j.owner(s.id)
	if p == nil {
		j.add(j.blame(s.lane, s.head), oracleUnsent, "nobody sent what %s", s)
		return
	}
	if s.letter == 'v' { // the victim's
		return
	}
	j.reached[p]++
	j.keys(p, s)
	if p.asksAgain && s.value("user-agent") == againAgent {
		p.again.reached = true
		return
	}
	times[s.id]++
	if j.relayed != nil {
		if times[s.id] > j.relayed[s.id] && !p.unprocessed {
			j.add(p, oracleUnsent, "%s, which the proxy in front has sent %d times", s, j.relayed[s.id])
		}
		return
	}
	if !strings.Contains(p.sends, string(s.letter)) {
		j.add(p, oracleUnsent, "%s, which nobody sent as a request", s)
	}
	if method := p.methodOf(s.letter); method != "" && method != s.method {
		j.add(p, oracleUnsent, "%s, which was sent with the method %s", s, method)
	}
	if times[s.id] == 2 && !p.unprocessed || times[s.id] == 1+maxRefusals+1 {
		j.add(p, oracleTwice, "%s, and not for the first time", s)
	}
	if strings.Contains(p.never, string(s.letter)) {
		j.add(p, oracleRefused, "%s, which must be refused", s)
	}
	if s.whole && strings.Contains(p.partial, string(s.letter)) {
		j.add(p, oracleWhole, "%s, whole, which was cut short", s)
	}
	if s.lane.real {
		return // it puts fields in and leaves some out itself
	}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		if got := s.value(name); got != p.expand(p.fields[name]) {
			j.add(p, oracleFields, "%s with %s %q instead of %q", s, name, got, p.expand(p.fields[name]))
		}
	}
	if want := p.expand(p.target); want != "" && s.letter == 'a' && s.target != want {
		j.add(p, oracleServed, "%s instead of the target %q", s, want)
	}
}

// keys judges whether a request had the key of the path that it leads to.
func (j *judge) keys(p *played, s *seen) {
	found := zonesOf(s.target)
	if s.lane.real {
		found = nil
		if slices.Contains(zones, s.zone) {
			found = []string{s.zone}
		}
	}
	for _, zone := range found {
		with := p.keyed
		if zone == "other" {
			with = p.otherKeyed
		}
		if !strings.Contains(with, string(s.letter)) {
			j.add(p, oracleKey, "%s, which leads below /%s, without its key", s, zone)
		}
	}
}

// streams judges the bytes of the connections to a backend.
func (j *judge) streams(l *lane) {
	for _, stream := range l.records.streams() {
		want, tail := strictly.all(stream)
		for _, m := range want {
			j.canary(m)
		}
		if tail == broken {
			j.add(j.blame(l, stream), oracleReaders, "%s got what is no request: %s", l.name, short(stream))
		}
		for _, r := range readers[1:] {
			got, _ := r.all(stream)
			if at := firstDifference(want, got); at >= 0 {
				suspect := stream
				if at = min(at, len(want)-1); at >= 0 {
					suspect = want[at].head
				}
				j.add(j.blame(l, suspect), oracleReaders, "%s got bytes of which a server with %q reads %d requests, and others %d: %s",
					l.name, r.name, len(got), len(want), short(stream))
				break
			}
		}
	}
}

// canary looks for what no backend may see.
func (j *judge) canary(m *message) {
	id, _ := findID(m.target)
	p := j.owner(id)
	if p == nil || j.relayed != nil {
		return
	}
	if bytes.Contains(m.head, []byte(p.hidden())) || strings.Contains(fmt.Sprint(m.trailers), p.hidden()) {
		j.add(p, oracleFields, "a backend saw what is not the client's to say: %q, trailers %q", m.head, m.trailers)
	}
}

func short(stream []byte) string {
	if len(stream) > 3000 {
		return fmt.Sprintf("%q ... %d bytes", stream[:3000], len(stream))
	}
	return fmt.Sprintf("%q", stream)
}

// firstDifference is where two readers differ, -1 if nowhere.
func firstDifference(a, b []*message) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].method != b[i].method || a[i].target != b[i].target || !bytes.Equal(a[i].body, b[i].body) {
			return i
		}
	}
	return -1
}

// client judges what the client of an attack got.
func (j *judge) client(p *played) {
	if j.relayed != nil {
		j.foreign(p)
		return
	}
	if p.trouble != "" {
		j.add(p, oracleAnswers, "%s, in %q", p.trouble, p.got)
	}
	got := finals(p.answers)
	if p.cut && slices.ContainsFunc(got, func(a answer) bool { return a.whole && a.status < 500 }) {
		j.add(p, oracleWhole, "the answer, which was cut short, looks whole: %s, %+v", short(p.got), got)
	}
	if len(got) > len(p.sends) {
		j.add(p, oracleAnswers, "%d answers to %d requests: %s", len(got), len(p.sends), short(p.got))
	}
	if p.gets != 0 && !slices.ContainsFunc(got, func(a answer) bool { return a.status == p.gets }) {
		j.add(p, oracleAnswers, "the client must get %d, and got %+v: %s", p.gets, got, short(p.got))
	}
	last := byte(0)
	for _, a := range p.answers {
		j.head(p, &a)
		for _, field := range slices.Concat(a.fields, a.trailers) {
			if field[0] == "x-split" && field[1] == p.split() {
				j.add(p, oracleAnswers, "the answer has a field that the backend did not send as one: %s", short(p.got))
			}
		}
		id, letter := findID(a.body)
		if id == "" || len(p.h2) > 0 && j.owner(id) == p { // streams may be answered in any order
			continue
		}
		if j.owner(id) != p {
			j.add(p, oracleAnswers, "got the answer to %s", id)
		} else if letter <= last {
			j.add(p, oracleAnswers, "answers are not in the order of the requests: %s", short(p.got))
		}
		last = letter
	}
}

// foreign judges whether a client of a proxy in front got somebody else's answer.
func (j *judge) foreign(p *played) {
	for _, a := range p.answers {
		if id, _ := findID(a.body); id != "" && j.owner(id) != p {
			j.add(p, oracleAnswers, "got the answer to %s", id)
		}
	}
}

// served judges whether what should have reached the backend has.
func (j *judge) served(p *played, all map[string]bool) {
	if j.relayed != nil {
		return
	}
	for i := range len(p.reaches) {
		if !all[p.id(p.reaches[i])] {
			j.add(p, oracleServed, "%s has not reached %s; the client got %s", p.id(p.reaches[i]), p.lane.name, short(p.got))
		}
	}
}

// methodOf is the method with which a request was sent, as far as it can be told.
func (p *played) methodOf(letter byte) string {
	id := p.id(letter)
	for _, f := range p.h2 {
		for i := 0; i+3 < len(f.fields); i += 2 {
			if f.fields[i] == ":method" && slices.ContainsFunc(f.fields, func(s string) bool { return strings.Contains(s, id) }) {
				return f.fields[i+1]
			}
		}
	}
	for _, s := range p.h1 {
		at := strings.Index(s.send, id)
		if at < 0 {
			continue
		}
		begin := strings.LastIndexByte(s.send[:at], '\n') + 1
		method, _, _ := strings.Cut(s.send[begin:], " ")
		if method != "" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return method
		}
	}
	return ""
}

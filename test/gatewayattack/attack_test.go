package gatewayattack

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// attack is what a client sends, and what may come of it. In its texts these stand for something:
//
//	{a} ... {h}  the id of a request. Those of sends are requests of the attack; any other one hides in them, for
//	             example in a body, and must never be seen as a request.
//	{x}          a value that no backend may see, anywhere.
//	{y}          a value that no client may see as that of a field named X-Split.
//	{host}       the host of the backend that is attacked.
//	{key}        the key of the protected route, and {otherkey} that of the other one.
//	{size}       the length of smuggled, in hexadecimal.
//	{length}     the length of what follows {body}.
type attack struct {
	family, name string
	// sends are the letters of the requests.
	sends string
	// keyed are the letters of those that carry the key of the protected route, otherKeyed of those with another's.
	keyed, otherKeyed string
	// never are the letters of requests that must not reach a backend at all.
	never string
	// reaches are the letters of requests that must: they are as they should be.
	reaches string
	// partial are the letters of those that are never whole, and must not look so to the backend. cut: the backend's answer
	// is never whole, and must not look so to the client.
	partial string
	cut     bool
	// target is how the backend must see the target of {a}. Optional.
	target string
	// fields are what each request must have when the backend sees it, by name in lower case. Optional.
	fields map[string]string
	// head: the requests are for heads of answers.
	head bool
	// secure has the attack come over TLS, with this server name.
	secure string
	// recorderOnly: what it is about is not told by the backend's server.
	recorderOnly bool
	// asksAgain: then another client asks for the page of {a}. apart: what {a} brings is not for it.
	asksAgain, apart bool
	// behind is what the recording backend does. One that does not behave is for this attack alone.
	behind behaviour
	// gets is the status that the client must get. 0: any.
	gets int
	// spoils: the backend's answer is so wrong that no request may come on its connection afterwards.
	spoils bool
	// unprocessed: the backend says that it has not looked at {a}, which may come again.
	unprocessed bool
	// noVictim: nobody looks afterwards whether others are served.
	noVictim bool

	h1 []step
	h2 []frame
}

// step is a part of an attack over HTTP/1.
type step struct {
	send string
	// pause waits, and await waits for so many answers, but not for long.
	pause time.Duration
	await int
	// halfClose ends the sending direction, cut does so below TLS, reset ends the connection as a whole.
	halfClose, cut, reset bool
}

// behaviour is what the recording backend does about a request of an attack.
type behaviour struct {
	// answer is sent instead of the usual one.
	answer string
	// early sends it when the head has come, ignore takes what follows the head for the next request.
	early, ignore bool
	// late is sent as soon as the answer, or the pause after it, is over.
	late string
	// pause is how long after the answer.
	pause time.Duration
	// close ends the connection after it.
	close bool
	// replies is what a backend over HTTP/2 answers instead; nil for one over HTTP/1.
	replies *[]reply
}

// hostile: nobody else can use the backend at the same time.
func (a *attack) hostile() bool { return a.behind != behaviour{} }

// Keys of the gateway.
const (
	// clientKey opens /private and /secret, otherKey opens /other.
	clientKey = "key-of-the-private-route"
	otherKey  = "key-of-the-other-route"
)

var numbers atomic.Int64

// played is an attack with ids, against a backend.
type played struct {
	*attack
	number int64
	lane   *lane
	// texts is the attack with everything put in.
	h1 []step
	h2 []frame
	// answers are what the client got, and trouble what was wrong with their bytes.
	answers []answer
	trouble string
	got     []byte
	again   again
}

// against gives the attack ids of its own.
func (a *attack) against(on *lane) *played {
	p := &played{attack: a, number: numbers.Add(1), lane: on}
	for _, s := range a.h1 {
		s.send = p.expand(s.send)
		p.h1 = append(p.h1, s)
	}
	for _, f := range a.h2 {
		f.data = p.expand(f.data)
		f.fields = slices.Clone(f.fields)
		for i := range f.fields {
			f.fields[i] = p.expand(f.fields[i])
		}
		p.h2 = append(p.h2, f)
	}
	return p
}

func (p *played) id(letter byte) string { return fmt.Sprintf("zq%06d%c", p.number, letter) }
func (p *played) hidden() string        { return fmt.Sprintf("hx%06dx", p.number) }
func (p *played) split() string         { return fmt.Sprintf("hy%06dy", p.number) }

func (p *played) expand(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	pairs := []string{"{host}", p.lane.host, "{key}", clientKey, "{otherkey}", otherKey, "{x}", p.hidden(), "{y}", p.split()}
	for letter := byte('a'); letter <= 'h'; letter++ {
		pairs = append(pairs, "{"+string(letter)+"}", p.id(letter))
	}
	if strings.Contains(text, "{size}") {
		pairs = append(pairs, "{size}", fmt.Sprintf("%x", len(p.expand(smuggled))))
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	head, body, framed := strings.Cut(text, "{body}")
	if !framed {
		return text
	}
	return strings.ReplaceAll(head, "{length}", strconv.Itoa(len(body))) + body
}

// sent is the attack's bytes, for whoever wants to see them.
func (p *played) sent() string {
	var text strings.Builder
	for _, s := range p.h1 {
		switch {
		case len(s.send) > 2000:
			fmt.Fprintf(&text, "  send %q ... %d bytes\n", s.send[:600], len(s.send))
		case s.send != "":
			fmt.Fprintf(&text, "  send %q\n", s.send)
		}
		if s.pause > 0 || s.await > 0 {
			fmt.Fprintf(&text, "  wait %v, for %d answers\n", s.pause, s.await)
		}
		if s.halfClose || s.cut || s.reset {
			fmt.Fprintf(&text, "  end: half %t, below TLS %t, reset %t\n", s.halfClose, s.cut, s.reset)
		}
	}
	for _, f := range p.h2 {
		fmt.Fprintf(&text, "  %s\n", f)
	}
	if p.behind.replies != nil {
		for _, part := range *p.behind.replies {
			fmt.Fprintf(&text, "  the backend: %s\n", part)
		}
	}
	return text.String()
}

var idPattern = regexp.MustCompile(`zq(\d{6})([a-hv])`)

// findID returns the id in a text, and its letter; "" if there is none.
func findID(text string) (id string, letter byte) {
	match := idPattern.FindStringSubmatch(text)
	if match == nil {
		return "", 0
	}
	return match[0], match[2][0]
}

// request is an attack of one text over HTTP/1.
func request(family, name, sends, text string) *attack {
	return &attack{family: family, name: name, sends: sends, h1: []step{{send: text}}}
}

package table

import (
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// checkListeners makes the listeners. An invalid one gets no requests. It is no listener of
// another port or host instead, because its rules are for its own requests only.
func (c *compiler) checkListeners() {
	taken := map[ListenerPlace]bool{}
	for i := range c.in.Listeners {
		spec := &c.in.Listeners[i]
		same := spec.Place()
		wrong := ""
		switch {
		case spec.Port < 0 || spec.Port > 65535:
			wrong = fmt.Sprintf("port: %d is not a port", spec.Port)
		case spec.Hostname != "" && !hostPattern.MatchString(spec.Hostname):
			wrong = fmt.Sprintf("hostname: %q is neither a lower case DNS name nor one after '*.'", spec.Hostname)
		case spec.Port == 0 && spec.Transport != model.TransportHTTP:
			wrong = fmt.Sprintf("port: a listener for %s needs one", spec.Transport)
		case taken[same]:
			wrong = "there is an earlier listener with this port and hostname"
		}
		if wrong != "" {
			c.problems = append(c.problems, model.Problem{
				Index: -1, List: "listeners", Route: spec.Name, Reason: model.ReasonInvalid, Message: wrong,
			})
			c.listeners = append(c.listeners, nil)
			continue
		}
		taken[same] = true
		l := &listener{transport: spec.Transport, exact: map[string]*host{}, wildcard: map[string]*host{}, queryNames: map[string]bool{}}
		c.listeners, c.valid = append(c.listeners, l), append(c.valid, l)
	}
}

// openPorts puts the listeners into the table. A port has its own listeners before those of
// every port.
func (c *compiler) openPorts(t *Table) {
	for i, l := range c.listeners {
		spec := &c.in.Listeners[i]
		if l == nil {
			continue
		}
		if spec.Port == 0 {
			t.every.add(spec.Hostname, l)
			continue
		}
		if t.ports == nil {
			t.ports = map[portKey]*port{}
		}
		key := portKey{spec.Port, spec.Secure, spec.Transport == model.TransportUDP}
		if t.ports[key] == nil {
			t.ports[key] = &port{}
		}
		t.ports[key].streams = t.ports[key].streams || spec.Transport != model.TransportHTTP
		t.ports[key].add(spec.Hostname, l)
	}
	if len(c.valid) == 1 && t.every.any != nil {
		t.only = t.every.any
	}
	for i, l := range c.listeners {
		if l != nil && c.in.Listeners[i].Port == 0 {
			t.addEverywhere(c.in.Listeners[i].Hostname, l)
		}
	}
}

// addEverywhere adds a listener of every port to those of each. None of them is for UDP.
func (t *Table) addEverywhere(hostname string, l *listener) {
	for key, p := range t.ports {
		if !key.udp {
			p.add(hostname, l)
		}
	}
}

// add adds a listener, unless there is one with the same host name.
func (p *port) add(hostname string, l *listener) {
	if hostname == "" {
		if p.any == nil {
			p.any = l
		}
		return
	}
	at := &p.exact
	if parent, wildcard := strings.CutPrefix(hostname, "*."); wildcard {
		at, hostname = &p.wildcard, parent
	}
	if *at == nil {
		*at = map[string]*listener{}
	}
	if (*at)[hostname] == nil {
		(*at)[hostname] = l
	}
}

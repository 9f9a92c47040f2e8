// Package requests counts what a client asks of an API server, by verb, resource and
// namespace. It sees every request, because it stands in the client's transport.
package requests

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Kind is one kind of request.
type Kind struct {
	// Verb is the API's: get, list, watch, create, update, patch, apply, delete or
	// deletecollection. Apply is a patch by server-side apply.
	Verb string
	// Resource is plural, with its subresource, for example webapps/status. It is empty
	// for requests about no resource, such as discovery.
	Resource string
	// Namespace is empty for requests about the whole cluster.
	Namespace string
}

// Class is what a request is for.
type Class string

// The classes. A mutating request is in one of the first four.
const (
	// Children is a write of anything that the others do not name.
	Children Class = "children"
	// Status is a write of a status.
	Status Class = "status"
	// Events is a write of an event.
	Events Class = "events"
	// Leases is a write or a read of the leader's Lease.
	Leases Class = "leases"
	// Reads is a read of an object, past any cache.
	Reads Class = "reads"
	// Lists is a list: what a cache is filled with at the start, and a live read after it.
	Lists Class = "lists"
	// Watches is a watch.
	Watches Class = "watches"
	// Discovery is a request about no resource.
	Discovery Class = "discovery"
)

// Class tells what requests of the kind are for.
func (k Kind) Class() Class {
	resource, subresource, _ := strings.Cut(k.Resource, "/")
	switch {
	case resource == "":
		return Discovery
	case resource == "leases":
		return Leases
	case k.Verb == "get":
		return Reads
	case k.Verb == "list":
		return Lists
	case k.Verb == "watch":
		return Watches
	case resource == "events":
		return Events
	case subresource == "status":
		return Status
	default:
		return Children
	}
}

// String returns verb and resource, for example "apply deployments".
func (k Kind) String() string { return strings.TrimSpace(k.Verb + " " + k.Resource) }

// Counts says how many requests of each kind there were.
type Counts map[Kind]int

// Sum sums up the classes.
func (c Counts) Sum(classes ...Class) int {
	sum := 0
	for kind, count := range c {
		if slices.Contains(classes, kind.Class()) {
			sum += count
		}
	}
	return sum
}

// Writes is the number of requests that change the state of the cluster: children and
// status. Events and the Lease are counted apart.
func (c Counts) Writes() int { return c.Sum(Children, Status) }

// In keeps the requests about one namespace.
func (c Counts) In(namespace string) Counts {
	kept := Counts{}
	for kind, count := range c {
		if kind.Namespace == namespace {
			kept[kind] = count
		}
	}
	return kept
}

// Since subtracts an earlier state of the same counter.
func (c Counts) Since(earlier Counts) Counts {
	difference := Counts{}
	for kind, count := range c {
		if count != earlier[kind] {
			difference[kind] = count - earlier[kind]
		}
	}
	return difference
}

// Plus adds other counts.
func (c Counts) Plus(other Counts) Counts {
	sum := maps.Clone(c)
	for kind, count := range other {
		sum[kind] += count
	}
	return sum
}

// ByKind sums up over namespaces, by verb and resource.
func (c Counts) ByKind() map[string]int {
	sums := map[string]int{}
	for kind, count := range c {
		sums[kind.String()] += count
	}
	return sums
}

// String lists verbs and resources with their counts, sorted.
func (c Counts) String() string {
	sums := c.ByKind()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		parts = append(parts, fmt.Sprintf("%d %s", sums[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// Counter counts requests. The zero value is ready.
type Counter struct {
	mu     sync.Mutex
	counts Counts
}

// Watch makes the counter see every request of the clients that are made of config.
func (c *Counter) Watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{counter: c, next: next}
	})
}

// Counts returns what was counted so far.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *Counter) add(kind Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = Counts{}
	}
	c.counts[kind]++
}

type transport struct {
	counter *Counter
	next    http.RoundTripper
}

// RoundTrip counts an attempt, whatever becomes of it: a request that is refused or
// tried again costs the API server something too.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.counter.add(KindOf(request))
	return t.next.RoundTrip(request)
}

// KindOf reads the kind of a request from its method and address.
func KindOf(request *http.Request) Kind {
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case segments[0] == "api" && len(segments) > 2:
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		segments = segments[3:]
	default:
		return Kind{Verb: strings.ToLower(request.Method)}
	}
	kind := Kind{}
	if segments[0] == "namespaces" && len(segments) > 2 {
		kind.Namespace = segments[1]
		segments = segments[2:]
	}
	kind.Resource = segments[0]
	named := len(segments) > 1
	if len(segments) > 2 {
		kind.Resource += "/" + strings.Join(segments[2:], "/")
	}
	kind.Verb = verb(request, named)
	return kind
}

func verb(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	watch := request.URL.Query().Get("watch")
	switch {
	case watch == "true" || watch == "1":
		return "watch"
	case named:
		return "get"
	default:
		return "list"
	}
}

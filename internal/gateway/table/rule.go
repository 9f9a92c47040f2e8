package table

import (
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Input is everything that a table is made from. A front end makes it from the objects of
// its API. The table keeps references to parts of it, so it must not be changed afterwards.
type Input struct {
	// Listeners are the listeners of the gateway.
	Listeners []Listener
	// Rules say which requests are answered how. Of equal rules the earlier one counts.
	Rules []Rule
	// Services are the Services that rules may name.
	Services map[model.ServiceName]model.Service
	// Settings are the settings of backends. Backends without any have the defaults.
	Settings map[model.BackendName]model.Settings
	// CheckOnly tells that only the problems are wanted. Then the table must not be used: expressions may not be compiled, which
	// is most of the work.
	CheckOnly bool
}

// Listener is a place where requests arrive. Of the listeners of a port, the one whose
// Hostname fits a request best gets it: one without wildcard, then the longest wildcard,
// then one without host name. Only the rules of this listener are looked at.
type Listener struct {
	// Name is for problems.
	Name string
	// Port is the port of the connection. 0: every port, with TLS and without. If a listener
	// of the port and one of every port have the same Hostname, the listener of the port
	// counts.
	Port int32
	// Secure means that the connections of Port use TLS.
	Secure bool
	// Hostname is a lower case DNS name, or one after "*.". Empty: every host.
	Hostname string
	// Transport says what happens with the connections of Port. A listener that is not for HTTP needs a Port.
	Transport model.Transport
}

// ListenerPlace is what only one listener can have.
type ListenerPlace struct {
	Port     int32
	Secure   bool
	UDP      bool
	Hostname string
}

// Place is that of the listener.
func (l *Listener) Place() ListenerPlace {
	return ListenerPlace{Port: l.Port, Secure: l.Secure && l.Port != 0, UDP: l.Transport == model.TransportUDP, Hostname: l.Hostname}
}

// Rule says which requests are answered how. It is plain data. A zero field means that
// nothing is asked for. Compile checks what would be unsafe.
type Rule struct {
	// Name is the name for logs, metrics and problems. Rules with the same name are counted
	// together, also for a rate limit.
	Name string
	// Index is the place in the front end's own list. It comes back in Route and Problem.
	Index int
	// Owner is who has written the rule. The regular expressions of an owner are bounded together.
	Owner string `json:"-"`
	// Listeners are the listeners that have the rule, as indexes of Input.Listeners. Nil: all.
	Listeners []int

	// Transport says how the backends are reached. If it is not that of HTTP, the rule is for connections or datagrams, and
	// has nothing but Host, Fault and Backends.
	Transport model.Transport

	// Host is a lower case DNS name, or one after "*.". Empty: every host.
	Host string
	// PathType says how Path is compared. Default: Prefix.
	PathType PathType
	// Path is the path, escaped. Default: "/".
	Path string
	// Methods are the methods. Empty: every method.
	Methods []string
	// Headers and Query must all match.
	Headers []ValueMatch
	Query   []ValueMatch
	// Rank orders rules with the same path, before the number of their conditions does.
	// Among regular expressions it also comes before their length. The highest is first.
	Rank int

	// Fault means that the rule cannot be served. Its requests are answered with 500. It is
	// told unless something is wrong with the rewrite, the headers, the answer or CORS.
	Fault *model.Fault

	// At most one of Backends, Redirect and Direct is set. A rule without any needs
	// StrictShares, and its requests are answered with 500.
	Backends []model.BackendRef
	Redirect *model.Redirect
	Direct   *model.DirectResponse
	// StrictShares means that a backend that cannot be used keeps its share of the
	// requests. They are answered with 503 if it has no endpoints, and otherwise with 500.
	// Without it, the other backends get the share.
	StrictShares bool

	Rewrite         *model.Rewrite
	RequestHeaders  *model.HeaderEdit
	ResponseHeaders *model.HeaderEdit
	Mirrors         []model.MirrorRef
	Timeouts        model.Timeouts
	Retries         model.Retries

	// Settings are those that features have.
	list.Settings
}

// PathType says how a path is compared.
type PathType string

// The types of a path.
const (
	PathPrefix            PathType = "Prefix" // by segments
	PathExact             PathType = "Exact"
	PathRegularExpression PathType = "RegularExpression" // of the whole path
)

// MatchType says how a value is compared.
type MatchType string

// The types of a match.
const (
	MatchExact             MatchType = "Exact"
	MatchRegularExpression MatchType = "RegularExpression" // of the whole value
)

// ValueMatch is a condition on a header field or a query parameter.
type ValueMatch struct {
	Name string
	// Type says how Value is compared. Default: Exact.
	Type MatchType
	// Value is the value. Nil: any value.
	Value *string
}

package apigateway

import (
	"cmp"
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Input is everything that the table of an APIGateway is made from. The table keeps
// references to parts of it, so it must not be changed afterwards.
type Input struct {
	// Routes are the routes of the spec, in its order. Fields with a default of the API
	// server may be empty.
	Routes []slipwayv1alpha1.Route
	// Unknown are fields of routes, by index, that the API server knows and this program
	// does not. It is unknown what such a route means.
	Unknown map[int]string
	// HealthChecks are the health checks of the spec, in its order. UnknownChecks are
	// fields of them, by index, that this program does not know.
	HealthChecks  []slipwayv1alpha1.BackendHealthCheck
	UnknownChecks map[int]string
	// BackendPolicies are the policies of the spec, in its order. UnknownPolicies are
	// fields of them, by index, that this program does not know.
	BackendPolicies []slipwayv1alpha1.BackendPolicy
	UnknownPolicies map[int]string
	// Streams are the streams of the spec, in its order. UnknownStreams are fields of them, by index, that this program does not know.
	Streams        []slipwayv1alpha1.Stream
	UnknownStreams map[int]string
	// Services are the Services that routes may name, by name.
	Services map[string]model.Service
	// Secrets are the contents of the Secrets that routes may name, by name.
	Secrets map[string]map[string][]byte
	// Unreadable are the names of Secrets that the gateway may not read.
	Unreadable map[string]bool
	// ConfigMaps are the contents of the ConfigMaps that policies may name, by name. UnreadableConfigMaps are the names of those
	// that the gateway may not read.
	ConfigMaps           map[string]map[string][]byte
	UnreadableConfigMaps map[string]bool
	// BelievesEverybody tells that the addresses of clients are what everything in the cluster may say.
	BelievesEverybody bool
	// CheckOnly tells that only names and problems are wanted, and not a table to use.
	CheckOnly bool
}

// WhyMissing says why a Secret has no content.
func (in *Input) WhyMissing(secret string) string { return feature.WhyMissing(in.Unreadable[secret]) }

// Compile makes a table, and returns the problems of what cannot be served as the spec says.
// It never fails as a whole. Problems of policies come first, then those of routes, then
// those of health checks and streams, each in the order of the spec. The first problem of a route is the
// one to report.
func Compile(in Input) (*table.Table, []model.Problem) {
	c := &compiler{
		in: in, names: map[string]bool{}, settings: map[model.BackendName]model.Settings{}, checked: map[int]model.Problem{},
		checks: table.Checks(),
	}
	for i := range in.BackendPolicies {
		c.policy(i)
	}
	for i := range in.HealthChecks {
		c.healthCheck(i)
	}
	for i := range in.Routes {
		c.declaredName(i)
	}
	out := table.Input{
		CheckOnly: in.CheckOnly,
		Listeners: []table.Listener{{Name: "all"}}, Settings: c.settings,
		Rules: make([]table.Rule, 0, len(in.Routes)), Services: make(map[model.ServiceName]model.Service, len(in.Services)),
	}
	for i := range in.Routes {
		out.Rules = append(out.Rules, c.rule(i))
	}
	c.addStreams(&out)
	for name, service := range in.Services {
		out.Services[model.ServiceName{Name: name}] = service
	}
	compiled, found := table.Compile(out)
	found, streams := c.problemsOfStreams(found)
	problems := slices.Concat(c.duplicates, found)
	slices.SortStableFunc(problems, func(a, b model.Problem) int { return cmp.Compare(a.Index, b.Index) })
	return compiled, slices.Concat(c.problems, problems, c.problemsOfChecks(compiled), streams)
}

// compiler is the state while the spec is read.
type compiler struct {
	in         Input
	checks     feature.Checks
	names      map[string]bool                       // names in use
	asked      slipwayv1alpha1.GatewayPolicySettings // of the route that is read
	owners     []int                                 // routes that keep their declared name
	settings   map[model.BackendName]model.Settings
	problems   []model.Problem       // of policies
	duplicates []model.Problem       // of names
	streams    []model.Problem       // of streams that are not served
	checked    map[int]model.Problem // of health checks, by index
	repeated   []int                 // health checks of a backend that has one
}

func backendName(service slipwayv1alpha1.ServiceName, port int32) model.BackendName {
	return model.BackendName{ServiceName: model.ServiceName{Name: string(service)}, Port: port}
}

// rule makes the rule of a route.
func (c *compiler) rule(index int) table.Rule {
	spec := &c.in.Routes[index]
	rule := table.Rule{Name: c.name(index), Index: index}
	if spec.Name != "" && rule.Name != spec.Name {
		c.duplicates = append(c.duplicates, model.Problem{
			Index: index, Route: rule.Name, Reason: slipwayv1alpha1.ReasonDuplicateName,
			Message: fmt.Sprintf("name: an earlier route is called %q; this one is called %q", spec.Name, rule.Name),
		})
	}
	addMatch(&rule, spec)
	if rule.Fault = c.meaningless(index); rule.Fault != nil {
		if spec.CORS != nil {
			rule.CORS = &cors.Rule{} // preflight requests are among its requests
		}
		return rule
	}
	addActions(&rule, spec)
	addBackends(&rule, spec)
	rule.Fault = c.addSettings(&rule, spec)
	return rule
}

// meaningless says why it is not known what a route does. It is nil if it is known.
func (c *compiler) meaningless(index int) *model.Fault {
	if field, unknown := c.in.Unknown[index]; unknown {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: fmt.Sprintf(
			"%s: this version of the gateway does not know the field", field)}
	}
	spec, answers := &c.in.Routes[index], 0
	for _, is := range []bool{spec.BackendService != nil, len(spec.Backends) > 0, spec.Redirect != nil, spec.DirectResponse != nil} {
		if is {
			answers++
		}
	}
	if answers != 1 {
		return model.Invalid("exactly one of backendService, backends, redirect and directResponse must be set")
	}
	return nil
}

// declaredName reserves a route's declared name for the first route that has it. This
// happens before names are generated for other routes.
func (c *compiler) declaredName(index int) {
	if name := c.in.Routes[index].Name; name != "" && !c.names[name] {
		c.names[name] = true
		c.owners = append(c.owners, index)
	}
}

// name returns a name that no other route has.
func (c *compiler) name(index int) string {
	spec := &c.in.Routes[index]
	name := spec.Name
	if name == "" {
		name = string(spec.Host) + cmp.Or(spec.Path, "/")
	} else if _, owner := slices.BinarySearch(c.owners, index); owner {
		return name
	}
	unique := name
	for n := 2; c.names[unique]; n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	c.names[unique] = true
	return unique
}

// addMatch adds what selects the route's requests.
func addMatch(rule *table.Rule, spec *slipwayv1alpha1.Route) {
	rule.Host, rule.Path, rule.PathType = string(spec.Host), spec.Path, table.PathType(spec.PathType)
	rule.Methods = feature.Words(spec.Methods)
	for _, header := range spec.Headers {
		rule.Headers = append(rule.Headers, table.ValueMatch{
			Name: string(header.Name), Type: table.MatchType(header.Type),
			Value: header.Value,
		})
	}
	for _, param := range spec.QueryParams {
		rule.Query = append(rule.Query, table.ValueMatch{Name: param.Name, Type: table.MatchType(param.Type), Value: param.Value})
	}
}

// addBackends adds the Services that a route names.
func addBackends(rule *table.Rule, spec *slipwayv1alpha1.Route) {
	if in := spec.BackendService; in != nil {
		rule.Backends = append(rule.Backends, model.BackendRef{Service: string(in.Name), Port: in.Port, Weight: 1, Field: "backendService"})
	}
	for _, in := range spec.Backends {
		rule.Backends = append(rule.Backends, model.BackendRef{
			Service: string(in.Name), Port: in.Port, Weight: uint32(max(feature.Value(in.Weight, 1), 0)), Field: "backends",
			RequestHeaders: backendEdit(in.RequestHeaders), ResponseHeaders: backendEdit(in.ResponseHeaders),
		})
	}
	if spec.Mirror != nil {
		rule.Mirrors = append(rule.Mirrors, mirrorRef("mirror.backendService", spec.Mirror))
	}
	for i := range spec.Mirrors {
		rule.Mirrors = append(rule.Mirrors, mirrorRef(fmt.Sprintf("mirrors[%d].backendService", i), &spec.Mirrors[i]))
	}
}

func mirrorRef(field string, in *slipwayv1alpha1.Mirror) model.MirrorRef {
	ref := model.MirrorRef{
		Service: string(in.BackendService.Name), Port: in.BackendService.Port, Field: field,
		Numerator: uint32(min(max(feature.Value(in.Percent, 100), 0), 100)), Denominator: 100,
	}
	if of := in.Fraction; of != nil {
		ref.Numerator, ref.Denominator = uint32(max(of.Numerator, 0)), uint32(max(feature.Value(of.Denominator, 100), 0))
	}
	return ref
}

func backendEdit(in *slipwayv1alpha1.BackendHeaderEdit) *model.HeaderEdit {
	if in == nil {
		return nil
	}
	edit := &model.HeaderEdit{Remove: feature.Words(in.Remove)}
	for _, field := range in.Set {
		edit.Set = append(edit.Set, model.HeaderField{Name: string(field.Name), Value: string(field.Value)})
	}
	for _, field := range in.Add {
		edit.Add = append(edit.Add, model.HeaderField{Name: string(field.Name), Value: string(field.Value)})
	}
	return edit
}

package table

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/backends"
	"github.com/slipway-dev/slipway/internal/gateway/feature/bodybound"
	"github.com/slipway-dev/slipway/internal/gateway/feature/compression"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// compileActions compiles everything of a rule except its match and its backends. The API
// server has refused most invalid values already. But a file and an older schema have not.
func compileActions(e *compiled, rule *Rule) *model.Fault {
	answers := 0
	for _, is := range []bool{len(rule.Backends) > 0, rule.Redirect != nil, rule.Direct != nil} {
		if is {
			answers++
		}
	}
	if rule.Fault == nil && (answers > 1 || (answers == 0 && !rule.StrictShares)) {
		return model.Invalid("exactly one of backends, redirect and a direct response must be set")
	}
	of := feature.Rule{
		Place: e.Place, Methods: rule.Methods, Backends: rule.Backends, Authenticates: rule.Auth != nil,
		CountsClients: rule.RateLimit != nil && rule.RateLimit.Per == ratelimit.PerKey, Checks: e.texts,
	}
	for i, setting := range list.ForTable {
		for _, compile := range compileBefore[i] {
			if f := compile(e, rule); f != nil {
				return f
			}
		}
		if f := setting.Compile(&e.Compiled, &rule.Settings, of); f != nil {
			return f
		}
	}
	e.protection = newProtection(rule, of)
	return nil
}

// compileBefore is what is compiled before each setting of list.ForTable. The order is seen where a rule has two faults.
var compileBefore = func() (before [list.Count][]func(*compiled, *Rule) *model.Fault) {
	for i, setting := range list.ForTable {
		switch setting.Name {
		case cors.Setting.Name:
			before[i] = []func(*compiled, *Rule) *model.Fault{compileRewrite, compileHeaderEdits, compileRedirect, compileDirect}
		case bodybound.Setting.Name:
			before[i] = []func(*compiled, *Rule) *model.Fault{ruleFault, compileMirrors, compileBackendEdits}
		case ratelimit.Setting.Name:
			before[i] = []func(*compiled, *Rule) *model.Fault{compileTimeouts}
		case backends.Setting.Name:
			before[i] = []func(*compiled, *Rule) *model.Fault{compileRetries}
		case compression.Setting.Name:
			before[i] = []func(*compiled, *Rule) *model.Fault{compileTransport}
		}
	}
	return before
}()

// ruleFault is what the front end has said of the rule.
func ruleFault(_ *compiled, rule *Rule) *model.Fault { return rule.Fault }

// compileTransport refuses what can be asked of requests alone: whoever asks for it must not believe that it holds.
func compileTransport(_ *compiled, rule *Rule) *model.Fault {
	if rule.Transport == model.TransportHTTP {
		return nil
	}
	var names []string
	asked := false
	for i := range list.Entries {
		if setting := &list.Entries[i]; !setting.Connections {
			names = append(names, setting.Name)
			asked = asked || setting.IsSet(&rule.Settings)
		}
	}
	if !asked {
		return nil
	}
	last := len(names) - 1
	return model.Invalid("%s and %s are for requests, and connections of transport %s are not read",
		strings.Join(names[:last], ", "), names[last], rule.Transport)
}

func compileRewrite(e *compiled, rule *Rule) *model.Fault {
	var f *model.Fault
	e.Rewrite, f = e.newRewrite("rewrite", rule.Rewrite)
	return f
}

func (e *compiled) newRewrite(field string, in *model.Rewrite) (*CompiledRewrite, *model.Fault) {
	if in == nil {
		return nil, nil
	}
	rewrite := CompiledRewrite{Rewrite: *in}
	if rewrite.Host != "" && !isHostName(rewrite.Host) {
		return nil, model.Invalid("%s.host: %q is not a lower case DNS name", field, rewrite.Host)
	}
	for _, path := range []string{rewrite.FullPath, rewrite.PathPrefix} {
		if f := e.texts.Path(field, path); f != nil {
			return nil, f
		}
	}
	if rewrite.PathPrefix != "" {
		if e.pathType != PathPrefix || rewrite.FullPath != "" {
			return nil, model.Invalid("%s.pathPrefix needs pathType Prefix and cannot be combined with %s.path", field, field)
		}
		rewrite.segments = len(e.path.segments())
		rewrite.prefixes = e.texts.readingsOf(rewrite.PathPrefix) // none if there are too many, so no path is known to stay below it
	}
	return &rewrite, nil
}

// compileBackendEdits compiles what single backends change. It comes after the rule's own.
func compileBackendEdits(e *compiled, rule *Rule) *model.Fault {
	if !slices.ContainsFunc(rule.Backends, edits) {
		return nil
	}
	e.edits = make([]backendEdits, len(rule.Backends))
	for i := range rule.Backends {
		ref, own := &rule.Backends[i], &e.edits[i]
		var f *model.Fault
		if own.rewrite, f = e.newRewrite(ref.Field+".rewrite", over(ref.Rewrite, rule.Rewrite)); f != nil {
			return f
		}
		if own.request, f = newHeaderEdit(ref.Field+".requestHeaders", ref.RequestHeaders); f != nil {
			return f
		}
		if own.response, f = newHeaderEdit(ref.Field+".responseHeaders", ref.ResponseHeaders); f != nil {
			return f
		}
		if f = checkMirrors(ref.Mirrors); f != nil {
			return f
		}
	}
	return nil
}

// edits reports whether a backend has changes of its own.
func edits(r model.BackendRef) bool {
	return r.Rewrite != nil || r.RequestHeaders != nil || r.ResponseHeaders != nil || r.Mirrors != nil
}

// over returns a rewrite with what it does not set from another one. It is nil if there is
// nothing to add to the other one.
func over(w, other *model.Rewrite) *model.Rewrite {
	if w == nil || other == nil {
		return w
	}
	merged := *other
	if w.Host != "" {
		merged.Host = w.Host
	}
	if w.FullPath != "" || w.PathPrefix != "" {
		merged.FullPath, merged.PathPrefix = w.FullPath, w.PathPrefix
	}
	return &merged
}

func isHostName(name string) bool {
	return hostPattern.MatchString(name) && !strings.HasPrefix(name, "*")
}

func compileHeaderEdits(e *compiled, rule *Rule) *model.Fault {
	var f *model.Fault
	if e.RequestHeaders, f = newHeaderEdit("requestHeaders", rule.RequestHeaders); f != nil {
		return f
	}
	e.ResponseHeaders, f = newHeaderEdit("responseHeaders", rule.ResponseHeaders)
	return f
}

func newHeaderEdit(field string, in *model.HeaderEdit) (*model.HeaderEdit, *model.Fault) {
	if in == nil {
		return nil, nil
	}
	edit := &model.HeaderEdit{}
	for _, name := range in.Remove {
		canonical, f := feature.EditableHeader(field+".remove", name)
		if f != nil {
			return nil, f
		}
		edit.Remove = append(edit.Remove, canonical)
	}
	var f *model.Fault
	if edit.Set, f = newHeaderFields(field+".set", in.Set); f != nil {
		return nil, f
	}
	edit.Add, f = newHeaderFields(field+".add", in.Add)
	return edit, f
}

func newHeaderFields(field string, in []model.HeaderField) ([]model.HeaderField, *model.Fault) {
	fields := make([]model.HeaderField, 0, len(in))
	for _, header := range in {
		name, f := feature.EditableHeader(field, header.Name)
		if f != nil {
			return nil, f
		}
		if !fieldname.IsValue(header.Value) {
			return nil, model.Invalid("%s: the value of %s holds a control character", field, name)
		}
		fields = append(fields, model.HeaderField{Name: name, Value: header.Value})
	}
	return fields, nil
}

func compileRedirect(e *compiled, rule *Rule) *model.Fault {
	if rule.Redirect == nil {
		return nil
	}
	redirect := CompiledRedirect{Redirect: *rule.Redirect}
	if !slices.Contains([]int{301, 302, 303, 307, 308}, redirect.StatusCode) {
		return model.Invalid("redirect.statusCode: %d is not one of 301, 302, 303, 307 and 308", redirect.StatusCode)
	}
	if !slices.Contains([]string{"", "http", "https"}, redirect.Scheme) {
		return model.Invalid("redirect.scheme: %q is neither http nor https", redirect.Scheme)
	}
	if redirect.Host != "" && !isHostName(redirect.Host) {
		return model.Invalid("redirect.host: %q is not a lower case DNS name", redirect.Host)
	}
	if redirect.Port < 0 || redirect.Port > 65535 {
		return model.Invalid("redirect.port: %d is not a port", redirect.Port)
	}
	if f := e.texts.Path("redirect.path", redirect.FullPath); f != nil {
		return f
	}
	if redirect.PathPrefix != "" {
		if e.pathType != PathPrefix || redirect.FullPath != "" {
			return model.Invalid("redirect.pathPrefix needs pathType Prefix and cannot be combined with redirect.path")
		}
		redirect.segments = len(e.path.segments())
	}
	if f := e.texts.Path("redirect.pathPrefix", redirect.PathPrefix); f != nil {
		return f
	}
	e.Redirect = &redirect
	return nil
}

func compileDirect(e *compiled, rule *Rule) *model.Fault {
	if rule.Direct == nil {
		return nil
	}
	direct := *rule.Direct
	if direct.StatusCode < 200 || direct.StatusCode > 599 {
		return model.Invalid("directResponse.statusCode: %d is not from 200 to 599", direct.StatusCode)
	}
	if !fieldname.IsValue(direct.ContentType) {
		return model.Invalid("directResponse.contentType holds a control character")
	}
	e.Direct = &direct
	return nil
}

func compileMirrors(_ *compiled, rule *Rule) *model.Fault { return checkMirrors(rule.Mirrors) }

func checkMirrors(mirrors []model.MirrorRef) *model.Fault {
	for _, mirror := range mirrors {
		if mirror.Numerator > mirror.Denominator || mirror.Denominator == 0 {
			return model.Invalid("mirror: %d/%d is not a fraction from 0 to 1", mirror.Numerator, mirror.Denominator)
		}
	}
	return nil
}

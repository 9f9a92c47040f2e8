package table

import (
	"cmp"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// compileAuth checks and completes Auth. The front end has read the Secrets.
func compileAuth(e *compiled, rule *Rule) *model.Fault {
	if rule.Auth == nil {
		return nil
	}
	auth, f := *rule.Auth, (*model.Fault)(nil)
	ways := 0
	for _, is := range []bool{auth.APIKey != nil, auth.Basic != nil, auth.JWT != nil, auth.External != nil, auth.OIDC != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		f = model.Invalid("auth: exactly one of apiKey, basic, jwt, external and oidc must be set")
	case auth.APIKey != nil:
		auth.APIKey, f = newAPIKey(*auth.APIKey)
	case auth.Basic != nil:
		auth.Basic, f = newBasic(*auth.Basic)
	case auth.JWT != nil:
		auth.JWT, f = newJWT(*auth.JWT)
	case auth.OIDC != nil:
		auth.OIDC, f = newOIDC(*auth.OIDC)
	default:
		auth.External, f = e.newExternal(*auth.External, rule)
	}
	if f != nil {
		return f
	}
	auth.hide()
	e.Auth = &auth
	return nil
}

// hide collects the header fields that the backend must not get from the client.
func (a *Auth) hide() {
	var names []string
	switch {
	case a.APIKey != nil:
		names = []string{a.APIKey.Header, a.APIKey.ClientHeader}
	case a.Basic != nil:
		names = []string{"Authorization", a.Basic.UserHeader}
	case a.External != nil:
		names = append(slices.Clone(a.External.BackendHeaders), a.External.IdentityHeader)
	case a.OIDC != nil:
		for _, claim := range a.OIDC.ClaimHeaders {
			names = append(names, claim.Header)
		}
		if a.OIDC.Forward != ForwardNone {
			names = append(names, "Authorization")
		}
	default:
		for _, claim := range a.JWT.ClaimHeaders {
			names = append(names, claim.Header)
		}
	}
	a.Hidden, a.Judged = folded(names), nil
	if a.External != nil {
		a.Judged = folded(a.External.RequestHeaders)
	}
}

// folded returns the names in the form in which they are compared (fieldname.Folded).
func folded(names []string) []string {
	var list []string
	for _, name := range names {
		if name != "" {
			list = append(list, fieldname.Folded(name))
		}
	}
	return list
}

func newAPIKey(auth APIKey) (*APIKey, *model.Fault) {
	var f *model.Fault
	if auth.Header, f = optionalHeader("auth.apiKey.header", auth.Header); f != nil {
		return nil, f
	}
	if auth.Header == "" && auth.QueryParam == "" {
		return nil, model.Invalid("auth.apiKey: header or queryParam must be set")
	}
	auth.ClientHeader, f = optionalHeader("auth.apiKey.clientHeader", auth.ClientHeader)
	return &auth, f
}

func newBasic(auth Basic) (*Basic, *model.Fault) {
	if !fieldname.IsValue(auth.Realm) || strings.ContainsAny(auth.Realm, `"\`) {
		return nil, model.Invalid("auth.basic.realm holds a character that it must not hold")
	}
	var f *model.Fault
	auth.UserHeader, f = optionalHeader("auth.basic.userHeader", auth.UserHeader)
	return &auth, f
}

func newJWT(auth JWT) (*JWT, *model.Fault) {
	if auth.Issuer == "" || (auth.JWKSURL == "") == (auth.Keys == nil) {
		return nil, model.Invalid("auth.jwt: issuer and exactly one of jwksURL and jwksSecretRef must be set")
	}
	if auth.JWKSURL != "" {
		address, err := url.Parse(auth.JWKSURL)
		if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
			return nil, model.Invalid("auth.jwt.jwksURL: %q is not an http or https address", auth.JWKSURL)
		}
	}
	var headers []ClaimHeader
	for _, claim := range auth.ClaimHeaders {
		header, f := editableHeader("auth.jwt.claimsToHeaders", claim.Header)
		if f != nil {
			return nil, f
		}
		headers = append(headers, ClaimHeader{claim.Claim, header})
	}
	auth.ClaimHeaders = headers
	return &auth, checkRequired(auth.Required)
}

// checkRequired refuses what no token can fulfil: it is a mistake.
func checkRequired(required []RequiredClaim) *model.Fault {
	for _, one := range required {
		if one.Claim == "" || len(one.Values) == 0 {
			return model.Invalid("auth.jwt.requireClaims: claim and values must be set")
		}
		for _, value := range one.Values {
			if value == "" || (one.Claim == "scope" || one.Claim == "scp") && strings.Contains(value, " ") {
				return model.Invalid("auth.jwt.requireClaims: claim %s cannot have the value %q", one.Claim, value)
			}
		}
	}
	return nil
}

// MaxJudgedBody bounds the body that a Service is shown.
const MaxJudgedBody = 1 << 20

// bodyHeaders say how a body is read. Who judges a body must know them.
var bodyHeaders = []string{"Content-Type", "Content-Encoding"}

// maxExternalTimeout bounds how long a Service may take to answer.
const maxExternalTimeout = 30 * time.Second

func (e *compiled) newExternal(external External, rule *Rule) (*External, *model.Fault) {
	if f := e.texts.check("auth.external.path", external.Path); f != nil || external.Path == "" {
		return nil, cmp.Or(f, model.Invalid("auth.external.path must be set"))
	}
	if external.GRPC && external.Path != "/" {
		return nil, model.Invalid("auth.external.path: it is for protocol HTTP")
	}
	if external.MaxBody < 0 || external.MaxBody > MaxJudgedBody {
		return nil, model.Invalid("auth.external.body.maxBytes: %d is not from 1 to %d", external.MaxBody, MaxJudgedBody)
	}
	if external.MaxBody > 0 {
		external.RequestHeaders = append(slices.Clone(external.RequestHeaders), bodyHeaders...)
	}
	if external.Timeout <= 0 || external.Timeout > maxExternalTimeout {
		return nil, model.Invalid("auth.external.timeout: %v is not from 1ms to 30s", external.Timeout)
	}
	var f *model.Fault
	if external.RequestHeaders, f = listedHeaders("requestHeaders", external.RequestHeaders); f != nil {
		return nil, f
	}
	if external.BackendHeaders, f = listedHeaders("backendHeaders", external.BackendHeaders); f != nil {
		return nil, f
	}
	if external.IdentityHeader, f = optionalHeader("auth.external.identityHeader", external.IdentityHeader); f != nil {
		return nil, f
	}
	if external.IdentityHeader == "" && rule.RateLimit != nil && rule.RateLimit.Per == PerKey {
		return nil, model.Invalid("rateLimit.per: Key needs auth.external.identityHeader")
	}
	return &external, nil
}

// listedHeaders returns the names of a list of auth.external in canonical form, each once.
func listedHeaders(field string, list []string) ([]string, *model.Fault) {
	var names []string
	for _, name := range list {
		canonical, f := optionalHeader("auth.external."+field, name)
		if f != nil {
			return nil, f
		}
		if SaysWhere(canonical) {
			return nil, model.Invalid("auth.external.%s: %s is what the gateway says", field, canonical)
		}
		if !slices.Contains(names, canonical) {
			names = append(names, canonical)
		}
	}
	return names, nil
}

// SaysWhere reports whether a field says where a request comes from and goes to. The gateway alone says that.
func SaysWhere(name string) bool {
	name = fieldname.Folded(name)
	return name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-")
}

// askExternal resolves the Service that a route asks about its requests.
func (c *compiler) askExternal(e *compiled) []*model.Fault {
	if e.Auth == nil || e.Auth.External == nil {
		return nil
	}
	b, f := c.backend(&e.Auth.External.Ref, model.TransportHTTP)
	e.Auth.External.Backend = b
	if f != nil {
		return []*model.Fault{f}
	}
	return nil
}

// optionalHeader returns the canonical form of a name, which may be empty.
func optionalHeader(field, name string) (string, *model.Fault) {
	if name == "" {
		return "", nil
	}
	if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
		return "Authorization", nil
	}
	return editableHeader(field, name)
}

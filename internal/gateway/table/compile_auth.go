package table

import (
	"net/textproto"
	"net/url"
	"strings"
)

// compileAuth checks and completes Auth. The front end has read the Secrets.
func compileAuth(e *compiled, rule *Rule) *Fault {
	if rule.Auth == nil {
		return nil
	}
	auth, f := *rule.Auth, (*Fault)(nil)
	switch {
	case auth.APIKey != nil && auth.Basic == nil && auth.JWT == nil:
		auth.APIKey, f = newAPIKey(*auth.APIKey)
	case auth.Basic != nil && auth.APIKey == nil && auth.JWT == nil:
		auth.Basic, f = newBasic(*auth.Basic)
	case auth.JWT != nil && auth.APIKey == nil && auth.Basic == nil:
		auth.JWT, f = newJWT(*auth.JWT)
	default:
		f = invalid("auth: exactly one of apiKey, basic and jwt must be set")
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
	default:
		for _, claim := range a.JWT.ClaimHeaders {
			names = append(names, claim.Header)
		}
	}
	a.Hidden = nil
	for _, name := range names {
		if name != "" {
			a.Hidden = append(a.Hidden, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-")))
		}
	}
}

func newAPIKey(auth APIKey) (*APIKey, *Fault) {
	var f *Fault
	if auth.Header, f = optionalHeader("auth.apiKey.header", auth.Header); f != nil {
		return nil, f
	}
	if auth.Header == "" && auth.QueryParam == "" {
		return nil, invalid("auth.apiKey: header or queryParam must be set")
	}
	auth.ClientHeader, f = optionalHeader("auth.apiKey.clientHeader", auth.ClientHeader)
	return &auth, f
}

func newBasic(auth Basic) (*Basic, *Fault) {
	if !isHeaderValue(auth.Realm) || strings.ContainsAny(auth.Realm, `"\`) {
		return nil, invalid("auth.basic.realm holds a character that it must not hold")
	}
	var f *Fault
	auth.UserHeader, f = optionalHeader("auth.basic.userHeader", auth.UserHeader)
	return &auth, f
}

func newJWT(auth JWT) (*JWT, *Fault) {
	if auth.Issuer == "" || (auth.JWKSURL == "") == (auth.Keys == nil) {
		return nil, invalid("auth.jwt: issuer and exactly one of jwksURL and jwksSecretRef must be set")
	}
	if auth.JWKSURL != "" {
		address, err := url.Parse(auth.JWKSURL)
		if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
			return nil, invalid("auth.jwt.jwksURL: %q is not an http or https address", auth.JWKSURL)
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
	return &auth, nil
}

// optionalHeader returns the canonical form of a name, which may be empty.
func optionalHeader(field, name string) (string, *Fault) {
	if name == "" {
		return "", nil
	}
	if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
		return "Authorization", nil
	}
	return editableHeader(field, name)
}

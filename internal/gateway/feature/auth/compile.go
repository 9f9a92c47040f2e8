package auth

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

func newAPIKey(auth APIKey) (*APIKey, *model.Fault) {
	var f *model.Fault
	if auth.Header, f = feature.OptionalHeader("auth.apiKey.header", auth.Header); f != nil {
		return nil, f
	}
	if auth.Header == "" && auth.QueryParam == "" {
		return nil, model.Invalid("auth.apiKey: header or queryParam must be set")
	}
	auth.ClientHeader, f = feature.OptionalHeader("auth.apiKey.clientHeader", auth.ClientHeader)
	return &auth, f
}

func newBasic(auth Basic) (*Basic, *model.Fault) {
	if !fieldname.IsValue(auth.Realm) || strings.ContainsAny(auth.Realm, `"\`) {
		return nil, model.Invalid("auth.basic.realm holds a character that it must not hold")
	}
	var f *model.Fault
	auth.UserHeader, f = feature.OptionalHeader("auth.basic.userHeader", auth.UserHeader)
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
	var f *model.Fault
	if auth.ClaimHeaders, f = editableClaims("auth.jwt.claimsToHeaders", auth.ClaimHeaders); f != nil {
		return nil, f
	}
	return &auth, checkRequired(auth.Required)
}

// editableClaims returns the claims with the canonical names of their headers.
func editableClaims(field string, claims []ClaimHeader) ([]ClaimHeader, *model.Fault) {
	var headers []ClaimHeader
	for _, claim := range claims {
		header, f := feature.EditableHeader(field, claim.Header)
		if f != nil {
			return nil, f
		}
		headers = append(headers, ClaimHeader{claim.Claim, header})
	}
	return headers, nil
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

func newExternal(external External, of feature.Rule) (*External, *model.Fault) {
	if f := of.Checks.Path("auth.external.path", external.Path); f != nil || external.Path == "" {
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
	if external.IdentityHeader, f = feature.OptionalHeader("auth.external.identityHeader", external.IdentityHeader); f != nil {
		return nil, f
	}
	if external.IdentityHeader == "" && of.CountsClients {
		return nil, model.Invalid("rateLimit.per: Key needs auth.external.identityHeader")
	}
	return &external, nil
}

// listedHeaders returns the names of a list of auth.external in canonical form, each once.
func listedHeaders(field string, list []string) ([]string, *model.Fault) {
	var names []string
	for _, name := range list {
		canonical, f := feature.OptionalHeader("auth.external."+field, name)
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

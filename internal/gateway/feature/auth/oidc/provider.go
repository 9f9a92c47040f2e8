package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/published"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

// maxDocument is the size of the largest accepted document of a provider, in bytes.
const maxDocument = 256 << 10

// Provider is what a provider publishes about itself, with its public keys. It is immutable.
type Provider struct {
	// AuthURL, TokenURL and EndSessionURL are where it logs in, hands out tokens and logs out. It may have no EndSessionURL.
	AuthURL, TokenURL, EndSessionURL string
	// NamesItself tells that its answers name it, in the parameter iss of RFC 9207.
	NamesItself bool
	// Style is how it wants to get the client secret.
	Style oauth2.AuthStyle
	Keys  *token.Keys

	keysURL string
}

func isAddress(address *url.URL) bool {
	return (address.Scheme == "https" || address.Scheme == "http") && address.Host != "" && address.User == nil && address.Opaque == ""
}

// Fetch gets a provider by its issuer. Redirects of its document are not followed.
func Fetch(ctx context.Context, client *http.Client, issuer string) (*Provider, time.Duration, error) {
	address := auth.ProviderAddress(issuer)
	direct := *client
	direct.CheckRedirect = noRedirect
	text, fresh, err := published.Get(ctx, &direct, published.Wanted{
		Address: address, What: "the provider's document", Accept: "application/json", MaxBytes: maxDocument + 1,
	})
	if err != nil {
		return nil, 0, err
	}
	provider, err := parseProvider(text, issuer)
	if err != nil {
		return nil, 0, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	keys, keysFresh, err := jwks.Fetch(ctx, client, provider.keysURL)
	if err != nil {
		return nil, 0, err
	}
	provider.Keys = keys
	return provider, min(fresh, keysFresh), nil
}

// noRedirect follows none: the provider says where things are, and nobody else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// wrongEndpoint is what is wrong with an endpoint of an issuer, at which we ask or the browser does. Empty: nothing is.
func wrongEndpoint(address string, issuer *url.URL, ours bool) string {
	parsed, err := url.Parse(address)
	switch {
	case err != nil || !isAddress(parsed) || parsed.Fragment != "" || strings.ContainsAny(address, `\ `): // browsers read a backslash as a slash
		return "not an http or https address"
	case parsed.Scheme == "https":
		return ""
	case issuer.Scheme == "https":
		return "not an https address"
	case ours && !strings.EqualFold(parsed.Host, issuer.Host): // of which nobody proves that it is meant
		return "an http address of another host than the issuer"
	}
	return ""
}

// parseProvider reads the document of an issuer. Errors contain nothing of it.
func parseProvider(text []byte, issuer string) (*Provider, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("it is larger than %d bytes", maxDocument)
	}
	var in struct {
		Issuer      string   `json:"issuer"`
		AuthURL     string   `json:"authorization_endpoint"`
		TokenURL    string   `json:"token_endpoint"`
		KeysURL     string   `json:"jwks_uri"`
		EndURL      string   `json:"end_session_endpoint"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		Challenges  []string `json:"code_challenge_methods_supported"`
		NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if json.Unmarshal(text, &in) != nil {
		return nil, errors.New("it is not a document of an OpenID provider")
	}
	if in.Issuer != issuer {
		return nil, errors.New("it is the document of another issuer")
	}
	if len(in.Challenges) > 0 && !slices.Contains(in.Challenges, "S256") {
		return nil, errors.New("it has no PKCE with S256")
	}
	from, err := url.Parse(in.Issuer)
	if err != nil {
		return nil, errors.New("its issuer is no address")
	}
	for _, one := range []struct {
		name, address string
		ours          bool // we ask there, and not the browser
	}{
		{"authorization_endpoint", in.AuthURL, false}, {"token_endpoint", in.TokenURL, true}, {"jwks_uri", in.KeysURL, true}, {"end_session_endpoint", in.EndURL, false},
	} {
		if one.address == "" && one.name == "end_session_endpoint" {
			continue
		}
		if wrong := wrongEndpoint(one.address, from, one.ours); wrong != "" {
			return nil, fmt.Errorf("its %s is %s", one.name, wrong)
		}
	}
	p := &Provider{
		AuthURL: in.AuthURL, TokenURL: in.TokenURL, EndSessionURL: in.EndURL, keysURL: in.KeysURL,
		NamesItself: in.NamesItself, Style: oauth2.AuthStyleInHeader,
	}
	switch {
	case len(in.Methods) == 0 || slices.Contains(in.Methods, "client_secret_basic"):
	case slices.Contains(in.Methods, "client_secret_post"):
		p.Style = oauth2.AuthStyleInParams
	default:
		return nil, errors.New("it takes client secrets neither as client_secret_basic nor as client_secret_post")
	}
	return p, nil
}

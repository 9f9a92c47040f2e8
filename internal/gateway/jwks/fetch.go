package jwks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/token"
)

const (
	// fetchTimeout bounds one whole attempt.
	fetchTimeout = 5 * time.Second
	maxRedirects = 3

	// defaultFresh is how long keys are fresh when the issuer does not say it. The other
	// two bound what the issuer may say: a withdrawn key must not be trusted for days.
	defaultFresh = 5 * time.Minute
	minFresh     = 30 * time.Second
	maxFresh     = time.Hour
)

// fetcher gets key sets over HTTP.
type fetcher struct {
	client *http.Client
}

func newFetcher() *fetcher {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &fetcher{client: &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: checkRedirect}}
}

// checkRedirect follows only a few redirects, and none from https to http.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("redirected from https to http")
	}
	return nil
}

// fetch gets a key set, and how long it is fresh.
func (f *fetcher) fetch(ctx context.Context, address string) (*token.Keys, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("make a request for the keys: %w", err)
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the keys: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("fetch the keys: the answer is %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, token.MaxKeySet+1))
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the keys: %w", err)
	}
	keys, err := token.ParseKeys(text)
	if err != nil {
		return nil, 0, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return keys, freshFor(response.Header.Get("Cache-Control")), nil
}

// freshFor returns how long an answer is fresh, within the bounds.
func freshFor(cacheControl string) time.Duration {
	for directive := range strings.SplitSeq(cacheControl, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return minFresh
		case "max-age":
			if seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil {
				return min(max(time.Duration(seconds)*time.Second, minFresh), maxFresh)
			}
		}
	}
	return defaultFresh
}

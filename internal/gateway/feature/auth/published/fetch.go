package published

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/dialguard"
)

const (
	// fetchTimeout bounds one whole request.
	fetchTimeout = 5 * time.Second
	maxRedirects = 3

	// defaultFresh is how long a document is fresh when the provider does not say it. The
	// other two bound what the provider may say: a withdrawn key must not be trusted for
	// days.
	defaultFresh = 5 * time.Minute
	minFresh     = 30 * time.Second
	maxFresh     = time.Hour
)

func newClient(guard *dialguard.Guard) *http.Client {
	transport := &http.Transport{
		Proxy: guard.Proxy, DialContext: guard.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: checkRedirect}
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

// Wanted is what Get asks for.
type Wanted struct {
	Address string
	// What names the document in errors.
	What string
	// Accept is the field of the request.
	Accept string
	// MaxBytes is the size from which on the document is cut. Its parser must refuse one
	// that is as large.
	MaxBytes int64
}

// Get gets a document, and how long it is fresh. Errors contain nothing of the document.
func Get(ctx context.Context, client *http.Client, wanted Wanted) ([]byte, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, wanted.Address, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("make a request for %s: %w", wanted.What, err)
	}
	request.Header.Set("Accept", wanted.Accept)
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("fetch %s: %w", wanted.What, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("fetch %s: the answer is %d", wanted.What, response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, wanted.MaxBytes))
	if err != nil {
		return nil, 0, fmt.Errorf("fetch %s: %w", wanted.What, err)
	}
	return text, freshFor(response.Header.Get("Cache-Control")), nil
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

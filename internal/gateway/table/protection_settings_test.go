package table

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// A field of a rule that nobody has thought of must not open a way around what other rules ask for.
func TestEveryFieldOfARuleIsKnownToProtection(t *testing.T) {
	known := map[string]string{
		"Name": "of the rule", "Index": "of the rule", "Owner": "of the rule", "Listeners": "selects requests", "Transport": "selects requests",
		"Host": "selects requests", "PathType": "selects requests", "Path": "selects requests", "Methods": "selects requests",
		"Headers": "selects requests", "Query": "selects requests", "Rank": "selects requests",
		"Fault":           "such a route answers nothing, and no reading may lead to it",
		"Backends":        "protection.sends and edit",
		"Redirect":        "an answer of the gateway",
		"Direct":          "protection.refuses",
		"RequestHeaders":  "protection.edit",
		"Rewrite":         "Route.keepsPrefix",
		"ResponseHeaders": "keeps nobody out", "StrictShares": "keeps nobody out", "Mirrors": "keeps nobody out",
		"Timeouts": "keeps nobody out", "Retries": "keeps nobody out",
		"Settings": "protection.settings",
	}
	rule := reflect.TypeFor[Rule]()
	for i := range rule.NumField() {
		if name := rule.Field(i).Name; known[name] == "" {
			t.Errorf("nobody has said what %s means for a path that can be read in more than one way", name)
		}
	}
}

// protects is what includes was before each setting said it of itself.
type protects struct {
	sends, refuses              bool
	auth, edit, cors, addresses string
	rateLimit                   ratelimit.Limit
	bodyBytes                   int64
}

func protectsOf(place int, rule *Rule) protects {
	p := protects{bodyBytes: rule.MaxBodyBytes, sends: len(rule.Backends) > 0}
	p.refuses = !p.sends && rule.Direct != nil && rule.Direct.StatusCode >= 400
	if rule.Auth != nil {
		p.auth = "id " + rule.Auth.ID
		if rule.Auth.ID == "" {
			p.auth = fmt.Sprintf("rule %d", place)
		}
	}
	if rule.RequestHeaders != nil {
		p.edit = feature.Describe(rule.RequestHeaders)
	}
	for i := range rule.Backends {
		if edit := rule.Backends[i].RequestHeaders; edit != nil {
			p.edit += fmt.Sprintf(" %d %s", i, feature.Describe(edit))
		}
	}
	if rule.CORS != nil {
		p.cors = feature.Describe(rule.CORS)
	}
	if rule.ClientAddresses != nil {
		p.addresses = feature.Describe(rule.ClientAddresses)
	}
	if rule.RateLimit != nil {
		p.rateLimit = *rule.RateLimit
	}
	return p
}

func (p *protects) grantsNoMore(other *protects) bool {
	return p.edit == other.edit && (p.cors == "" || p.cors == other.cors)
}

func (p *protects) keepsOut(other *protects) bool {
	return (!other.refuses || !p.sends) &&
		(other.auth == "" || other.auth == p.auth) &&
		(other.rateLimit == ratelimit.Limit{} || other.rateLimit == p.rateLimit) &&
		(other.addresses == "" || other.addresses == p.addresses) &&
		(other.bodyBytes == 0 || p.bodyBytes != 0 && p.bodyBytes <= other.bodyBytes)
}

// anyRule has each setting, an answer and an edit or not.
func anyRule(random *rand.Rand) *Rule {
	one := func(n int) int { return random.IntN(n) }
	rule := &Rule{Settings: list.Settings{
		ClientAddresses: []*address.Rule{nil, nil, {Allow: []string{"10.0.0.0/8"}}, {Deny: []string{"10.0.0.0/8"}}}[one(4)],
		Auth:            []*auth.Policy{nil, nil, {ID: "a"}, {ID: "b"}, {}}[one(5)],
		RateLimit:       []*ratelimit.Limit{nil, nil, {Requests: 1, Period: time.Second, Burst: 1}, {Requests: 1, Period: time.Second, Burst: 1, Shared: true}}[one(4)],
		CORS:            []*cors.Rule{nil, nil, {AllowOrigins: []string{"*"}}, {}}[one(4)],
		MaxBodyBytes:    []int64{0, 0, 9, 10, 1 << 40}[one(5)],
		BackendSettings: []*model.BackendSettings{nil, {Group: "a"}}[one(2)],
		Affinity:        []*affinity.Policy{nil, {By: affinity.ByAddress}}[one(2)],
		Compression:     []*compress.Policy{nil, {MinBytes: 1}}[one(2)],
		Cache:           []*cache.Rule{nil, {MaxBytes: 1}}[one(2)],
	}}
	switch one(4) {
	case 0:
		rule.Direct = &model.DirectResponse{StatusCode: []int{200, 403}[one(2)]}
	case 1:
		rule.Redirect = &model.Redirect{}
	default:
		rule.Backends = []model.BackendRef{{Service: "a", RequestHeaders: []*model.HeaderEdit{nil, nil, {Remove: []string{"X-C"}}}[one(3)]}}
	}
	if one(3) == 0 {
		rule.RequestHeaders = &model.HeaderEdit{Remove: []string{[]string{"X-A", "X-B"}[one(2)]}}
	}
	return rule
}

// Each setting says of itself what it keeps out. That is what one function said of all of them.
func TestSettingsKeepOutWhatTheyDid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var yes, no int
	for range 300_000 {
		mine, theirs := anyRule(random), anyRule(random)
		if random.IntN(2) == 0 { // most pairs have nothing in common: one differs in one setting only
			copied := *mine
			theirs = &copied
			e := &list.Entries[random.IntN(list.Count)]
			e.Take(&theirs.Settings, &anyRule(random).Settings)
		}
		p, other := newProtection(mine, feature.Rule{Place: 1}), newProtection(theirs, feature.Rule{Place: 2})
		was, before := protectsOf(1, mine), protectsOf(2, theirs)
		if p.keepsOut(&other) != was.keepsOut(&before) || p.grantsNoMore(&other) != was.grantsNoMore(&before) {
			t.Fatalf("%+v and %+v: keeps out %v, grants no more %v", mine, theirs, p.keepsOut(&other), p.grantsNoMore(&other))
		}
		if want := (before.sends || !was.sends) && was.keepsOut(&before) && was.grantsNoMore(&before); p.includes(&other) != want {
			t.Fatalf("%+v includes %+v: %v", mine, theirs, !want)
		} else if want {
			yes++
		} else {
			no++
		}
	}
	if yes < 10_000 || no < 10_000 {
		t.Errorf("%d pairs pass and %d do not", yes, no)
	}
}

func TestConnectionsAreToldWhatIsForRequestsAlone(t *testing.T) {
	const want = "auth, rateLimit, cors, maxBodyBytes, sessionAffinity, compression, cache and maintenance are for " +
		"requests, and connections of transport TCP are not read"
	f := compileTransport(nil, &Rule{Transport: model.TransportTCP, Settings: list.Settings{MaxBodyBytes: 1}})
	if f == nil || f.Message != want {
		t.Errorf("got %+v", f)
	}
	addresses := list.Settings{ClientAddresses: &address.Rule{}, BackendSettings: &model.BackendSettings{}}
	if f := compileTransport(nil, &Rule{Transport: model.TransportTCP, Settings: addresses}); f != nil {
		t.Errorf("what holds for connections too: %+v", f)
	}
}

package watch

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// index panics as a defect of the program would.
func index(list []int) int { return list[0] }

const defect = "this release of the gateway has a defect and cannot serve the newest objects (runtime error: index out of range [0] with length 0), its log says where"

// breaking makes the fixture panic for a spec with a route of the name bad, and returns what it logs.
func breaking(f *fixture) *bytes.Buffer {
	log := new(bytes.Buffer)
	f.log = slog.New(slog.NewTextHandler(log, nil))
	f.options.Compile = func(in apigateway.Input) (*table.Table, []model.Problem) {
		for i := range in.Routes {
			if in.Routes[i].Name == "bad" {
				index(nil)
			}
		}
		return apigateway.Compile(in)
	}
	return log
}

func TestATableThatCannotBeMadeLeavesTheLastOne(t *testing.T) {
	f := newFixture(t)
	log := breaking(f)
	const app = `{name: app, path: /app, backendService: {name: app, port: 80}}`
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.spec("u", 1, `routes: [`+app+`]`)
	f.safeLook(t.Context())
	f.says(1)
	f.spec("u", 2, `routes: [`+app+`, {name: bad, directResponse: {statusCode: 200}}]`)
	f.safeLook(t.Context())
	f.says(1)
	rejected := &document.Rejected{Generation: 2, Reason: "ImageIncompatible", Message: defect}
	if diff := cmp.Diff(rejected, f.options.Board.Current().Rejected); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(log.String(), "survive_test.go") {
		t.Errorf("no stack in the log: %s", log)
	}
	log.Reset()
	told := f.options.Board.Current().Revision
	f.safeLook(t.Context())
	if now := f.options.Board.Current().Revision; now != told || log.Len() > 0 {
		t.Errorf("revision %d after %d, and it logs %q: the same is told twice", now, told, log)
	}
	f.must(f.slices.Update(sliceObject("app", "app-1")))
	f.safeLook(t.Context())
	f.says(1, "NoEndpoints") // the last table still follows its endpoints
	if f.options.Board.Current().Rejected == nil {
		t.Error("not rejected any more")
	}
	f.spec("u", 3, `routes: [`+hello+`]`)
	f.safeLook(t.Context())
	f.says(3)
	if got := f.options.Board.Current().Rejected; got != nil || f.routes() != "hello" {
		t.Errorf("still rejected: %+v, serves %q", got, f.routes())
	}
}

func TestWithoutATableAPodThatCannotMakeOneServesNone(t *testing.T) {
	f := newFixture(t)
	breaking(f)
	f.synced()
	f.spec("u", 4, `routes: [{name: bad, directResponse: {statusCode: 200}}]`)
	f.safeLook(t.Context())
	f.says(0)
	if got := f.options.Board.Current().Rejected; got == nil || got.Generation != 4 || len(f.applied) != 0 {
		t.Errorf("rejected: %+v, applied %d", got, len(f.applied))
	}
}

func TestWhatAPanicSaysIsNotPublished(t *testing.T) {
	f := newFixture(t)
	f.options.Compile = func(apigateway.Input) (*table.Table, []model.Problem) { panic("hunter2") }
	f.synced()
	f.spec("u", 1, `routes: [`+hello+`]`)
	f.safeLook(t.Context())
	if got := f.options.Board.Current().Rejected; got == nil || strings.Contains(got.Message, "hunter2") {
		t.Errorf("got %+v", got)
	}
}

// Half a table may be worse than none.
func TestAPanicWhileATableIsAppliedEndsThePod(t *testing.T) {
	f := newFixture(t)
	half := errors.New("half")
	f.options.Apply = func(Config) (map[Port]error, error) { panic(half) }
	f.synced()
	f.spec("u", 1, `routes: [`+hello+`]`)
	defer func() {
		if got := recover(); got != half { //nolint:errorlint // it is the same value
			t.Errorf("got %v", got)
		}
	}()
	f.safeLook(t.Context())
}

func TestARouteOfOneThatCannotBeServedLeavesThoseOfOthers(t *testing.T) {
	f := newGatewayFixture(t)
	f.options.Build = func(in gatewayapi.Input) *gatewayapi.Graph {
		for _, route := range in.HTTPRoutes {
			if route.Name == "bad" {
				index(nil)
			}
		}
		return gatewayapi.Build(in)
	}
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.safeLook(t.Context())
	f.backend("a")
	f.safeLook(t.Context())
	before := f.board.Current()
	if len(before.Routes) != 1 || before.Rejected != nil {
		t.Fatalf("says %+v", before)
	}
	f.must(f.httpRoutes.watched[""].store.Update(routeTo(t, "a", "bad", 1)))
	f.safeLook(t.Context())
	after := f.board.Current()
	rejected := &document.Rejected{Generation: 1, Reason: "ImageIncompatible", Message: defect}
	if diff := cmp.Diff(rejected, after.Rejected); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before.Routes, after.Routes); diff != "" {
		t.Errorf("routes: -want +got:\n%s", diff)
	}
	f.safeLook(t.Context())
	if now := f.board.Current().Revision; now != after.Revision {
		t.Errorf("revision %d after %d without a change", now, after.Revision)
	}
	f.must(f.httpRoutes.watched[""].store.Delete(routeTo(t, "a", "bad", 1)))
	f.safeLook(t.Context())
	if got := f.board.Current(); got.Rejected != nil || len(got.Routes) != 1 {
		t.Errorf("says %+v", got)
	}
}

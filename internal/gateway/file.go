package gateway

import (
	"context"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/static"
)

// followFile serves the configuration file until the context ends. A file has no
// generation, so each changed content counts as a new one.
func (g *gateway) followFile(ctx context.Context) error {
	var served document.Document
	generation := int64(0)
	apply := func(config *static.Config) error {
		if err := g.certificates.SetChecked(config.Certificates, config.Clients); err != nil {
			return err
		}
		g.handler.Set(config.Proxy)
		generation++
		served = document.Document{Generation: generation, Problems: document.TableProblems(config.Problems)}
		g.board.Publish(served)
		for _, problem := range served.Problems {
			g.options.Log.Warn("not served as it is written", "name", problem.Name, "field", problem.Field, "reason", problem.Reason, "message", problem.Message)
		}
		g.options.Log.Info("serving", "routes", len(config.Proxy.Table.Routes), "problems", len(config.Problems))
		return nil
	}
	return static.Follow(ctx, g.clock, g.options.ConfigFile, apply, func(err error) {
		if served.Rejected == nil || served.Rejected.Message != err.Error() { // the same error was logged already
			generation++
		}
		served.Rejected = &document.Rejected{Generation: generation, Reason: slipwayv1alpha1.ReasonInvalid, Message: err.Error()}
		g.board.Publish(served)
		g.options.Log.Error("the configuration is not applied, the one before stays", "error", err)
	}, g.panics.Report)
}

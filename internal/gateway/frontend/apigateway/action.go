package apigateway

import (
	"cmp"
	"net/http"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// addActions adds what happens to the route's requests. The table checks it.
func addActions(rule *table.Rule, spec *slipwayv1alpha1.Route) {
	rule.RequestHeaders, rule.ResponseHeaders = headerEdit(spec.RequestHeaders), headerEdit(spec.ResponseHeaders)
	rule.MaxBodyBytes = feature.Value(spec.MaxBodyBytes, 0)
	if in := spec.Rewrite; in != nil {
		rule.Rewrite = &model.Rewrite{Host: string(in.Host), FullPath: string(in.Path), PathPrefix: string(in.PathPrefix)}
	}
	if in := spec.Redirect; in != nil {
		rule.Redirect = &model.Redirect{
			StatusCode: int(feature.Value(in.StatusCode, http.StatusFound)), Scheme: in.Scheme, Host: string(in.Host), Port: feature.Value(in.Port, 0), FullPath: string(in.Path), PathPrefix: in.PathPrefix,
		}
	}
	if in := spec.DirectResponse; in != nil {
		rule.Direct = &model.DirectResponse{
			StatusCode:  int(in.StatusCode),
			ContentType: cmp.Or(string(in.ContentType), "text/plain; charset=utf-8"),
			Body:        []byte(in.Body),
		}
	}
}

func headerEdit(spec *slipwayv1alpha1.HeaderEdit) *model.HeaderEdit {
	if spec == nil {
		return nil
	}
	return &model.HeaderEdit{Remove: feature.Words(spec.Remove), Set: headerFields(spec.Set), Add: headerFields(spec.Add)}
}

func headerFields(spec []slipwayv1alpha1.HeaderField) []model.HeaderField {
	var fields []model.HeaderField
	for _, field := range spec {
		fields = append(fields, model.HeaderField{Name: string(field.Name), Value: string(field.Value)})
	}
	return fields
}

package apigateway

import (
	"cmp"
	"net/http"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// addActions adds what happens to the route's requests. The table checks it.
func addActions(rule *table.Rule, spec *slipwayv1alpha1.Route) {
	rule.RequestHeaders, rule.ResponseHeaders = headerEdit(spec.RequestHeaders), headerEdit(spec.ResponseHeaders)
	rule.MaxBodyBytes = value(spec.MaxBodyBytes, 0)
	if in := spec.Rewrite; in != nil {
		rule.Rewrite = &model.Rewrite{Host: string(in.Host), FullPath: string(in.Path), PathPrefix: string(in.PathPrefix)}
	}
	if in := spec.Redirect; in != nil {
		rule.Redirect = &model.Redirect{
			StatusCode: int(value(in.StatusCode, http.StatusFound)), Scheme: in.Scheme, Host: string(in.Host), Port: value(in.Port, 0), FullPath: string(in.Path), PathPrefix: in.PathPrefix,
		}
	}
	if in := spec.DirectResponse; in != nil {
		rule.Direct = &model.DirectResponse{
			StatusCode:  int(in.StatusCode),
			ContentType: cmp.Or(string(in.ContentType), "text/plain; charset=utf-8"),
			Body:        []byte(in.Body),
		}
	}
	if spec.CORS != nil {
		rule.CORS = corsRule(spec.CORS)
	}
}

func addressRule(in *slipwayv1alpha1.ClientAddresses) *table.AddressRule {
	return &table.AddressRule{Allow: words(in.Allow), Deny: words(in.Deny)}
}

func corsRule(in *slipwayv1alpha1.CORS) *table.CORSRule {
	return &table.CORSRule{
		AllowOrigins: words(in.AllowOrigins), AllowMethods: words(in.AllowMethods), AllowHeaders: words(in.AllowHeaders),
		ExposeHeaders: words(in.ExposeHeaders), AllowCredentials: in.AllowCredentials, MaxAgeSeconds: in.MaxAgeSeconds,
	}
}

func headerEdit(spec *slipwayv1alpha1.HeaderEdit) *model.HeaderEdit {
	if spec == nil {
		return nil
	}
	return &model.HeaderEdit{Remove: words(spec.Remove), Set: headerFields(spec.Set), Add: headerFields(spec.Add)}
}

func headerFields(spec []slipwayv1alpha1.HeaderField) []model.HeaderField {
	var fields []model.HeaderField
	for _, field := range spec {
		fields = append(fields, model.HeaderField{Name: string(field.Name), Value: string(field.Value)})
	}
	return fields
}

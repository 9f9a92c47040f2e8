package table_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestABackendWithTLSSpeaksWhatItsServiceDeclares(t *testing.T) {
	name := model.BackendName{ServiceName: model.ServiceName{Name: "web"}, Port: 80}
	with := &model.BackendTLS{Identity: "a"}
	for appProtocol, tc := range map[string]struct {
		secure *model.BackendTLS
		want   model.Protocol
		wrong  string
	}{
		"":                   {secure: with},
		"http":               {secure: with},
		"https":              {secure: with},
		"HTTPS":              {secure: with},
		"kubernetes.io/wss":  {secure: with},
		"kubernetes.io/h2c":  {secure: with, want: model.ProtocolH2C},
		"grpc":               {secure: with, want: model.ProtocolGRPC},
		"smtp":               {secure: with, wrong: model.ReasonUnsupportedProtocol},
		"https ":             {secure: with, wrong: model.ReasonUnsupportedProtocol},
		"mongodb.com/wire":   {wrong: model.ReasonUnsupportedProtocol},
		"kubernetes.io/wss ": {wrong: model.ReasonUnsupportedProtocol},
	} {
		t.Run(appProtocol, func(t *testing.T) {
			compiled, problems := oneListener(table.Input{
				Services: map[model.ServiceName]model.Service{name.ServiceName: {Ports: map[int32]model.ServicePort{80: {AppProtocol: appProtocol, Endpoints: []string{"10.0.0.1:80"}}}}},
				Rules:    []table.Rule{{Backends: []model.BackendRef{{Service: "web", Port: 80, Weight: 1}}}},
				Settings: map[model.BackendName]model.Settings{name: {TLS: tc.secure}},
			})
			got := ""
			if len(problems) > 0 {
				got = problems[0].Reason
			}
			if got != tc.wrong {
				t.Errorf("problem %q, want %q", got, tc.wrong)
			}
			if b := compiled.Backends[0]; b.Protocol != tc.want || b.TLS != tc.secure || (len(b.Endpoints) > 0) != (tc.wrong == "") {
				t.Errorf("got %+v", b)
			}
		})
	}
}

func TestWrongSettingsDoNotSwitchTLSOff(t *testing.T) {
	name := model.BackendName{ServiceName: model.ServiceName{Name: "web"}, Port: 80}
	with, protocol := &model.BackendTLS{Identity: "a"}, model.ProtocolGRPC
	compiled, _ := oneListener(table.Input{
		Services: everywhere(), Rules: []table.Rule{{Backends: []model.BackendRef{{Service: "web", Port: 80, Weight: 1}}}},
		Settings: map[model.BackendName]model.Settings{name: {TLS: with, Protocol: &protocol, Limits: &model.Limits{}, HealthCheck: &model.HealthCheck{}}},
	})
	b := compiled.Backends[0]
	if b.TLS != with || b.Protocol != protocol || b.HealthCheck != nil {
		t.Errorf("got %+v", b)
	}
	if diff := cmp.Diff(model.DefaultLimits(), b.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

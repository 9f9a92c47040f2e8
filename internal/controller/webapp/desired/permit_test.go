package desired_test

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// Who may write ControllerRevisions gets no pods that no WebApp can ask for.
func TestAStoredTemplateGivesNoMoreThanAWebApp(t *testing.T) {
	tests := map[string]struct {
		merge string // into the template, as YAML; lists of a container's fields are replaced
		want  string
	}{
		"as it was stored":              {`{}`, ""},
		"other probes":                  {`spec: {containers: [{startupProbe: null, readinessProbe: {tcpSocket: {port: http}}, livenessProbe: {exec: {command: ["true"]}}}]}`, ""},
		"another grace period":          {`spec: {terminationGracePeriodSeconds: 17, topologySpreadConstraints: [], enableServiceLinks: true}`, ""},
		"another hook and more to tell": {`spec: {containers: [{lifecycle: {preStop: {sleep: {seconds: 1}}}, env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], resources: {limits: {cpu: 100m}}}]}`, ""},
		"another port":                  {`spec: {containers: [{ports: [{containerPort: 9000, name: http}]}]}`, ""},
		"fewer labels and volumes":      {`{metadata: {labels: {app.kubernetes.io/name: null}}, spec: {volumes: []}}`, ""},

		"another image":                   {`spec: {containers: [{image: "evil:1"}]}`, "spec.containers[].image"},
		"another command":                 {`spec: {containers: [{command: [sh]}]}`, "spec.containers[].command"},
		"another user":                    {`spec: {securityContext: {runAsNonRoot: false}}`, "spec.securityContext.runAsNonRoot"},
		"no word of the user":             {`spec: {securityContext: {runAsNonRoot: null}}`, "spec.securityContext.runAsNonRoot"},
		"no seccomp":                      {`spec: {securityContext: {seccompProfile: {type: Unconfined}}}`, "spec.securityContext.seccompProfile.type"},
		"no word of seccomp":              {`spec: {securityContext: null}`, "spec.securityContext"},
		"a group":                         {`spec: {securityContext: {supplementalGroups: [0]}}`, "spec.securityContext.supplementalGroups"},
		"a sysctl":                        {`spec: {securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: "0"}]}}`, "spec.securityContext.sysctls"},
		"more privileges":                 {`spec: {containers: [{securityContext: {allowPrivilegeEscalation: true}}]}`, "spec.containers[].securityContext.allowPrivilegeEscalation"},
		"all privileges":                  {`spec: {containers: [{securityContext: {privileged: true}}]}`, "spec.containers[].securityContext.privileged"},
		"root":                            {`spec: {containers: [{securityContext: {runAsUser: 0}}]}`, "spec.containers[].securityContext.runAsUser"},
		"no word of the container's":      {`spec: {containers: [{securityContext: null}]}`, "spec.containers[].securityContext"},
		"a capability":                    {`spec: {containers: [{securityContext: {capabilities: {add: [NET_RAW]}}}]}`, "spec.containers[].securityContext.capabilities.add"},
		"capabilities are kept":           {`spec: {containers: [{securityContext: {capabilities: {drop: []}}}]}`, "spec.containers[].securityContext.capabilities.drop"},
		"a token":                         {`spec: {automountServiceAccountToken: true}`, "spec.automountServiceAccountToken"},
		"no word of the token":            {`spec: {automountServiceAccountToken: null}`, "spec.automountServiceAccountToken"},
		"another account":                 {`spec: {serviceAccountName: admin}`, "spec.serviceAccountName"},
		"another account by its old name": {`spec: {serviceAccount: admin}`, "spec.serviceAccount"},
		"the node's network":              {`spec: {hostNetwork: true}`, "spec.hostNetwork"},
		"the node's processes":            {`spec: {hostPID: true}`, "spec.hostPID"},
		"the node's memory":               {`spec: {hostIPC: true}`, "spec.hostIPC"},
		"the node's users":                {`spec: {hostUsers: true}`, "spec.hostUsers"},
		"a port of the node":              {`spec: {containers: [{ports: [{containerPort: 8080, hostPort: 80}]}]}`, "spec.containers[].ports[].hostPort"},
		"a probe of another host":         {`spec: {containers: [{readinessProbe: {httpGet: {host: 169.254.169.254, port: 80}}}]}`, "spec.containers[].readinessProbe.httpGet.host"},
		"a hook to another host":          {`spec: {containers: [{lifecycle: {postStart: {tcpSocket: {host: 10.0.0.1, port: 80}}}}]}`, "spec.containers[].lifecycle.postStart.tcpSocket.host"},
		"the node's files":                {`spec: {volumes: [{name: data, hostPath: {path: /}}]}`, "spec.volumes"},
		"another claim":                   {`spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: other}}]}`, "spec.volumes"},
		"a device":                        {`spec: {containers: [{volumeDevices: [{name: data, devicePath: /dev/x}]}]}`, "spec.containers[].volumeDevices"},
		"a container before it":           {`spec: {initContainers: [{name: init, image: "evil:1"}]}`, "spec.initContainers"},
		"a node":                          {`spec: {nodeName: control-plane}`, "spec.nodeName"},
		"a toleration":                    {`spec: {tolerations: [{operator: Exists}]}`, "spec.tolerations"},
		"a priority":                      {`spec: {priorityClassName: system-node-critical}`, "spec.priorityClassName"},
		"a runtime":                       {`spec: {runtimeClassName: bare}`, "spec.runtimeClassName"},
		"a label of somebody else's":      {`metadata: {labels: {app: bank}}`, "metadata.labels"},
		"an annotation":                   {`metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/app: unconfined}}`, "metadata.annotations"},
		"an owner":                        {`metadata: {ownerReferences: [{kind: Pod, name: x}]}`, "metadata.ownerReferences"},
	}
	app := shop()
	app.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
	revision := desired.RevisionOf(app.Spec, "c0ffee")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stored, err := revision.Applied(desired.NewTemplate(app, revision))
			if err != nil {
				t.Fatal(err)
			}
			var template, change any
			if err := json.Unmarshal(stored.Template, &template); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.merge), &change); err != nil {
				t.Fatal(err)
			}
			if stored.Template, err = json.Marshal(merged(template, change)); err != nil {
				t.Fatal(err)
			}
			read, err := desired.StoredTemplate(app, stored)
			if err != nil {
				t.Fatal(err)
			}
			if got := desired.Unsafe(app, stored, read); got != tc.want {
				t.Errorf("refused is %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("a second container", func(t *testing.T) {
		template := desired.NewTemplate(app, revision)
		template.Spec.Containers = append(template.Spec.Containers, template.Spec.Containers[0])
		if got := desired.Unsafe(app, revision, template); got != "spec.containers" {
			t.Errorf("refused is %q", got)
		}
	})
}

// merged changes an object, and the first item of a list where both have one.
func merged(object, change any) any {
	switch change := change.(type) {
	case map[string]any:
		fields, ok := object.(map[string]any)
		if !ok {
			return change
		}
		for name, value := range change {
			if fields[name] = merged(fields[name], value); value == nil {
				delete(fields, name)
			}
		}
		return fields
	case []any:
		items, ok := object.([]any)
		if !ok || len(items) == 0 || len(change) == 0 {
			return change
		}
		if _, named := items[0].(map[string]any)["image"]; named {
			items[0] = merged(items[0], change[0])
			return items
		}
		return change
	default:
		return change
	}
}

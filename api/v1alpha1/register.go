package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every Slipway kind.
const GroupName = "slipway.dev"

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = schemeBuilder.AddToScheme

// Resource qualifies a resource name with the group of this package. Generated
// clients use it.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&APIGateway{}, &APIGatewayList{}, &Backup{}, &BackupList{}, &BackupRun{}, &BackupRunList{},
		&GatewayParameters{}, &GatewayParametersList{}, &GatewayPolicy{}, &GatewayPolicyList{},
		&MonitorRule{}, &MonitorRuleList{}, &Restore{}, &RestoreList{}, &WebApp{}, &WebAppList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

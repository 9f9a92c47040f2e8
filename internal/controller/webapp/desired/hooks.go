package desired

import (
	"maps"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// allowHooks copies the annotation by which a WebApp allows hooks of Backups to the pods. No other annotation of a WebApp
// reaches them. It is no part of a revision: a rollback does not bring back what was allowed once, and whoever may write
// ControllerRevisions alone allows nothing.
func allowHooks(template *PodTemplate, app *slipwayv1alpha1.WebApp) *PodTemplate {
	hooks := app.Annotations[slipwayv1alpha1.AnnotationBackupHooks]
	if hooks == "" || template.ObjectMetaApplyConfiguration == nil {
		return template
	}
	annotated, metadata := *template, *template.ObjectMetaApplyConfiguration
	metadata.Annotations = maps.Clone(metadata.Annotations)
	annotated.ObjectMetaApplyConfiguration = &metadata
	return annotated.WithAnnotations(map[string]string{slipwayv1alpha1.AnnotationBackupHooks: hooks})
}

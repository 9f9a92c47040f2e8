package mover

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Named is an object, and the field that names it.
type Named struct{ Name, Field string }

// Names are what a Job uses of a repository, in the words of the user: slipway-backup knows folders and an address.
type Names struct {
	Place Place
	// Destination is the field with the place.
	Destination string
	// Paths is the field with the paths to copy, or to restore.
	Paths string
	// Credentials and Encryption are the Secrets.
	Credentials, Encryption Named
}

// Name says in a trouble which object and which field it is about. Reasons that are about neither stay as they are.
func (n Names) Name(trouble *health.Trouble) *health.Trouble {
	if trouble == nil {
		return nil
	}
	about := ""
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonAccessDenied, slipwayv1alpha1.ReasonUnreachable:
		about = n.place()
		if n.Place.Bucket != "" {
			about += fmt.Sprintf(", with Secret %q (%s)", n.Credentials.Name, n.Credentials.Field)
		}
	case slipwayv1alpha1.ReasonDestinationNotFound, slipwayv1alpha1.ReasonRepositoryNotFound, slipwayv1alpha1.ReasonWrongRepository,
		slipwayv1alpha1.ReasonDestinationNotEmpty:
		about = n.place()
	case slipwayv1alpha1.ReasonWrongPassword:
		about = fmt.Sprintf("Secret %q (%s)", n.Encryption.Name, n.Encryption.Field)
	case slipwayv1alpha1.ReasonPathNotFound:
		about = n.Paths
	default:
		return trouble
	}
	named := *trouble
	named.Message = about + ": " + trouble.Message
	return &named
}

func (n Names) place() string {
	if n.Place.Bucket != "" {
		return fmt.Sprintf("bucket %q (%s)", n.Place.Bucket, n.Destination)
	}
	return fmt.Sprintf("PersistentVolumeClaim %q (%s)", n.Place.Claim, n.Destination)
}

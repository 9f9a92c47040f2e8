package health

// State is the verdict on an object.
type State string

// The states.
const (
	// Healthy: the object does what it is for.
	Healthy State = "Healthy"
	// Progressing: the object is on its way, and nothing has gone wrong.
	Progressing State = "Progressing"
	// Failed: something has gone wrong.
	Failed State = "Failed"
	// Terminating: the object is being deleted.
	Terminating State = "Terminating"
	// Unknown: the object does not say.
	Unknown State = "Unknown"
)

// Reasons for a pod or its owner to fail.
const (
	// ReasonImageNotFound: the registry has no such image or tag.
	ReasonImageNotFound = "ImageNotFound"
	// ReasonImagePullDenied: the registry refuses the image: a wrong or missing pull
	// secret, or a name that does not exist in a private registry.
	ReasonImagePullDenied = "ImagePullDenied"
	// ReasonImagePullBackOff: the image cannot be pulled for another reason.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonInvalidImageName: the image's name cannot be parsed.
	ReasonInvalidImageName = "InvalidImageName"
	// ReasonCrashLoopBackOff: a container ends again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonOOMKilled: a container used more memory than its limit.
	ReasonOOMKilled = "OOMKilled"
	// ReasonContainerConfigError: a container cannot be set up, for example because a
	// Secret is missing or the image would run as root.
	ReasonContainerConfigError = "CreateContainerConfigError"
	// ReasonContainerStartError: a container cannot be started, for example because its
	// command does not exist.
	ReasonContainerStartError = "ContainerStartError"
	// ReasonUnschedulable: no node can take the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNotReady: the container runs and its readiness probe fails.
	ReasonNotReady = "NotReady"
	// ReasonEvicted: the node threw the pod out.
	ReasonEvicted = "Evicted"
	// ReasonPodFailed: the pod ended for another reason, which the message names.
	ReasonPodFailed = "PodFailed"
	// ReasonQuotaExceeded: a quota of the namespace does not allow another pod.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodsForbidden: an admission rule of the cluster does not allow the pods.
	ReasonPodsForbidden = "PodsForbidden"
	// ReasonPodsNotCreated: the pods cannot be created.
	ReasonPodsNotCreated = "PodsNotCreated"
)

// Verdict is what is known about one object.
type Verdict struct {
	// State is the verdict.
	State State
	// Reason is a condition reason, set unless Healthy.
	Reason string
	// Message names the object and says what is wrong with it.
	Message string
	// Terminal tells that waiting will not help: the same pod will not get better.
	Terminal bool
}

package v1alpha1

// Condition types that every kind uses.
const (
	// ConditionReady is the summary: True when the cluster runs exactly what this
	// generation of the spec says, False when it does not, or not yet.
	ConditionReady = "Ready"
	// ConditionAvailable is True while at least one replica serves, whatever its revision.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the controller or the cluster is still working
	// towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while something that should work does not.
	ConditionDegraded = "Degraded"
	// ConditionStalled is True while nothing will get better until a user acts. It is
	// absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionPullSecretMissing is True while a Secret to pull images with does not exist, of a kind whose spec names
	// some. Pods start without it where the node has the image or may pull it, so Ready does not count it. It is absent
	// otherwise.
	ConditionPullSecretMissing = "PullSecretMissing"
)

// Reasons that every kind uses.
const (
	// ReasonReady: everything is as the spec says.
	ReasonReady = "Ready"
	// ReasonAsExpected: nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonPaused: spec.paused keeps the operator from acting.
	ReasonPaused = "Paused"
	// ReasonNameConflict: an object that Slipway would create exists and is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonAltered: an admission policy or webhook of the cluster changes fields that Slipway states of an object. The message
	// names the object and the fields. What is only made once, such as a Job, has it in an event.
	ReasonAltered = "Altered"
	// ReasonInvalid: the API server refused an object that the spec leads to.
	ReasonInvalid = "Invalid"
	// ReasonForbidden: the API server does not let the operator act.
	ReasonForbidden = "Forbidden"
	// ReasonQuotaExceeded: a quota of the namespace does not allow what is needed.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonNamespaceTerminating: the namespace is being deleted, so nothing can be made in it.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonTerminating: the object itself is being deleted; or an object that belongs to it
	// is, and is recreated afterwards.
	ReasonTerminating = "Terminating"
	// ReasonAutoscalerFailing: the HorizontalPodAutoscaler cannot scale, for example because
	// the cluster measures nothing or the pods request no CPU.
	ReasonAutoscalerFailing = "AutoscalerFailing"
	// ReasonDriftRepaired: fields of a child that somebody had changed were restored. Of
	// events only. The message names the fields and the field manager.
	ReasonDriftRepaired = "DriftRepaired"
	// ReasonAPIError: the API server answered with an error; the operator tries again.
	ReasonAPIError = "APIError"
)

// Reasons why pods do not run, of every kind that has pods.
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
	// ReasonProbeFailing: a container runs and does not answer its probe, though it did, or
	// though it has had the time to start.
	ReasonProbeFailing = "ProbeFailing"
	// ReasonSandboxFailed: the node cannot set the pod up, for example its network.
	ReasonSandboxFailed = "FailedCreatePodSandBox"
	// ReasonMountFailed: the node cannot attach or mount a volume of the pod.
	ReasonMountFailed = "FailedMount"
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
	// ReasonEvicted: the node threw the pod out.
	ReasonEvicted = "Evicted"
	// ReasonPodFailed: the pod ended for another reason, which the message names.
	ReasonPodFailed = "PodFailed"
	// ReasonPodsForbidden: an admission rule of the cluster does not allow the pods.
	ReasonPodsForbidden = "PodsForbidden"
	// ReasonPodsNotCreated: the pods cannot be created.
	ReasonPodsNotCreated = "PodsNotCreated"
)

package v1alpha1

// BackupDump is a command whose output is the backup. It runs in a pod of its own, not in one of the source.
type BackupDump struct {
	// image has the command. Default: that of the source's container. Required where the source is a
	// PersistentVolumeClaim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]*$')",message="spec.dump.image must not hold white space"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^\\\\s]+$') || self.matches('^(?:(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\\\\[[a-fA-F0-9:]+\\\\])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\\\\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\\\\.|_|__|-+)[a-z0-9]+)*)*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[a-fA-F0-9]{32,})?$')",message="spec.dump.image must name an image, for example registry.example.com/shop:1.4.2: the repository in lower case, then :tag, @digest or both"
	// +optional
	Image string `json:"image,omitempty"`

	// container is the container of the source's pods whose image, env and envFrom the command gets. Default: the first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="spec.dump.container must be the name of a container: lower case letters, digits and '-'"
	// +optional
	Container string `json:"container,omitempty"`

	// command is the program and its arguments, from 1 to 64 words. It writes the backup to its standard output. Only when it
	// ends with exit code 0 is there a copy. What it writes to its standard error is in the log of the pod, and the end of it
	// in the message of a run that failed. No shell is involved, unless it is the command: sh, -c, "pg_dump | gzip".
	// $(NAME) stands for the environment variable NAME.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(self[0]) > 0",message="spec.dump.command must begin with a program"
	// +listType=atomic
	// +required
	Command []string `json:"command"`

	// env are environment variables by name, at most 200 of at most 32 KiB each. They win over envFrom, and over what the
	// source's container has. $(NAME) in a value stands for the variable NAME, and $$(NAME) for the text $(NAME).
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$'))",message="spec.dump.env: a name must hold only letters, digits, '-', '_' and '.' and must not start with a digit"
	// +optional
	Env map[string]EnvValue `json:"env,omitempty"`

	// envFrom adds environment variables from Secrets and ConfigMaps, at most 32. An entry with keys wins over what the
	// source's container has; of two entries of the same sort the later one wins.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`

	// name is that of the file in the copy, at most 128 letters, digits, '-', '_' and '.'. Default: dump.
	// +kubebuilder:default=dump
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][-A-Za-z0-9_.]*$')",message="spec.dump.name must be the name of a file, of letters, digits, '-', '_' and '.'"
	// +optional
	Name string `json:"name,omitempty"`

	// resources are the compute resources of the command's container. Default: 100m CPU and 128Mi memory asked, no limits.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`
}

// DumpVolume stands for the name of a claim where a copy is of no volume: the output of spec.dump.
const DumpVolume = "dump"

// DumpName is the name of the file that the output of spec.dump is kept as. It is empty without spec.dump.
func (b *Backup) DumpName() string {
	switch {
	case b.Spec.Dump == nil:
		return ""
	case b.Spec.Dump.Name == "":
		return "dump"
	default:
		return b.Spec.Dump.Name
	}
}

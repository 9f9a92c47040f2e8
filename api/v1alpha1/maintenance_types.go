package v1alpha1

// Maintenance answers requests with 503 in place of the backends, at set times or until it is taken away.
type Maintenance struct {
	// windows say when, at most 8. Default: always, until the field is taken away.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// timeZone is the zone of the schedules, for example Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// body of the answer, at most 4096 characters. Default: "Service Unavailable".
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Body string `json:"body,omitempty"`

	// contentType of the body, at most 1024 characters. Default text/plain; charset=utf-8.
	// +optional
	ContentType HeaderValue `json:"contentType,omitempty"`
}

// MaintenanceWindow is a time that comes again and again.
type MaintenanceWindow struct {
	// schedule is when it begins: the five fields of cron (minute, hour, day of the month, month, day of the week), for example
	// "0 2 * * 0", or @hourly, @daily, @weekly, @monthly or @yearly.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Schedule string `json:"schedule"`

	// duration is how long it lasts, from 1m to 24h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="maintenance.windows: duration must be at least 1m"
	// +required
	Duration Duration `json:"duration"`
}

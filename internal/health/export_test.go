package health

// ProfileName names the profile of an object.
func ProfileName(object map[string]any) string {
	if p := subjectOf(object, Options{}).profile; p != nil {
		return p.Name()
	}
	return ""
}

// Package text bounds the texts that go into the API: messages of conditions, events and annotations.
package text

// Cut shortens a text to at most limit bytes. It does not split a character.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := limit - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
}

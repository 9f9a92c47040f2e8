// Package text bounds the texts that go into the API: messages of conditions, events and annotations.
package text

import "fmt"

// Bytes writes a size for people, for example 1.2 GiB.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	const units = "KMGTPE"
	for value >= 1023.95 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

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

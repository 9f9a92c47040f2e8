package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// maxName is the longest name of a backup that the name of a run contains unchanged. With the minutes since 1970 it fits
// into the 63 characters that the label of a Job may have.
const maxName = 52

// RunName returns the name of the run for a slot of a backup. It is always the same, so that a slot that is started twice
// leads to one object. A long name of a backup is shortened, with a hash that keeps different backups apart.
func RunName(backup string, slot time.Time) string {
	if len(backup) > maxName {
		sum := sha256.Sum256([]byte(backup))
		const hashLength = 10
		hash := hex.EncodeToString(sum[:])[:hashLength]
		backup = strings.TrimRight(backup[:maxName-hashLength-1], "-.") + "-" + hash
	}
	return fmt.Sprintf("%s-%d", backup, slot.Unix()/60)
}

// Jitter returns how long after its slot the run of an object starts: a time from 0 up to, but not including, the window. It
// is always the same for a key, such as the UID of the object. The times of many keys are spread evenly, in whole seconds.
func Jitter(key string, window time.Duration) time.Duration {
	seconds := uint64(window / time.Second)
	if window < time.Second {
		return 0
	}
	sum := sha256.Sum256([]byte(key))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%seconds) * time.Second
}

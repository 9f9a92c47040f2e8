package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	stateFile = "state.db"
	lockFile  = "lock"
	probeName = "probe"
	probeSize = 64 << 10
	// buildSuffix is of a file that is being made. It gets its own name when it is whole.
	buildSuffix = ".new"
	// corruptSuffix comes before the number of a file that was moved aside, and keepCorrupt is how many of them are kept.
	corruptSuffix = ".corrupt-"
	keepCorrupt   = 3
)

// dayName is the name of a file of changes: a day in UTC, and a number when the day has more than one.
type dayName struct {
	day    string
	number int
}

var dayPattern = regexp.MustCompile(`^changes-(\d{4}-\d{2}-\d{2})(?:\.([1-9]\d{0,8}))?\.db$`)

// parseDay reads the name of a file of changes. There is one way to write each.
func parseDay(name string) (dayName, bool) {
	m := dayPattern.FindStringSubmatch(name)
	if m == nil {
		return dayName{}, false
	}
	if _, err := time.Parse(time.DateOnly, m[1]); err != nil {
		return dayName{}, false
	}
	number := 0
	if m[2] != "" {
		number, _ = strconv.Atoi(m[2])
	}
	return dayName{day: m[1], number: number}, true
}

func (d dayName) String() string {
	if d.number == 0 {
		return fmt.Sprintf("changes-%s.db", d.day)
	}
	return fmt.Sprintf("changes-%s.%d.db", d.day, d.number)
}

func (d dayName) compare(other dayName) int {
	return cmp.Or(strings.Compare(d.day, other.day), cmp.Compare(d.number, other.number))
}

// next is the name of the file after this one. The day never goes back, whatever the clock does.
func (d dayName) next(now time.Time) dayName {
	today := now.UTC().Format(time.DateOnly)
	if today > d.day {
		return dayName{day: today}
	}
	return dayName{day: d.day, number: d.number + 1}
}

// sidecars are the files that the database keeps beside one.
func sidecars(path string) []string { return []string{path, path + "-wal", path + "-shm"} }

// listDays returns the names of the files of changes in a folder, oldest first.
func listDays(dir string) ([]dayName, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var days []dayName
	for _, entry := range entries {
		if day, ok := parseDay(entry.Name()); ok {
			days = append(days, day)
		}
	}
	slices.SortFunc(days, dayName.compare)
	return days, nil
}

// size returns how many bytes a database has on disk.
func size(path string) int64 {
	var sum int64
	for _, name := range sidecars(path) {
		if info, err := os.Stat(name); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// remove deletes a database. What is not there is not missed.
func remove(path string) error {
	var errs []error
	for _, name := range sidecars(path) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// corruptFiles returns the files that were moved aside, oldest first. Of a database all files have the same number.
func corruptFiles(dir string) (map[int][]string, []int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	files := map[int][]string{}
	for _, entry := range entries {
		_, number, ok := strings.Cut(entry.Name(), corruptSuffix)
		number, _, _ = strings.Cut(number, "-")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		files[n] = append(files[n], filepath.Join(dir, entry.Name()))
	}
	var numbers []int
	for n := range files {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return files, numbers, nil
}

// moveAside gives a database a name under which nothing looks for it, and returns that name. Of those that were moved aside
// before, the oldest go.
func moveAside(dir, name string) (string, error) {
	files, numbers, err := corruptFiles(dir)
	if err != nil {
		return "", err
	}
	n := 1
	if len(numbers) > 0 {
		n = numbers[len(numbers)-1] + 1
	}
	for len(numbers) >= keepCorrupt {
		for _, path := range files[numbers[0]] {
			_ = os.Remove(path)
		}
		numbers = numbers[1:]
	}
	path := filepath.Join(dir, name)
	target := path + corruptSuffix + strconv.Itoa(n)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, target+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return target, syncDir(dir)
}

// movedAside reports whether there is a file that was moved aside and had this name.
func movedAside(dir, name string) bool {
	files, _, err := corruptFiles(dir)
	if err != nil {
		return false
	}
	for _, paths := range files {
		for _, path := range paths {
			if strings.HasPrefix(filepath.Base(path), name+corruptSuffix) {
				return true
			}
		}
	}
	return false
}

// removeCopies removes what a crash has left of copies of files of changes.
func removeCopies(dir string) error {
	copies, err := filepath.Glob(filepath.Join(dir, "changes-*.db"+buildSuffix+"*"))
	for _, path := range copies {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// syncDir makes durable which files a folder has.
func syncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

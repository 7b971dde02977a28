package buffer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tidemark/buffer"
)

// long is the long work on the file path, in a directory of its own.
var long = map[string]struct {
	steps []string
	work  func(path string, p buffer.Progress) error
}{
	"check": {[]string{buffer.StepReading}, func(path string, p buffer.Progress) error {
		_, err := buffer.Check(path, p)
		return err
	}},
	"compact": {[]string{buffer.StepCopying}, func(path string, p buffer.Progress) error {
		_, _, err := buffer.Compact(path, p)
		return err
	}},
	"salvage": {[]string{buffer.StepReading, buffer.StepSearching, buffer.StepAssembling, buffer.StepCopying}, func(path string, p buffer.Progress) error {
		_, err := buffer.Salvage(path, filepath.Join(filepath.Dir(path), "new.db"), p)
		return err
	}},
}

// Every step goes from its beginning to its end, by what is really there.
func TestProgress(t *testing.T) {
	t.Parallel()
	file, _, _ := victim(t)
	for name, x := range long {
		path := filepath.Join(t.TempDir(), "t.db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		var steps []string
		var last, whole int64
		err := x.work(path, func(step string, done, total int64) error {
			if !slices.Contains(steps, step) {
				steps, last, whole = append(steps, step), 0, total
			}
			if step != steps[len(steps)-1] || total != whole || done < last || done > total {
				t.Errorf("%s: %s %d of %d, after %v %d of %d", name, step, done, total, steps, last, whole)
			}
			last = done
			return nil
		})
		if err != nil || !slices.Equal(steps, x.steps) {
			t.Errorf("%s: %v, %v", name, steps, err)
		}
		if whole < int64(len(file))/3 || whole-last > whole/10 {
			t.Errorf("%s ended at %d of %d", name, last, whole)
		}
	}
}

// An error of who watches ends the work in any of its steps and leaves all as it was.
func TestProgressInterrupts(t *testing.T) {
	t.Parallel()
	file, _, _ := victim(t)
	enough := errors.New("enough")
	for name, x := range long {
		for _, step := range x.steps {
			path := filepath.Join(t.TempDir(), "t.db")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			after := 0
			err := x.work(path, func(s string, done, total int64) error {
				if s != step || done < total/2 {
					return nil
				}
				after++
				return enough
			})
			if !errors.Is(err, enough) || after != 1 {
				t.Errorf("%s, %s: %v, asked %d times", name, step, err, after)
			}
			if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
				t.Errorf("%s, %s: left behind: %v", name, step, files)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, file) {
				t.Errorf("%s, %s: the file was changed", name, step)
			}
		}
	}
}

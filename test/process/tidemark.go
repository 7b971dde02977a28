package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// Build makes the command under test in a directory and returns its path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "tidemark")
	if out, err := exec.Command("go", "build", "-o", binary, "tidemark/cmd/tidemark").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the command: %w\n%s", err, out)
	}
	return binary, nil
}

// JSON runs a command to its end and reads what it prints.
func JSON(into any, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return fmt.Errorf("%s %s: %w: %s\n%s", filepath.Base(program), args[0], err, exit.Stderr, out[:min(len(out), 4000)])
	case err != nil:
		return err
	}
	return json.Unmarshal(out, into)
}

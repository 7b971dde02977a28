package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// NamedFiles returns the files that exist and that the configuration needs beside
// its store: itself, what it names (certificates, tag files, secrets), and what is
// in directories that it names, sorted.
func (c *Config) NamedFiles() []string {
	files := []string{}
	if c.file != "" {
		files = append(files, Absolute(c.file))
	}
	walkPaths(reflect.ValueOf(c).Elem(), func(path string) {
		_ = filepath.WalkDir(path, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && path != string(c.Store.Path) {
				files = append(files, Absolute(path))
			}
			return nil // what is not there, or not to be read, is not backed up
		})
	})
	slices.Sort(files)
	return slices.Compact(files)
}

// Absolute returns the path from the root, or as it is where there is no working
// directory.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// walkPaths calls fn with every path in v, of files and of credentials.
func walkPaths(v reflect.Value, fn func(string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkPaths(v.Elem(), fn)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walkPaths(v.Index(i), fn)
		}
	case reflect.Struct:
		if s, ok := v.Interface().(Secret); ok && s.Credential != "" {
			fn(filepath.Join(CredentialFiles, s.Credential))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkPaths(v.Field(i), fn)
			}
		}
	case reflect.String:
		if p, ok := v.Interface().(Path); ok && p != "" {
			fn(string(p))
		}
	}
}

package configs

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The types here take nodes of more than one shape.

// secretKeys are the two places that a secret may be in.
var secretKeys = []string{"credential", "file"}

// decode reads {credential: NAME} or {file: PATH}. What stands there instead is
// never repeated: it may be the secret.
func (s *Secret) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "", "a secret never stands in this file; write {credential: NAME} or {file: PATH}")
		return
	}
	var in struct {
		Credential string `yaml:"credential"`
		File       Path   `yaml:"file"`
	}
	d.structure(n, reflect.ValueOf(&in).Elem(), path)
	switch {
	case in.Credential != "" && in.File != "":
		d.fault(n, "", "a secret is either a credential or a file, not both")
	case slices.ContainsFunc(secretKeys, func(key string) bool { return d.meant.given(join(path, key)) }): // a fault already
	case in.Credential == "" && in.File == "":
		d.fault(n, "", "names no secret; write {credential: NAME} or {file: PATH}")
	case strings.ContainsAny(in.Credential, "/\x00") || in.Credential == "." || in.Credential == "..":
		d.fault(n, "", "a credential is a plain name, as in LoadCredential=NAME:FILE")
	default:
		*s = Secret(in)
	}
}

// decode takes a relative path from the directory of the configuration.
func (p *Path) decode(d *decoder, n *yaml.Node, _ string) {
	var text string
	d.scalar(n, reflect.ValueOf(&text).Elem())
	if text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(d.cfg.file), text)
	}
	*p = Path(text)
}

// decode reads a plain word, or {path: …}.
func (o *Origin) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.scalar(n, reflect.ValueOf(&o.Text).Elem())
		return
	}
	var f Field
	d.structure(n, reflect.ValueOf(&f).Elem(), path)
	o.Path = f.Path
}

// decode reads [low, high].
func (r *Range) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		d.fault(n, "", "a range is two numbers, such as [0, 100]")
		return
	}
	before := len(d.faults)
	d.value(n.Content[0], reflect.ValueOf(&r.Low).Elem(), at(path, 0))
	d.value(n.Content[1], reflect.ValueOf(&r.High).Elem(), at(path, 1))
	if len(d.faults) == before && r.Low >= r.High {
		d.fault(n, "", "the range's low end %v is not below its high end %v", r.Low, r.High)
	}
}

// decode reads one pattern or a list of them.
func (p *Patterns) decode(d *decoder, n *yaml.Node, path string) {
	var list []Pattern
	if n.Kind == yaml.SequenceNode {
		d.slice(n, reflect.ValueOf(&list).Elem(), path)
	} else {
		list = make([]Pattern, 1)
		d.scalar(n, reflect.ValueOf(&list[0]).Elem())
	}
	*p = list
}

// words are the values of an enumeration as the file spells them.
func words[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

func (Trust) values() []string         { return words(TrustChecked, TrustLocal) }
func (WhenFull) values() []string      { return words(DropOldestRaw, HoldSources) }
func (Scope) values() []string         { return words(ScopeInput, ScopeDevice, ScopeSensor) }
func (QualityPolicy) values() []string { return words(QualityAll, QualityGoodOnly) }
func (ValueType) values() []string     { return words(TypeNumber, TypeBool, TypeText) }
func (Publish) values() []string       { return words(PublishAll, PublishFinal) }
func (RecordType) values() []string {
	return words(RecordFeature, RecordClosed, RecordLate, RecordQuarantine, RecordEvent, RecordDefinition)
}
func (Order) values() []string    { return words(LiveFirst, InOrder) }
func (Identity) values() []string { return words(IdentityAuto, IdentityNone) }
func (TimeUse) values() []string  { return words(UseSource, UseServer, UseIngest) }
func (Format) values() []string {
	return words(FormatJSON, FormatPlain, FormatCSV, FormatInflux, FormatSenML, FormatSparkplug)
}
func (Trigger) values() []string {
	return words(TriggerStatusValue, TriggerStatus, TriggerStatusValueTimestamp)
}
func (NewTags) values() []string { return words(NewTagsReport, NewTagsAdd) }

func (Security) values() []string {
	list := []string{"none"}
	for _, policy := range []string{"Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"} {
		list = append(list, policy+"/Sign", policy+"/SignAndEncrypt")
	}
	return list
}

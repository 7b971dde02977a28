package opcua

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// namespaces is a server's table of namespace URIs by index. It may be another
// one after each restart of the server, so nodes are named by URI wherever they
// outlive a session.
type namespaces []string

func readNamespaces(ctx context.Context, c caller) (namespaces, error) {
	values, err := readSome(ctx, c, []*ua.ReadValueID{attribute(ua.NewNumericNodeID(0, id.Server_NamespaceArray), ua.AttributeIDValue)})
	if err != nil {
		return nil, err
	}
	if values[0].Value != nil {
		if uris, ok := values[0].Value.Value().([]string); ok && len(uris) > 0 {
			return uris, nil
		}
	}
	return nil, fmt.Errorf("the server does not tell its namespaces (i=2255): %v", values[0].Status)
}

// uriEscapes are the characters that separate the parts of a node id.
var uriEscapes = strings.NewReplacer("%", "%25", ";", "%3B")
var uriUnescapes = strings.NewReplacer("%25", "%", "%3B", ";", "%3b", ";")

// place writes a node of this session so that it holds for the next one too:
// nsu=URI;s=Line3, or i=85 for the specification's own.
func (t namespaces) place(n *ua.NodeID) string {
	text := n.String()
	index := int(n.Namespace())
	if index == 0 {
		return strings.TrimPrefix(text, "ns=0;")
	}
	if index >= len(t) {
		return text
	}
	_, local, _ := strings.Cut(text, ";")
	return "nsu=" + uriEscapes.Replace(t[index]) + ";" + local
}

// node is the inverse of place. Its error says what is wrong with the text, or
// that the server has no such namespace.
func (t namespaces) node(text string) (*ua.NodeID, error) {
	uri, local, err := parsePlace(text)
	if err != nil {
		return nil, err
	}
	index := 0
	if uri != "" {
		if index = slices.Index(t, uri); index < 0 {
			return nil, fmt.Errorf("the server has no namespace %q; it has %s", uri, strings.Join(t[min(1, len(t)):], ", "))
		}
	}
	return ua.ParseNodeID(fmt.Sprintf("ns=%d;%s", index, local))
}

// parsePlace takes a node id with a namespace URI apart; the URI of the
// specification's own nodes is empty.
func parsePlace(text string) (uri, local string, err error) {
	rest, ok := strings.CutPrefix(text, "nsu=")
	if ok {
		uri, local, ok = strings.Cut(rest, ";")
		uri = uriUnescapes.Replace(uri)
		ok = ok && uri != ""
	} else {
		local = strings.TrimPrefix(text, "ns=0;")
		if strings.HasPrefix(local, "ns=") {
			return "", "", fmt.Errorf("%q names its namespace by index, which may be another one after a restart of the server; write nsu=URI;%s (`tidemark browse` shows it)", text, afterSemicolon(local))
		}
		ok = true
	}
	// The library takes what has none of these for a text.
	if ok = ok && len(local) > 2 && strings.ContainsRune("isgb", rune(local[0])) && local[1] == '='; ok {
		_, err = ua.ParseNodeID("ns=1;" + local)
	}
	if !ok || err != nil {
		return "", "", fmt.Errorf("%q is no node id; write nsu=URI;s=NAME, or i=, g= or b= in place of s=, or a browse path such as /Objects/Line3", text)
	}
	return uri, local, nil
}

func afterSemicolon(s string) string {
	_, rest, _ := strings.Cut(s, ";")
	return rest
}

// locate finds nodes by node id or browse path. The second result has for each
// why it was not found.
func (t namespaces) locate(ctx context.Context, c caller, l *operations, places []string) ([]*ua.NodeID, []error, error) {
	nodes, faults := make([]*ua.NodeID, len(places)), make([]error, len(places))
	paths := map[int][]string{}
	for i, p := range places {
		if !strings.HasPrefix(p, "/") {
			nodes[i], faults[i] = t.node(p)
		} else if paths[i], faults[i] = splitPath(p); faults[i] != nil {
			delete(paths, i)
		}
	}
	err := follow(ctx, c, l, paths, nodes, faults)
	return nodes, faults, err
}

// lookedForAgain ends the sentence about what may yet come.
const lookedForAgain = "; it is looked for again"

// follow walks browse paths from the root, all of them level by level and each
// common beginning once.
func follow(ctx context.Context, c caller, l *operations, paths map[int][]string, nodes []*ua.NodeID, faults []error) error {
	at := map[string]*ua.NodeID{"": ua.NewTwoByteNodeID(id.RootFolder)} // by path; nil: more than one
	for depth := 0; len(paths) > 0; depth++ {
		var folders []string
		seen := map[string]bool{}
		for i, path := range paths {
			folder := joinPath(path[:depth])
			found, ok := at[folder]
			switch {
			case !ok:
				faults[i] = fmt.Errorf("there is no %s at the server%s", folder, lookedForAgain)
			case found == nil:
				faults[i] = fmt.Errorf("the server has several nodes at %s; write the node id", folder)
			case depth == len(path):
				nodes[i] = found
			case !seen[folder]:
				seen[folder] = true
				folders = append(folders, folder)
				continue
			default:
				continue
			}
			delete(paths, i)
		}
		if err := open(ctx, c, l, folders, at); err != nil {
			return err
		}
	}
	return nil
}

// open adds what is below folders to at.
func open(ctx context.Context, c caller, l *operations, folders []string, at map[string]*ua.NodeID) error {
	ids := make([]*ua.NodeID, len(folders))
	for i, f := range folders {
		ids[i] = at[f]
	}
	below, _, err := children(ctx, c, l, ids) // a folder that cannot be browsed has nothing
	if err != nil {
		return err
	}
	for i, f := range folders {
		for _, ch := range below[i] {
			path := f + joinPath([]string{ch.name})
			if was, ok := at[path]; ok && (was == nil || was.String() != ch.node.String()) {
				at[path] = nil
			} else {
				at[path] = ch.node
			}
		}
	}
	return nil
}

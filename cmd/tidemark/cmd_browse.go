package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/gateway/opcua"
	"tidemark/internal/pki"
	"tidemark/reading"
)

// serverFlags say which OPC UA server a command looks at, and how.
type serverFlags struct {
	security, user, password string
	under, match             string
	pki, certificateHost     string
	file                     string // configuration of the input, if one is named
	exclude                  []string
}

func (f *serverFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.security, "security", "Basic256Sha256/SignAndEncrypt", "security `POLICY/MODE`, or none, which nobody protects")
	cmd.Flags().StringVar(&f.user, "user", "", "log in as `USER`; else anonymously")
	cmd.Flags().StringVar(&f.password, "password-file", "", "the `FILE` with the user's password")
	cmd.Flags().StringVar(&f.pki, "pki", configs.ServiceDir+"/pki", "directory of certificates (see tidemark pki)")
	cmd.Flags().StringVar(&f.certificateHost, "certificate-host", "", "the `HOST` that the server's certificate names, if not that of the endpoint")
	cmd.Flags().StringVar(&f.under, "under", "/Objects", "the `NODE` to begin at: nsu=URI;s=NAME, or a browse path")
	cmd.Flags().StringVar(&f.match, "match", "", "how browse paths below it name assets and sensors, such as {asset}/{sensor}; else proposed")
	cmd.Flags().StringSliceVar(&f.exclude, "exclude", nil, "browse `PATHS` to leave out, * within a level, ** over levels")
	cmd.MarkFlagsRequiredTogether("user", "password-file")
}

// config is that of a reader of the server at endpoint.
func (f *serverFlags) config(endpoint string) (opcua.Config, error) {
	target, err := url.Parse(endpoint)
	if err != nil || target.Scheme != "opc.tcp" || target.Host == "" {
		return opcua.Config{}, fmt.Errorf("%q is no OPC UA endpoint; write opc.tcp://HOST:PORT/PATH", endpoint)
	}
	host, err := os.Hostname()
	if err != nil {
		return opcua.Config{}, err
	}
	cfg := opcua.Config{
		Input: "browse", Endpoint: target, Security: f.security, CertificateHost: f.certificateHost,
		Certificates: pki.At(f.pki), Application: gateway.Application(&configs.Config{Gateway: configs.Gateway{ID: host}}),
	}
	if f.user != "" {
		cfg.Login = func() (string, []byte, error) {
			data, err := os.ReadFile(f.password)
			return f.user, []byte(strings.TrimRight(string(data), "\r\n")), err
		}
	}
	return cfg, nil
}

// trustIn completes the remedy of a refused certificate by what to write here.
func (f *serverFlags) trustIn(err error) string {
	var untrusted *pki.Untrusted
	var other *pki.OtherHost
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "; look as the gateway's user or root, or name a directory of your own with --pki"
	case errors.As(err, &other) && len(other.Named) > 0 && f.file == "":
		return "; here: --certificate-host " + other.Named[0]
	case !errors.As(err, &untrusted):
		return ""
	case f.file != "":
		return " -c " + f.file
	}
	return " --dir " + f.pki
}

func newBrowseCmd() *cobra.Command {
	var f serverFlags
	var file, input string
	var depth int
	var asCSV, asJSON bool
	cmd := &cobra.Command{
		Use:   "browse ENDPOINT",
		Short: "Show what an OPC UA server has, and how to read it",
		Long: `Show the nodes of an OPC UA server with their types, values, units and ids, and an
input to put into a configuration. --csv prints a tag file in place of both.
With -c and --input the server of a configured input is looked at, by its security and login.`,
		Example: `  tidemark browse opc.tcp://10.0.3.20:4840 --security none
  tidemark browse opc.tcp://10.0.3.20:4840 --under "nsu=urn:plant;s=Line3" --match "{asset}/{sensor}" --csv
  tidemark browse -c /etc/tidemark/tidemark.yaml --input kepware-3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := browsed(&f, args, file, input)
			if err != nil {
				return err
			}
			view, err := look(cmd.Context(), cfg, &f, depth)
			if err != nil {
				return runtimeError(err)
			}
			switch {
			case asCSV:
				err = printTagFile(cmd.OutOrStdout(), view)
			case asJSON:
				err = printJSON(cmd.OutOrStdout(), view)
			default:
				err = printBrowse(cmd.OutOrStdout(), view)
			}
			return runtimeError(err)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE` with the input")
	cmd.Flags().StringVar(&input, "input", "", "the `NAME` of an input of the configuration")
	cmd.Flags().IntVar(&depth, "depth", browseDepth, "levels to show below the node")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print a tag file of the nodes that --match chooses")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("csv", "json")
	for _, configured := range []string{"security", "user", "pki", "certificate-host"} {
		cmd.MarkFlagsMutuallyExclusive("input", configured)
	}
	return cmd
}

// browsed is the server that the command line names.
func browsed(f *serverFlags, args []string, file, input string) (opcua.Config, error) {
	switch {
	case len(args) == 1 && input == "" && file == "":
		return f.config(args[0])
	case len(args) == 1:
		return opcua.Config{}, errors.New("name an endpoint, or an input with -c and --input, not both")
	case input == "" || file == "":
		return opcua.Config{}, errors.New("which server? browse opc.tcp://HOST:PORT, or -c FILE --input NAME")
	}
	c, err := configs.Load(file)
	if c == nil {
		return opcua.Config{}, err
	}
	i := slices.IndexFunc(c.Inputs, func(in configs.Input) bool { return in.Name == input && in.OPCUA != nil })
	if i < 0 {
		return opcua.Config{}, fmt.Errorf("%s has no OPC UA input %q", file, input)
	}
	f.file = file
	o := c.Inputs[i].OPCUA
	f.security, f.user, f.certificateHost = string(o.Security), o.Login.User, o.CertificateHost
	return gateway.OPCUAConfig(c, &c.Inputs[i]), nil
}

// browseView is what a visit found: a tree, and a rule with what it chooses.
type browseView struct {
	Endpoint string             `json:"endpoint"`
	Under    string             `json:"under"`
	Nodes    []browseNode       `json:"nodes"`
	LeftOut  string             `json:"left_out,omitempty"` // what of the tree is not shown
	Rule     configs.StartOPCUA `json:"rule"`
	Chosen   []opcua.Choice     `json:"chosen"`
	Unread   []opcua.Unread     `json:"unread"`
}

// browseNode is a node as it is shown.
type browseNode struct {
	Path    []string `json:"path"`
	Place   string   `json:"node"`
	Type    string   `json:"type,omitempty"` // empty: no variable
	Value   string   `json:"value,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Range   []string `json:"range,omitempty"`
	Quality string   `json:"quality,omitempty"`
	History bool     `json:"history,omitempty"`
	Unread  string   `json:"unread,omitempty"` // why it is left out
	Remark  string   `json:"remark,omitempty"`
}

// browseDepth is how far down a server's nodes are looked at, where nobody says.
const browseDepth = 10

// lookTime bounds a visit.
const lookTime = 2 * time.Minute

// look visits a server and tries the rule that f has, or one that is proposed.
func look(ctx context.Context, cfg opcua.Config, f *serverFlags, depth int) (*browseView, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	visit, err := opcua.Look(ctx, cfg, newDeskClock(), zerolog.Nop())
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", cfg.Endpoint, err, f.trustIn(err))
	}
	defer visit.Close()
	nodes, cut, err := visit.Tree(ctx, f.under, depth)
	if err != nil {
		return nil, err
	}
	v := &browseView{Endpoint: cfg.Endpoint.String(), Under: f.under, Nodes: make([]browseNode, len(nodes)), LeftOut: cut}
	for i := range nodes {
		v.Nodes[i] = shownNode(&nodes[i])
	}
	v.Rule = configs.StartOPCUA{
		Name: "plant", Endpoint: v.Endpoint, Security: f.security, CertificateHost: f.certificateHost, User: f.user,
		Under: f.under, Match: f.match, Exclude: f.exclude,
	}
	if v.Rule.Match == "" {
		v.Rule.Exclude = append(v.Rule.Exclude, proposeExclude(nodes)...)
		v.Rule.Match = proposeMatch(nodes)
	}
	left := unreadNodes(nodes)
	v.Rule.Exclude = append(v.Rule.Exclude, excludeNodes(nodes, left)...)
	v.Chosen, v.Unread, err = visit.Choose(ctx, []opcua.Nodes{{Under: f.under, Match: v.Rule.Match, Exclude: v.Rule.Exclude}})
	for _, n := range left {
		v.Unread = append(v.Unread, opcua.Unread{Place: n.Place, Reason: "left out: " + n.Unread})
	}
	return v, err
}

// unreadNodes are the plant's variables that cannot be read.
func unreadNodes(nodes []opcua.Node) (left []*opcua.Node) {
	for i := range nodes {
		if n := &nodes[i]; n.Unread != "" && !hidden(n.Path) {
			left = append(left, n)
		}
	}
	return left
}

// excludeNodes leaves out nodes: by their last name where every node of that name is
// one of them, else by their path.
func excludeNodes(nodes []opcua.Node, left []*opcua.Node) (exclude []string) {
	named := func(n *opcua.Node) string { return n.Path[len(n.Path)-1] }
	all, out := map[string]int{}, map[string]int{}
	for i := range nodes {
		if nodes[i].Variable {
			all[named(&nodes[i])]++
		}
	}
	for _, n := range left {
		out[named(n)]++
	}
	for _, n := range left {
		path := n.Path
		if name := named(n); out[name] > 1 && out[name] == all[name] {
			path = []string{"**", name}
		}
		levels := make([]string, len(path))
		for i, level := range path {
			levels[i] = strings.ReplaceAll(level, "/", "*") // a slash would begin another level
		}
		if e := strings.Join(levels, "/"); !slices.Contains(exclude, e) {
			exclude = append(exclude, e)
		}
	}
	return exclude
}

// Servers keep what is about themselves under names that begin with one of these.
const hiddenMarks = "_.$"

// hidden reports whether a node is about the server, and not about the plant.
func hidden(path []string) bool {
	return slices.ContainsFunc(path, func(level string) bool { return strings.ContainsAny(level[:1], hiddenMarks) })
}

// proposeExclude leaves out what is about the server.
func proposeExclude(nodes []opcua.Node) (exclude []string) {
	for _, mark := range strings.Split(hiddenMarks, "") {
		if slices.ContainsFunc(nodes, func(n opcua.Node) bool {
			return slices.ContainsFunc(n.Path, func(level string) bool { return strings.HasPrefix(level, mark) })
		}) {
			exclude = append(exclude, "**/"+mark+"*/**")
		}
	}
	return exclude
}

// proposeMatch names the last level sensor and the one above it asset, at the
// depth of the variables, or at any where they have several.
func proposeMatch(nodes []opcua.Node) string {
	depth := 0
	for _, n := range nodes {
		switch {
		case !n.Variable || len(n.Path) == depth || hidden(n.Path):
		case depth == 0:
			depth = len(n.Path)
		default:
			return "**/{asset}/{sensor}"
		}
	}
	switch depth {
	case 0, 1:
		return "{sensor}"
	}
	return strings.Repeat("*/", depth-2) + "{asset}/{sensor}"
}

func shownNode(n *opcua.Node) browseNode {
	out := browseNode{Path: n.Path, Place: n.Place, Type: n.Type, Unit: n.Unit, History: n.History, Unread: n.Unread, Remark: n.Remark}
	if !n.Variable {
		return out
	}
	if out.Type == "" {
		out.Type = "?"
	}
	switch {
	case n.Parts > 1:
		out.Value = count(n.Parts, "part")
	case n.Parts == 1:
		out.Value = string(n.Value.AppendJSON(nil))
		out.Quality = n.Level.String()
	}
	if n.Span != nil {
		out.Range = []string{fmt.Sprint(n.Span.Low), fmt.Sprint(n.Span.High)}
	}
	return out
}

// deskClock is the clock of this host, for looking and not for reading.
type deskClock struct{ *clock.Clock }

func newDeskClock() deskClock {
	return deskClock{clock.New(clock.Config{Trust: clock.TrustLocal}, clock.Options{Log: zerolog.Nop()})}
}

// ObserveServer implements opcua.Clock.
func (deskClock) ObserveServer(reading.ServerExchange) {}

package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/gateway"
	"tidemark/reading"
)

func newEvidenceCmd() *cobra.Command {
	var from journalFlags
	begin, end := momentFlag{reading.NoTime}, momentFlag{reading.NoTime}
	var kinds []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "Show what is in no result or reached no broker, and is kept to be looked up",
		Long: `Show what the running gateway, or a store at rest, keeps to be looked up later, the
newest last, and what to do about it:

  late           readings that came after their window was closed
  quarantined    readings whose times could not be trusted, or a range of them
  rejected       what was received with an identity and became no reading
  undeliverable  records that an uplink's broker would not take
  unsent         readings that an uplink's broker would not take

With --json each line is one piece: kind, kept_at, record, and of what was not taken
uplink and reason. A record is as it went upstream, or would have gone. It is kept
for store.retain, as far as there is room. --from and --to are times of keeping.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sel := gateway.EvidenceSelection{FromMS: begin.ms, ToMS: end.ms}
			for _, k := range kinds {
				if err := oneOf("--kind", k, evidenceKinds()); err != nil {
					return err
				}
				sel.Kinds = append(sel.Kinds, gateway.EvidenceKind(k))
			}
			out, done, err := createOutput("", cmd.OutOrStdout())
			if err != nil {
				return err
			}
			show := evidenceView{out, asJSON, map[gateway.EvidenceKind]uint64{}}
			err = from.with(cmd.Context(), func(j gateway.Journal) error {
				return gateway.ReadEvidence(cmd.Context(), j, sel, show.piece)
			})
			if err == nil && !asJSON {
				err = runtimeError(printEvidenceTotals(out, show.counts))
			}
			return done(err)
		},
	}
	from.add(cmd)
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only of this `KIND`: "+strings.Join(evidenceKinds(), ", "))
	cmd.Flags().Var(&begin, "from", "leave out what was kept before")
	cmd.Flags().Var(&end, "to", "leave out what was kept then or later")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func evidenceKinds() (names []string) {
	for _, k := range gateway.EvidenceKinds() {
		names = append(names, string(k))
	}
	return names
}

// evidenceView prints evidence as it comes, and counts it.
type evidenceView struct {
	w      io.Writer
	asJSON bool
	counts map[gateway.EvidenceKind]uint64
}

func (v *evidenceView) piece(e *gateway.Evidence) error {
	if !v.asJSON {
		v.counts[e.Kind]++
		return runtimeError(printEvidence(v.w, e))
	}
	enc := json.NewEncoder(v.w)
	enc.SetEscapeHTML(false)
	return runtimeError(enc.Encode(e))
}

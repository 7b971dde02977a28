package opcua

import (
	"context"
	"fmt"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// monitored is an item as a subscription watches it. Its client handle is its
// index in the plan.
type monitored struct {
	item
	watched  bool          // the server watches it
	sampling time.Duration // as revised
	// fresh: its next notification is the first, and tells the state of things
	// (SEMANTICS H3).
	fresh bool
	// echo: its next notification may be its last one again, which servers send when
	// a session or subscription is taken up.
	echo bool
	last said
	// failed says why it is not watched; remark what is wrong though it is.
	failed, remark string
}

// said is what tells a notification from the one before.
type said struct {
	sourceNS int64
	status   uint32
	value    reading.Value
}

// subscription is one at the server: a stretch of the plan, its numbering and its
// health. It is the Run goroutine's.
type subscription struct {
	id    uint32 // 0: to be made
	index int    // it watches plan[index·per : (index+1)·per]
	pace  pace
	seq   sequence

	delivered uint32 // number of the last message handed over; 0: none
	bornNS    int64  // when it was made, by the server's clock
	publishNS int64  // the newest publish time, by the server's clock
	heardNS   int64  // boot time of the last sign of life
	holeNS    int64  // boot time since when a message is missing; 0: none is
	settled   bool   // all that waited while we were away has come
	// seenNS is until when nothing is missing, by the server's clock; 0: it never
	// spoke. It stands still while history is fetched.
	seenNS  int64
	filling bool
	hole    hole // that is being filled
	// coveredNS is the end of the last stretch that history was asked for, by the
	// server's clock; 0: none was.
	coveredNS int64
	// shallow: the server's queues for it cannot say that they overflowed.
	shallow    bool
	overflowed bool          // since the connection was taken up
	doubts     []reading.Gap // what is a gap only if a queue overflowed

	reason  string // why it is to be made
	tries   int
	retryNS int64 // boot time before which it is not tried again
}

// createSubscription makes a subscription at the server and has it watch items.
func (r *Reader) createSubscription(ctx context.Context, c caller, sub *subscription) error {
	w := wish(r.cfg.Publishing)
	resp, err := ask[*ua.CreateSubscriptionResponse](ctx, c, &ua.CreateSubscriptionRequest{
		RequestedPublishingInterval: float64(w.publishing) / float64(time.Millisecond),
		RequestedMaxKeepAliveCount:  w.keepAlive, RequestedLifetimeCount: w.lifetime,
		MaxNotificationsPerPublish: perNotification, PublishingEnabled: true,
	})
	if err != nil {
		return err
	}
	sub.id, sub.reason, sub.bornNS = resp.SubscriptionID, "", wallNS(resp.ResponseHeader.Timestamp)
	sub.pace = pace{millis(resp.RevisedPublishingInterval), resp.RevisedMaxKeepAliveCount, resp.RevisedLifetimeCount}
	sub.seq, sub.delivered, sub.holeNS, sub.settled = newSequence(), 0, 0, false
	sub.shallow = false
	for _, m := range r.part(sub) {
		m.watched, m.failed, m.remark = false, "", ""
	}
	if err := r.monitor(ctx, c, sub); err != nil {
		deleteSubscriptions(ctx, c, []uint32{sub.id})
		sub.id = 0
		return err
	}
	sub.heardNS = r.clk.Now().BootNS
	return nil
}

// part returns the stretch of the plan that a subscription watches.
func (r *Reader) part(sub *subscription) []*monitored {
	return r.plan[sub.index*r.per : min((sub.index+1)*r.per, len(r.plan))]
}

// monitor has a subscription watch what of its part it does not watch yet. An item
// that the server refuses says so and stops nothing; an error is one of the call
// itself.
func (r *Reader) monitor(ctx context.Context, c caller, sub *subscription) error {
	var todo []*monitored
	var handles []uint32
	for i, m := range r.part(sub) {
		if !m.watched {
			todo = append(todo, m)
			handles = append(handles, uint32(sub.index*r.per+i))
		}
	}
	for len(todo) > 0 {
		n := min(len(todo), r.itemsPerCall)
		if err := r.monitorSome(ctx, c, sub, todo[:n], handles[:n]); err != nil {
			return err
		}
		todo, handles = todo[n:], handles[n:]
	}
	return nil
}

func (r *Reader) monitorSome(ctx context.Context, c caller, sub *subscription, items []*monitored, handles []uint32) error {
	reqs := make([]*ua.MonitoredItemCreateRequest, len(items))
	for i, m := range items {
		reqs[i] = r.wanted(m, handles[i], sub.pace)
	}
	results, err := createItems(ctx, c, sub.id, reqs)
	if err != nil {
		return err
	}
	var again []*ua.MonitoredItemCreateRequest
	var of []*monitored
	for i, res := range results {
		if m := items[i]; reqs[i].RequestedParameters.Filter != nil && refusesFilter(res.StatusCode) {
			reqs[i].RequestedParameters.Filter = nil
			again, of = append(again, reqs[i]), append(of, m)
			m.remark = fmt.Sprintf("the server refuses its deadband or trigger (%s), so each change of status or value is taken: a deadband in percent needs the node's EURange, and any deadband a number", statusName(res.StatusCode))
			continue
		}
		sub.created(items[i], res)
	}
	if len(again) == 0 {
		return nil
	}
	if results, err = createItems(ctx, c, sub.id, again); err != nil {
		return err
	}
	for i, res := range results {
		sub.created(of[i], res)
	}
	return nil
}

// wanted is how an item is asked for.
func (r *Reader) wanted(m *monitored, handle uint32, p pace) *ua.MonitoredItemCreateRequest {
	req := &ua.MonitoredItemCreateRequest{
		ItemToMonitor:  &ua.ReadValueID{NodeID: m.node, AttributeID: ua.AttributeIDValue, DataEncoding: &ua.QualifiedName{}},
		MonitoringMode: ua.MonitoringModeReporting,
		RequestedParameters: &ua.MonitoringParameters{
			ClientHandle: handle, SamplingInterval: float64(r.cfg.Sampling) / float64(time.Millisecond),
			QueueSize: queueFor(r.cfg.Sampling, p.publishing), DiscardOldest: true,
		},
	}
	filter := ua.DataChangeFilter{Trigger: m.trigger.code()}
	switch d := m.deadband; {
	case d.Percent > 0:
		filter.DeadbandType, filter.DeadbandValue = uint32(ua.DeadbandTypePercent), d.Percent
	case d.Absolute > 0:
		filter.DeadbandType, filter.DeadbandValue = uint32(ua.DeadbandTypeAbsolute), d.Absolute
	case filter.Trigger == ua.DataChangeTriggerStatusValue:
		return req // the same without the risk that a server knows no filters
	}
	req.RequestedParameters.Filter = ua.NewExtensionObject(&filter)
	return req
}

func (t Trigger) code() ua.DataChangeTrigger {
	switch t {
	case StatusOnly:
		return ua.DataChangeTriggerStatus
	case StatusValueTimestamp:
		return ua.DataChangeTriggerStatusValueTimestamp
	}
	return ua.DataChangeTriggerStatusValue
}

// created takes in what the server made of the request.
func (sub *subscription) created(m *monitored, res *ua.MonitoredItemCreateResult) {
	if severity(res.StatusCode) == bad {
		m.failed = "the server does not watch it: " + statusName(res.StatusCode)
		return
	}
	m.watched, m.failed, m.fresh, m.echo = true, "", true, false
	m.sampling = millis(res.RevisedSamplingInterval)
	sub.shallow = sub.shallow || res.RevisedQueueSize < 2
	if least := leastQueue(m.sampling, sub.pace.publishing); res.RevisedQueueSize < least {
		m.remark = fmt.Sprintf("the server queues %d values where %d come between two notifications: lower publishing or raise sampling", res.RevisedQueueSize, least)
	}
}

func createItems(ctx context.Context, c caller, sub uint32, reqs []*ua.MonitoredItemCreateRequest) ([]*ua.MonitoredItemCreateResult, error) {
	resp, err := ask[*ua.CreateMonitoredItemsResponse](ctx, c, &ua.CreateMonitoredItemsRequest{
		SubscriptionID: sub, TimestampsToReturn: ua.TimestampsToReturnBoth, ItemsToCreate: reqs,
	})
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != len(reqs) {
		return nil, wrongCount("creation of monitored items", len(reqs), len(resp.Results))
	}
	return resp.Results, nil
}

func refusesFilter(s ua.StatusCode) bool {
	switch s {
	case ua.StatusBadMonitoredItemFilterUnsupported, ua.StatusBadMonitoredItemFilterInvalid, ua.StatusBadFilterNotAllowed,
		ua.StatusBadDeadbandFilterInvalid:
		return true
	}
	return false
}

// republish asks for a message that did not arrive. One that the server does not
// have is BadMessageNotAvailable, also where it answers with an empty message
// instead, as asyncua does.
func republish(ctx context.Context, c caller, sub uint32, seq uint32) (*ua.NotificationMessage, error) {
	resp, err := ask[*ua.RepublishResponse](ctx, c, &ua.RepublishRequest{SubscriptionID: sub, RetransmitSequenceNumber: seq})
	if err != nil {
		return nil, err
	}
	nm := resp.NotificationMessage
	if nm == nil || nm.SequenceNumber != seq || len(nm.NotificationData) == 0 {
		return nil, ua.StatusBadMessageNotAvailable
	}
	return nm, nil
}

// transfer takes subscriptions over from another session. It returns what the
// server says of each.
func transfer(ctx context.Context, c caller, ids []uint32) ([]*ua.TransferResult, error) {
	resp, err := ask[*ua.TransferSubscriptionsResponse](ctx, c, &ua.TransferSubscriptionsRequest{SubscriptionIDs: ids, SendInitialValues: false})
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != len(ids) {
		return nil, wrongCount("transfer", len(ids), len(resp.Results))
	}
	return resp.Results, nil
}

// deleteSubscriptions frees what the server holds for us. That it may be gone
// already is no error.
func deleteSubscriptions(ctx context.Context, c caller, ids []uint32) {
	if len(ids) > 0 {
		_, _ = c.call(ctx, &ua.DeleteSubscriptionsRequest{SubscriptionIDs: ids})
	}
}

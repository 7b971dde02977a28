package sim

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/server/attrs"
	"github.com/gopcua/opcua/ua"
)

// ControllerURI is the namespace of a controller's nodes.
const ControllerURI = "urn:tidemark:demo:controller"

// Controller is a machine's controller with an OPC UA server in it, on a loopback
// port, without security: a kiln whose temperature and power change once a
// second and whose setpoint never does.
type Controller struct {
	held net.Listener // keeps the port until the server takes it
	now  func() time.Time
	srv  *server.Server
	tags []*ua.NodeID // those that change
}

// Kiln is what the controller controls, as the browse path of its temperature
// has it: Objects/Kilns/{asset}/{sensor}.
func Kiln() Machine {
	return Machine{Asset: "kiln-8", Sensor: "temperature", Habit: "speaks OPC UA"}
}

// NewController binds a loopback port. Clients are served a moment after Run is
// called: the library first reads the specification's nodes.
func NewController(now func() time.Time) (*Controller, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot bind a port for the controller: %w", err)
	}
	return &Controller{held: l, now: now}, nil
}

// URL is the server's endpoint.
func (c *Controller) URL() string { return "opc.tcp://" + c.held.Addr().String() }

// close frees the port of a controller that never ran.
func (c *Controller) close() { c.held.Close() }

// Run serves until ctx ends; the values change until hushed is closed.
func (c *Controller) Run(ctx context.Context, hushed <-chan struct{}) error {
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("controller on %s: %w", c.URL(), err)
	}
	defer c.srv.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hushed:
			<-ctx.Done()
			return nil
		case <-tick.C:
			for _, t := range c.tags {
				c.srv.ChangeNotification(t)
			}
		}
	}
}

func (c *Controller) start(ctx context.Context) error {
	// The library greets on the standard logger.
	said := log.Writer()
	log.SetOutput(io.Discard)
	defer log.SetOutput(said)
	c.srv = server.New(
		server.EndPoint("127.0.0.1", c.held.Addr().(*net.TCPAddr).Port), server.EnableSecurity("None", ua.MessageSecurityModeNone),
		server.EnableAuthMode(ua.UserTokenTypeAnonymous), server.ServerName("kiln controller"),
	)
	c.furnish()
	c.held.Close()
	return c.srv.Start(ctx)
}

// furnish makes the nodes.
func (c *Controller) furnish() {
	ns := server.NewNodeNameSpace(c.srv, ControllerURI)
	kilns, kiln := object(ns, "Kilns"), object(ns, Kiln().Asset)
	c.srv.Node(ua.NewTwoByteNodeID(id.ObjectsFolder)).AddRef(kilns, id.Organizes, true)
	kilns.AddRef(kiln, id.Organizes, true)
	const celsius, kilowatt = 4408652, 4937556 // CEL and KWT of UNECE Recommendation 20
	c.variable(ns, kiln, "temperature", celsius, func(sec float64) float64 { return 850 + 12*math.Sin(sec/9) })
	c.variable(ns, kiln, "power", kilowatt, func(sec float64) float64 { return 40 + 6*math.Cos(sec/9) })
	c.variable(ns, kiln, "setpoint", celsius, nil)
}

func object(ns *server.NodeNameSpace, name string) *server.Node {
	return ns.AddNode(server.NewNode(ua.NewStringNodeID(ns.ID(), name), map[ua.AttributeID]*ua.DataValue{
		ua.AttributeIDNodeClass:   server.DataValueFromValue(uint32(ua.NodeClassObject)),
		ua.AttributeIDBrowseName:  server.DataValueFromValue(attrs.BrowseName(name)),
		ua.AttributeIDDisplayName: server.DataValueFromValue(attrs.DisplayName(name, name)),
	}, nil, nil))
}

// variable makes a variable of parent whose value follows from the second; without
// value it is a setpoint, which stays as it was when the kiln was switched on.
func (c *Controller) variable(ns *server.NodeNameSpace, parent *server.Node, name string, unitID int32, value func(sec float64) float64) {
	switchedOn := c.now()
	n := server.NewVariableNode(ua.NewStringNodeID(ns.ID(), Kiln().Asset+"."+name), name, func() *ua.DataValue {
		at, v := switchedOn, 850.0
		if value != nil {
			at = c.now().Truncate(time.Second)
			v = math.Round(10*value(float64(at.Unix()%1e6))) / 10
		}
		return &ua.DataValue{
			EncodingMask: ua.DataValueValue | ua.DataValueSourceTimestamp | ua.DataValueServerTimestamp,
			Value:        ua.MustVariant(v), SourceTimestamp: at, ServerTimestamp: c.now(),
		}
	})
	if err := n.SetAttribute(ua.AttributeIDDataType, server.DataValueFromValue(ua.NewNumericNodeID(0, id.Double))); err != nil {
		panic(err) // a variable has a type
	}
	units := server.NewVariableNode(ua.NewStringNodeID(ns.ID(), Kiln().Asset+"."+name+".EngineeringUnits"), "EngineeringUnits", ua.NewExtensionObject(&ua.EUInformation{
		NamespaceURI: "http://www.opcfoundation.org/UA/units/un/cefact", UnitID: unitID, DisplayName: ua.NewLocalizedText(""), Description: ua.NewLocalizedText(""),
	}))
	parent.AddRef(ns.AddNode(n), id.HasComponent, true)
	n.AddRef(ns.AddNode(units), id.HasProperty, true)
	if value != nil {
		c.tags = append(c.tags, n.ID())
	}
}

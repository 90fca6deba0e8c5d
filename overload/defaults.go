package overload

// Names of the profiles that are there from the start.
const (
	defaultManagement = "default_management"
	defaultDiameter   = "default_diameter"
	// defaultPercentage is the Diameter profile with percentages.
	defaultPercentage = "default_diameter_percentage"
	defaultProfile    = "default"
)

// Default is every setting at its default. Nothing of it sheds load until it
// is enabled.
func Default() Settings {
	congestion := func(profile string) ServiceCongestion {
		return ServiceCongestion{StateCalculationInterval: 200, StateChangeSampleCount: 5, ThresholdProfile: profile, LoadSheddingProfile: profile}
	}
	return Settings{
		Congestion: Congestion{Management: congestion(defaultManagement), Diameter: congestion(defaultDiameter)},
		Thresholds: []ThresholdProfile{
			{defaultManagement, []Threshold{{Danger, 75, 175, 0}, {CongestionL1, 80, 200, 0}, {CongestionL2, 85, 225, 0}, {Congested, 90, 250, 0}}},
			{defaultDiameter, []Threshold{{Danger, 60, 6300, 0}, {CongestionL1, 70, 7200, 0}, {CongestionL2, 75, 8100, 0}, {Congested, 80, 9000, 0}}},
		},
		Shedding: []SheddingProfile{
			{Name: defaultManagement, Rules: []SheddingRule{{Danger, 30, 31, 0}, {CongestionL1, 24, 31, 0}, {CongestionL2, 18, 31, 0}, {Congested, 14, 31, 0}}},
			{Name: defaultDiameter, Rules: []SheddingRule{{Danger, 27, 31, 0}, {CongestionL1, 19, 31, 0}, {CongestionL2, 17, 31, 0}, {Congested, 15, 31, 0}}},
			{Name: defaultPercentage, Rules: []SheddingRule{
				{Danger, 27, 31, 50},
				{CongestionL1, 19, 26, 50}, {CongestionL1, 27, 31, 75},
				{CongestionL2, 17, 18, 50}, {CongestionL2, 19, 26, 75}, {CongestionL2, 27, 31, 100},
				{Congested, 15, 31, 100},
			}},
		},
		Management: Management{Advanced: Advanced{
			Get: 15, Post: 20, Patch: 20, Delete: 16, Subscription: 20, ResponseCode: 503, Cause: "NF_CONGESTION", RetryAfter: 1,
		}},
		MessageProfiles: []MessageProfile{},
		Diameter:        Diameter{MessagePriorityProfile: defaultProfile, LoadSheddingProfile: defaultProfile, DefaultPriority: 20, ResponseCode: 3004},
		RxPriorities:    []RxPriorityProfile{defaultRxPriorities()},
		RxShedding: []RxSheddingProfile{{Name: defaultProfile, Type: "Overload Control", Rules: []RxShed{
			{"L1", 13, 0, "DIAMETER_TOO_BUSY"}, {"L2", 11, 0, "DIAMETER_TOO_BUSY"}, {"L3", 6, 0, "DIAMETER_TOO_BUSY"},
		}}},
		Levels:        Levels{Management: defaultProfile, Diameter: defaultProfile, SamplingPeriod: 1000, FailureCodes: []int{}},
		LevelProfiles: []LevelProfile{defaultLevels()},
		PolicyMapping: PolicyMapping{Policy: defaultProfile},
		Policies: []DiscardPolicy{{Name: defaultProfile, Scheme: "PriorityBased", Policies: []Discard{
			{Level: "L1", Value: 24}, {Level: "L2", Value: 18}, {Level: "L3", Value: 14},
		}}},
		ErrorCodes:   []ErrorCodeProfile{},
		RateLimiting: RateLimiting{SamplingPeriod: 1000},
		Routes: []Route{
			{ID: "bsf_management_register", Path: "pcfBindings", Method: "POST", PriorityBound: 24},
			{ID: "bsf_management_deregister", Path: "pcfBindings", Method: "DELETE", PriorityBound: 18},
			{ID: "bsf_management_discovery", Path: "pcfBindings", Method: "GET", PriorityBound: 24},
		},
		Protection: Protection{MonitoringInterval: 100, StateChangeSampleCount: 10, States: []ProtectionState{
			{Name: "DoC", CPU: 85, Memory: 80, Pending: 1000, DiscardPriority: 24},
			{Name: "Congested", CPU: 95, Memory: 90, Pending: 5000, DiscardPriority: 1},
		}},
		Shutdown: Shutdown{Enabled: true, State: OperationNormal, ResponseCode: 3004},
		Adaptive: Adaptive{
			Management: AdaptiveService{Pending: 256, Backlog: 50, Interval: 100},
			Diameter:   AdaptiveService{Pending: 9000, Backlog: 50, Interval: 100},
		},
		LoadProfiles:    []LoadProfile{{Name: defaultProfile, CalcFrequency: 10, Interval: 300, ChangeFactor: 5}},
		ExcludeProfiles: []ExcludeProfile{{Name: defaultProfile, DNNs: []string{}, PriorityUpto: 5, Procedures: []string{"session-delete"}}},
		NodeProfiles: []NodeProfile{{
			Name: defaultProfile, Exclude: defaultProfile, PeerExclude: defaultProfile, ToleranceMin: 80, ToleranceMax: 95, ReductionMin: 10, ReductionMax: 100,
			Interval: 300, ChangeFactor: 5, Validity: 600, PeerAction: "throttle", Group1: 50, Group2: 50,
		}},
	}
}

// defaultRxPriorities are the recommended rules (13, 7 and 11).
func defaultRxPriorities() RxPriorityProfile {
	aar := func(name, requestType string, priority int) RxRule {
		return RxRule{name, priority, 1, true, RxConditions{"Rx", "AAR", []RxCondition{{Name: "Rx-Request-Type", Types: []string{requestType}}}}}
	}
	return RxPriorityProfile{defaultProfile, []RxRule{
		aar("Rx_AAR_I", "INITIAL_REQUEST", 13),
		{"Rx_STR", 7, 1, true, RxConditions{"Rx", "STR", []RxCondition{}}},
		aar("Rx_AAR_U", "UPDATE_REQUEST", 11),
	}}
}

// defaultLevels are the recommended thresholds of the service.
func defaultLevels() LevelProfile {
	return LevelProfile{Name: defaultProfile, Levels: []LevelThreshold{
		{"L1", Resources{44, 1260, 420, 0}, Resources{41, 1050, 252, 0}},
		{"L2", Resources{49, 1575, 840, 0}, Resources{47, 1470, 672, 0}},
		{"L3", Resources{52, 1890, 1260, 0}, Resources{50, 1785, 1008, 0}},
	}}
}

// derived are the levels of a profile: those that it has, or the shares of its
// capacity (C, P and T).
func (p *LevelProfile) derived() []LevelThreshold {
	if len(p.Levels) > 0 {
		return p.Levels
	}
	at := func(cpu, pending, failures int) Resources {
		c := p.Capacity
		return Resources{CPU: c.CPU * cpu / 100, Pending: c.Pending * pending / 100, Failures: c.TPS * failures / 100}
	}
	return []LevelThreshold{
		{"L1", at(80, 60, 5), at(75, 50, 3)},
		{"L2", at(90, 75, 10), at(85, 70, 8)},
		{"L3", at(95, 90, 15), at(91, 85, 12)},
	}
}

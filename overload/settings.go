package overload

// Settings are all runtime settings of the module. Each field is a resource of
// the configuration API: its path is in the tag "path", and for a list the
// member that names an element in the tag "key". The tags "range" and "seed"
// say which values are allowed and which part of the feature description a
// setting follows, and "default" what a member of a new element is when it is
// not given; the check and the documentation both read them.
type Settings struct {
	Congestion      Congestion          `json:"congestionControl" koanf:"congestionControl" path:"oc:congestionControl/settings" seed:"3.4, 3.26"`
	Thresholds      []ThresholdProfile  `json:"thresholdProfiles" koanf:"thresholdProfiles" path:"oc:congestionControl/thresholds" key:"name" seed:"3.4, 3.26" usage:"when a service is how congested"`
	Shedding        []SheddingProfile   `json:"loadSheddingRules" koanf:"loadSheddingRules" path:"oc:congestionControl/loadSheddingRules" key:"name" seed:"3.4, 3.26" usage:"what a service sheds in which congestion state"`
	Management      Management          `json:"managementService" koanf:"managementService" path:"oc:services/managementservice" seed:"3.1, 3.4, 3.5"`
	MessageProfiles []MessageProfile    `json:"messageProfiles" koanf:"messageProfiles" path:"oc:services/common/messageProfiles" key:"messageProfileName" seed:"3.1" usage:"priorities of messages on the service-based interface"`
	Diameter        Diameter            `json:"diameterSettings" koanf:"diameterSettings" path:"oc:diameter/settings" seed:"3.26, 3.27.1"`
	RxPriorities    []RxPriorityProfile `json:"diameterMessagePriorityProfiles" koanf:"diameterMessagePriorityProfiles" path:"oc:diameter/messagepriorityprofiles" key:"name" seed:"3.26, 3.27.1" usage:"priorities of Diameter requests"`
	RxShedding      []RxSheddingProfile `json:"diameterLoadSheddingProfiles" koanf:"diameterLoadSheddingProfiles" path:"oc:diameter/loadsheddingprofiles" key:"name" seed:"3.27.1" usage:"what the Rx gateway sheds at which overload level"`
	Levels          Levels              `json:"overloadLevelThreshold" koanf:"overloadLevelThreshold" path:"oc:overloadLevelThreshold" seed:"3.27"`
	LevelProfiles   []LevelProfile      `json:"overloadLevelThresholdProfiles" koanf:"overloadLevelThresholdProfiles" path:"oc:overloadLevelThresholdProfiles" key:"name" seed:"3.27" usage:"onset and abatement of the overload levels"`
	PolicyMapping   PolicyMapping       `json:"ocPolicyMapping" koanf:"ocPolicyMapping" path:"igw:ocpolicymapping" seed:"3.27.2"`
	Policies        []DiscardPolicy     `json:"ocDiscardPolicies" koanf:"ocDiscardPolicies" path:"igw:ocdiscardpolicies" key:"name" seed:"3.27.2" usage:"what the service-based interface sheds at which overload level"`
	ErrorCodes      []ErrorCodeProfile  `json:"errorCodeProfiles" koanf:"errorCodeProfiles" path:"igw:errorcodeprofiles" key:"name" seed:"3.5, 3.27.2" usage:"answers to requests that are refused"`
	RateLimiting    RateLimiting        `json:"routeLevelRateLimiting" koanf:"routeLevelRateLimiting" path:"igw:routelevelratelimiting" seed:"3.28"`
	Routes          []Route             `json:"routesConfiguration" koanf:"routesConfiguration" path:"igw:routesconfiguration" key:"id" seed:"3.28" usage:"rates of the routes"`
	Protection      Protection          `json:"podProtection" koanf:"podProtection" path:"igw:podprotection" seed:"3.29"`
	Shutdown        Shutdown            `json:"controlledShutdown" koanf:"controlledShutdown" path:"oc:controlledShutdown" seed:"3.39"`
	Adaptive        Adaptive            `json:"adaptiveShedding" koanf:"adaptiveShedding" path:"oc:adaptiveShedding" seed:"3.27"`
	LoadProfiles    []LoadProfile       `json:"loadProfiles" koanf:"loadProfiles" path:"oc:loadProfiles" key:"name" seed:"SMF guide" usage:"how the load of the node is calculated and told"`
	ExcludeProfiles []ExcludeProfile    `json:"overloadExcludeProfiles" koanf:"overloadExcludeProfiles" path:"oc:overloadExcludeProfiles" key:"name" seed:"SMF guide" usage:"requests that self-protection and throttling leave alone"`
	NodeProfiles    []NodeProfile       `json:"overloadProfiles" koanf:"overloadProfiles" path:"oc:overloadProfiles" key:"name" seed:"SMF guide" usage:"from which load on the node is overloaded, and what it then does"`
	Node            Node                `json:"bsfProfile" koanf:"bsfProfile" path:"oc:bsfProfile" seed:"SMF guide"`
}

// Congestion switches congestion control of the two services.
type Congestion struct {
	Management ServiceCongestion `json:"management" koanf:"management"`
	Diameter   ServiceCongestion `json:"diameter" koanf:"diameter"`
}

// ServiceCongestion is the congestion control of a service.
type ServiceCongestion struct {
	Enabled bool `json:"enabled" koanf:"enabled" usage:"shed load by congestion state"`
	// StateCalculationInterval is in milliseconds.
	StateCalculationInterval int `json:"stateCalculationInterval" koanf:"stateCalculationInterval" range:"50..2147483647" usage:"time between two samples, in milliseconds"`
	// StateChangeSampleCount is how many samples in a row change the state.
	StateChangeSampleCount int    `json:"stateChangeSampleCount" koanf:"stateChangeSampleCount" range:"1..2147483647" usage:"samples in a row after which the state changes"`
	ThresholdProfile       string `json:"thresholdProfile" koanf:"thresholdProfile" usage:"name of the active threshold profile"`
	LoadSheddingProfile    string `json:"loadSheddingProfile" koanf:"loadSheddingProfile" usage:"name of the active load shedding profile"`
}

// ThresholdProfile says from which load on a service is in which congestion
// state. Every state must have thresholds that are higher than those of the
// state before it.
type ThresholdProfile struct {
	Name   string      `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	States []Threshold `json:"states" koanf:"states" usage:"a row for each state"`
}

// Threshold is what a congestion state begins with: the first resource above
// its value decides.
type Threshold struct {
	State Level `json:"state" koanf:"state" range:"DANGER_OF_CONGESTION|CONGESTION_L1|CONGESTION_L2|CONGESTED" usage:"congestion state"`
	// CPU is in percent of what the process may use, Memory of its limit; 0
	// does not look at the resource.
	CPU     int `json:"cpu" koanf:"cpu" range:"0..100" usage:"CPU in percent of what the process may use; 0 for none"`
	Pending int `json:"queue" koanf:"queue" range:"0..2147483647" usage:"pending requests; 0 for none"`
	Memory  int `json:"memory" koanf:"memory" range:"0..100" usage:"memory in percent of its limit; 0 for none"`
}

// SheddingProfile says which requests are refused in which congestion state.
type SheddingProfile struct {
	Name  string         `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	Rules []SheddingRule `json:"rules" koanf:"rules" usage:"a row for each state, or for each state and range of priorities"`
	// ErrorCodeProfile names the answer on the service-based interface.
	ErrorCodeProfile string `json:"errorCodeProfile" koanf:"errorCodeProfile" usage:"answer on the service-based interface; that of managementService when empty"`
}

// SheddingRule refuses requests of a priority of DiscardPriority or more, or a
// share of those within a range.
type SheddingRule struct {
	State           Level `json:"state" koanf:"state" range:"DANGER_OF_CONGESTION|CONGESTION_L1|CONGESTION_L2|CONGESTED" usage:"congestion state"`
	DiscardPriority int   `json:"discardPriority" koanf:"discardPriority" range:"0..31" usage:"requests of this priority and of lower ones (larger numbers) are refused"`
	// To and Percentage, when Percentage is not 0, refuse that share of the
	// requests of a priority from DiscardPriority to To.
	To         int `json:"discardPriorityTo" koanf:"discardPriorityTo" range:"0..31" usage:"end of the range of priorities; 31 when percentage is 0"`
	Percentage int `json:"discardPercentage" koanf:"discardPercentage" range:"0..100" usage:"share of the requests that is refused; 0 is all of them"`
}

// Management is what concerns the service-based interface as a whole.
type Management struct {
	MessagePriority MessagePriority `json:"messagePriority" koanf:"messagePriority"`
	Advanced        Advanced        `json:"advancedSettings" koanf:"advancedSettings"`
}

// MessagePriority selects the message profile.
type MessagePriority struct {
	Profile string `json:"messagePriorityProfile" koanf:"messagePriorityProfile" usage:"name of the active message profile; none when empty"`
}

// Advanced has the priorities by kind of request and the answer to requests
// that are shed.
type Advanced struct {
	Get          int `json:"BSF_MGMT_GET_PCF_BINDING_REQUEST_PRIORITY" koanf:"BSF_MGMT_GET_PCF_BINDING_REQUEST_PRIORITY" range:"0..31" usage:"priority of discoveries that bring none"`
	Post         int `json:"BSF_MGMT_POST_PCF_BINDING_REQUEST_PRIORITY" koanf:"BSF_MGMT_POST_PCF_BINDING_REQUEST_PRIORITY" range:"0..31" usage:"priority of registrations that bring none"`
	Patch        int `json:"BSF_MGMT_PATCH_PCF_BINDING_REQUEST_PRIORITY" koanf:"BSF_MGMT_PATCH_PCF_BINDING_REQUEST_PRIORITY" range:"0..31" usage:"priority of updates that bring none"`
	Delete       int `json:"BSF_MGMT_DELETE_PCF_BINDING_REQUEST_PRIORITY" koanf:"BSF_MGMT_DELETE_PCF_BINDING_REQUEST_PRIORITY" range:"0..31" usage:"priority of deregistrations that bring none"`
	Subscription int `json:"BSF_MGMT_SUBSCRIPTION_REQUEST_PRIORITY" koanf:"BSF_MGMT_SUBSCRIPTION_REQUEST_PRIORITY" range:"0..31" usage:"priority of requests about subscriptions that bring none"`
	// ResponseCode outside the table of supported codes counts as 503.
	ResponseCode int    `json:"CONGESTION_RESPONSE_CODE" koanf:"CONGESTION_RESPONSE_CODE" range:"0..999999" usage:"status of the answer to a request that is shed; 503 for one that is not supported"`
	Cause        string `json:"CONGESTION_RESPONSE_CAUSE" koanf:"CONGESTION_RESPONSE_CAUSE" usage:"cause of that answer"`
	RetryAfter   int    `json:"CONGESTION_RETRY_AFTER" koanf:"CONGESTION_RETRY_AFTER" range:"0..86400" usage:"its Retry-After in seconds; none for 0"`
}

// Diameter is what concerns the Rx gateway as a whole.
type Diameter struct {
	MessagePriorityProfile string `json:"messagePriorityProfile" koanf:"messagePriorityProfile" usage:"name of the active Diameter message priority profile; none when empty"`
	LoadSheddingProfile    string `json:"loadSheddingProfile" koanf:"loadSheddingProfile" usage:"name of the active overload load shedding profile; none when empty"`
	DefaultPriority        int    `json:"defaultPriority" koanf:"defaultPriority" range:"0..31" usage:"priority of requests that no rule covers and that have no DRMP"`
	// ResponseCode outside 3xxx, 4xxx and 5xxx counts as 3004.
	ResponseCode int `json:"CONGESTION_DIAMETER_RESPONSE_CODE" koanf:"CONGESTION_DIAMETER_RESPONSE_CODE" range:"0..999999" usage:"result of the answer to a request that is shed; 3004 for one that is not supported"`
	VendorID     int `json:"CONGESTION_DIAMETER_VENDOR_ID" koanf:"CONGESTION_DIAMETER_VENDOR_ID" range:"0..4294967295" usage:"vendor of that result, which then is an Experimental-Result; 0 for a Result-Code"`
}

// RxPriorityProfile gives Diameter requests their priority.
type RxPriorityProfile struct {
	Name  string   `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	Rules []RxRule `json:"priorityRules" koanf:"priorityRules" usage:"the rule with the lowest rulePriority that matches counts"`
}

// RxRule gives the requests that meet its conditions a priority.
type RxRule struct {
	Name string `json:"ruleName" koanf:"ruleName" range:"name" usage:"name of the rule"`
	// MessagePriority is 0 (highest) to 31.
	MessagePriority int `json:"messagePriority" koanf:"messagePriority" range:"0..31" usage:"priority of the request"`
	RulePriority    int `json:"rulePriority" koanf:"rulePriority" range:"0..2147483647" usage:"lower is tried first"`
	// EnableDRMP takes the priority from the DRMP where the request has one.
	EnableDRMP bool         `json:"enableDRMPPriority" koanf:"enableDRMPPriority" usage:"a DRMP in the request counts instead, doubled"`
	Conditions RxConditions `json:"conditions" koanf:"conditions"`
}

// RxConditions are what a rule looks at.
type RxConditions struct {
	Application string        `json:"application" koanf:"application" range:"|Rx" usage:"application: Rx; any when empty"`
	Message     string        `json:"message" koanf:"message" range:"|AAR|STR|RAR|ASR" usage:"command: AAR, STR, RAR or ASR; any when empty"`
	AVPs        []RxCondition `json:"preDefinedAVPConditions" koanf:"preDefinedAVPConditions" usage:"all of them must hold"`
}

// RxCondition is a condition on an AVP.
type RxCondition struct {
	Name     string   `json:"conditionName" koanf:"conditionName" range:"Rx-Request-Type|DRMP|OC-Message-Priority" usage:"AVP"`
	Types    []string `json:"conditionRxRTValue" koanf:"conditionRxRTValue" range:"INITIAL_REQUEST|UPDATE_REQUEST|PCSCF_RESTORATION_REQUEST" usage:"values of Rx-Request-Type"`
	Operator string   `json:"typeOperator" koanf:"typeOperator" range:"|Equals|Not Equals|Less Than|Less Than Equals|Greater Than|Greater Than Equals" usage:"comparison of a number; Equals when empty"`
	Value    int      `json:"value" koanf:"value" range:"0..31" usage:"number; at most 15 for DRMP"`
}

// RxSheddingProfile says what the Rx gateway refuses at which overload level.
type RxSheddingProfile struct {
	Name  string   `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	Type  string   `json:"type" koanf:"type" range:"Overload Control" usage:"what it is for: Overload Control"`
	Rules []RxShed `json:"overloadLoadSheddingRules" koanf:"overloadLoadSheddingRules" usage:"a row for each level"`
}

// RxShed refuses requests at a level.
type RxShed struct {
	Level           string `json:"level" koanf:"level" range:"L1|L2|L3" usage:"overload level"`
	DiscardPriority int    `json:"discardPriority" koanf:"discardPriority" range:"0..31" usage:"requests of this priority and of lower ones are refused"`
	Percentage      int    `json:"discardPercentage" koanf:"discardPercentage" range:"0..100" usage:"share of them that is refused; 0 is all of them"`
	// Result is a name of the table of supported result codes, or a number.
	Result string `json:"ansWithResultCode" koanf:"ansWithResultCode" usage:"result of the answer, by name or number; that of diameterSettings when empty"`
}

// Levels switches the overload levels of the two services.
type Levels struct {
	Enabled    bool   `json:"enabled" koanf:"enabled" usage:"shed load by overload level"`
	Management string `json:"managementProfile" koanf:"managementProfile" usage:"name of the active threshold profile of the service-based interface"`
	Diameter   string `json:"diameterProfile" koanf:"diameterProfile" usage:"name of the active threshold profile of the Rx gateway"`
	// SamplingPeriod is in milliseconds.
	SamplingPeriod int `json:"samplingPeriod" koanf:"samplingPeriod" range:"50..3600000" usage:"time between two samples, in milliseconds"`
	// FailureCodes are statuses that count as failures.
	FailureCodes []int `json:"failureCodes" koanf:"failureCodes" range:"400..599" usage:"statuses that count as failures of the service-based interface; all of 5xx when empty"`
}

// LevelProfile says where the overload levels begin and end.
type LevelProfile struct {
	Name string `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	// Capacity derives the levels that are not given.
	Capacity Capacity         `json:"capacity" koanf:"capacity"`
	Levels   []LevelThreshold `json:"levels" koanf:"levels" usage:"onset and abatement of each level; derived from the capacity when there are none"`
}

// Capacity is what a service can carry.
type Capacity struct {
	CPU     int `json:"maxCpu" koanf:"maxCpu" range:"0..100" usage:"highest CPU usage in percent (C)"`
	Pending int `json:"maxPending" koanf:"maxPending" range:"0..2147483647" usage:"pending requests at the longest round trip and the highest rate (P)"`
	TPS     int `json:"maxTps" koanf:"maxTps" range:"0..2147483647" usage:"requests a second (T)"`
}

// LevelThreshold is where a level begins and ends: below its onset for a
// resource that has no abatement.
type LevelThreshold struct {
	Level     string    `json:"level" koanf:"level" range:"L1|L2|L3" usage:"overload level"`
	Onset     Resources `json:"onset" koanf:"onset"`
	Abatement Resources `json:"abatement" koanf:"abatement"`
}

// Resources are values of the resources that overload levels look at; 0 in an
// onset does not look at one, 0 in an abatement stands for the onset.
type Resources struct {
	CPU      int `json:"cpu" koanf:"cpu" range:"0..100" usage:"CPU in percent; 0 for none, in an abatement for the onset"`
	Pending  int `json:"pendingMessageCount" koanf:"pendingMessageCount" range:"0..2147483647" usage:"pending requests; 0 for none, in an abatement for the onset"`
	Failures int `json:"failureCount" koanf:"failureCount" range:"0..2147483647" usage:"failures a second; 0 for none, in an abatement for the onset"`
	Memory   int `json:"memory" koanf:"memory" range:"0..100" usage:"memory in percent; 0 for none, in an abatement for the onset"`
}

// PolicyMapping gives the service its discard policy.
type PolicyMapping struct {
	Enabled bool   `json:"enabled" koanf:"enabled" usage:"shed load of the service-based interface by overload level (with overloadLevelThreshold)"`
	Policy  string `json:"policyName" koanf:"policyName" usage:"name of the active discard policy"`
}

// DiscardPolicy says what is refused at which level.
type DiscardPolicy struct {
	Name     string    `json:"name" koanf:"name" range:"name" usage:"name of the policy"`
	Scheme   string    `json:"scheme" koanf:"scheme" range:"PriorityBased|PercentageBased" usage:"what value is: a discard priority or a percentage of all requests"`
	Policies []Discard `json:"policies" koanf:"policies" usage:"a row for each level"`
}

// Discard is the policy of a level.
type Discard struct {
	Level            string `json:"level" koanf:"level" range:"L1|L2|L3" usage:"overload level"`
	Value            int    `json:"value" koanf:"value" range:"0..100" usage:"requests of this priority (0 to 31) and of lower ones are refused, or this percentage"`
	ErrorCodeProfile string `json:"errorCodeProfile" koanf:"errorCodeProfile" usage:"answer; that of managementService when empty"`
}

// ErrorCodeProfile is an answer to requests that are refused.
type ErrorCodeProfile struct {
	Name string `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	// Code outside the table of supported codes counts as 503.
	Code        int    `json:"errorCode" koanf:"errorCode" range:"0..999999" usage:"status; 503 for one that is not supported"`
	Cause       string `json:"errorCause" koanf:"errorCause" usage:"cause"`
	Title       string `json:"errorTitle" koanf:"errorTitle" usage:"title"`
	Description string `json:"errorDescription" koanf:"errorDescription" usage:"detail"`
	RetryAfter  int    `json:"retryAfter" koanf:"retryAfter" range:"0..86400" usage:"Retry-After in seconds; none for 0"`
}

// RateLimiting is the rate limit of routes.
type RateLimiting struct {
	Enabled bool `json:"enabled" koanf:"enabled" usage:"limit the rate of routes"`
	// SamplingPeriod is in milliseconds.
	SamplingPeriod int `json:"samplingPeriod" koanf:"samplingPeriod" range:"50..3600000" usage:"time over which a rate is taken, in milliseconds"`
}

// Route is the rate limit of the requests of one method to one path.
type Route struct {
	ID     string `json:"id" koanf:"id" range:"name" usage:"name of the route"`
	Path   string `json:"path" koanf:"path" range:"pcfBindings|pcf-ue-bindings|pcf-mbs-bindings|subscriptions" usage:"collection of the route"`
	Method string `json:"method" koanf:"method" range:"POST|DELETE|GET|PATCH|PUT" usage:"method of the route"`
	// Rate is in requests a second, 0 for no limit.
	Rate int `json:"rate" koanf:"rate" range:"0..2147483647" usage:"requests a second; 0 for no limit"`
	// PriorityBound is up to which priority requests are never refused.
	PriorityBound    int    `json:"sbiPriority" koanf:"sbiPriority" range:"0..31" usage:"only requests with a larger priority value are refused"`
	ErrorCodeProfile string `json:"errorCodeProfile" koanf:"errorCodeProfile" usage:"answer; 429 NF_CONGESTION_RISK when empty"`
}

// Protection protects the entrance of the service-based interface.
type Protection struct {
	Enabled bool `json:"enabled" koanf:"enabled" usage:"shed load when the entrance is congested"`
	// MonitoringInterval is in milliseconds.
	MonitoringInterval     int               `json:"monitoringInterval" koanf:"monitoringInterval" range:"50..2147483647" usage:"time between two samples, in milliseconds"`
	StateChangeSampleCount int               `json:"stateChangeSampleCount" koanf:"stateChangeSampleCount" range:"1..2147483647" usage:"samples in a row after which the state changes"`
	States                 []ProtectionState `json:"states" koanf:"states" usage:"thresholds and effect of each state"`
}

// ProtectionState is a state of the entrance.
type ProtectionState struct {
	Name             string `json:"name" koanf:"name" range:"DoC|Congested" usage:"state"`
	CPU              int    `json:"cpu" koanf:"cpu" range:"0..100" usage:"CPU in percent; 0 for none"`
	Memory           int    `json:"memory" koanf:"memory" range:"0..100" usage:"memory in percent; 0 for none"`
	Pending          int    `json:"pendingMessage" koanf:"pendingMessage" range:"0..2147483647" usage:"pending requests; 0 for none"`
	DiscardPriority  int    `json:"discardPriority" koanf:"discardPriority" range:"0..31" usage:"requests of this priority and of lower ones are refused"`
	ErrorCodeProfile string `json:"errorCodeProfile" koanf:"errorCodeProfile" usage:"answer; that of managementService when empty"`
}

// Shutdown is the operational state.
type Shutdown struct {
	Enabled bool      `json:"enableControlledShutdown" koanf:"enableControlledShutdown" usage:"whether the operational state counts"`
	State   Operation `json:"operationalState" koanf:"operationalState" range:"NORMAL|PARTIAL_SHUTDOWN|COMPLETE_SHUTDOWN" usage:"operational state"`
	// ErrorCodeProfile names the answer on the service-based interface.
	ErrorCodeProfile string `json:"errorCodeProfile" koanf:"errorCodeProfile" usage:"answer on the service-based interface; 503 NF_FAILOVER when empty"`
	ResponseCode     int    `json:"diameterResponseCode" koanf:"diameterResponseCode" range:"3000..5999" usage:"result of the answer on Diameter"`
	VendorID         int    `json:"diameterVendorId" koanf:"diameterVendorId" range:"0..4294967295" usage:"vendor of that result; 0 for a Result-Code"`
}

// Adaptive sheds just as much as is too much, lowest priority first, instead of
// whole ranges of priorities.
type Adaptive struct {
	Management AdaptiveService `json:"management" koanf:"management"`
	Diameter   AdaptiveService `json:"diameter" koanf:"diameter"`
}

// AdaptiveService is adaptive shedding of a service.
type AdaptiveService struct {
	Enabled bool `json:"enabled" koanf:"enabled" usage:"shed just as much as is too much, lowest priority first"`
	CPU     int  `json:"cpu" koanf:"cpu" range:"0..100" usage:"CPU in percent that is aimed at; 0 does not look at it"`
	Pending int  `json:"pending" koanf:"pending" range:"0..2147483647" usage:"pending requests that are aimed at; 0 does not look at them"`
	// Backlog is in milliseconds.
	Backlog int `json:"backlog" koanf:"backlog" range:"0..60000" usage:"how long a connection may have more to read than is read, in milliseconds; 0 does not look at it"`
	// Interval is in milliseconds.
	Interval int `json:"interval" koanf:"interval" range:"50..60000" usage:"time between two adjustments, in milliseconds"`
}

// LoadProfile says how the load of the node is calculated and told.
type LoadProfile struct {
	Name string `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	// CalcFrequency is in seconds.
	CalcFrequency int    `json:"loadCalcFrequency" koanf:"loadCalcFrequency" range:"5..3600" default:"10" usage:"time between two calculations, in seconds"`
	Interval      int    `json:"advertiseInterval" koanf:"advertiseInterval" range:"0..3600" default:"300" usage:"time after which the load is told again, in seconds; 0 tells it in every message"`
	ChangeFactor  int    `json:"advertiseChangeFactor" koanf:"advertiseChangeFactor" range:"1..20" default:"5" usage:"it is told sooner when it has changed by more than this"`
	SBI           string `json:"sbiAction" koanf:"sbiAction" range:"|advertise" usage:"advertise puts 3gpp-Sbi-Lci into answers; empty does not"`
	Diameter      string `json:"diameterAction" koanf:"diameterAction" range:"|advertise" usage:"advertise puts Load into answers; empty does not"`
}

// ExcludeProfile names requests that are not throttled.
type ExcludeProfile struct {
	Name string   `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	DNNs []string `json:"dnnList" koanf:"dnnList" usage:"DNNs whose requests are left alone, at most 3"`
	// PriorityUpto is the largest priority value that is left alone.
	PriorityUpto int      `json:"messagePriorityUpto" koanf:"messagePriorityUpto" range:"-1..31" default:"-1" usage:"requests of this priority and of higher ones are left alone; -1 for none"`
	Procedures   []string `json:"procedureList" koanf:"procedureList" range:"session-delete|new-call|modify" usage:"procedures that are left alone"`
}

// NodeProfile is the overload profile of the node.
type NodeProfile struct {
	Name    string `json:"name" koanf:"name" range:"name" usage:"name of the profile"`
	Exclude string `json:"overloadExcludeProfile" koanf:"overloadExcludeProfile" usage:"exclude profile of self-protection; none when empty"`
	// PeerExclude is that of throttling towards peers.
	PeerExclude  string `json:"peerExcludeProfile" koanf:"peerExcludeProfile" usage:"exclude profile of throttling towards overloaded peers; none when empty"`
	ToleranceMin int    `json:"toleranceMinimum" koanf:"toleranceMinimum" range:"1..100" default:"80" usage:"load in percent from which on the node is overloaded"`
	ToleranceMax int    `json:"toleranceMaximum" koanf:"toleranceMaximum" range:"1..100" default:"95" usage:"load in percent from which on it protects itself"`
	ReductionMin int    `json:"reductionMetricMinimum" koanf:"reductionMetricMinimum" range:"1..100" default:"10" usage:"reduction that is asked for at the minimum, in percent"`
	ReductionMax int    `json:"reductionMetricMaximum" koanf:"reductionMetricMaximum" range:"1..100" default:"100" usage:"reduction that is asked for at the maximum, in percent"`
	Interval     int    `json:"advertiseInterval" koanf:"advertiseInterval" range:"0..3600" default:"300" usage:"time after which the reduction is told again, in seconds; 0 tells it in every message"`
	ChangeFactor int    `json:"advertiseChangeFactor" koanf:"advertiseChangeFactor" range:"1..20" default:"5" usage:"it is told sooner when it has changed by more than this"`
	Validity     int    `json:"advertiseValidityPeriod" koanf:"advertiseValidityPeriod" range:"1..3600" default:"600" usage:"how long it holds, in seconds"`
	SBI          string `json:"sbiOverloadedAction" koanf:"sbiOverloadedAction" range:"|advertise" usage:"advertise puts 3gpp-Sbi-Oci into answers; empty does not"`
	Diameter     string `json:"diameterOverloadedAction" koanf:"diameterOverloadedAction" range:"|advertise" usage:"advertise puts OC-OLR into answers; empty does not"`
	PeerAction   string `json:"peerAction" koanf:"peerAction" range:"|throttle" usage:"throttle honours what overloaded peers ask for; empty does not"`
	// Group1 and Group2 are the weights of messages that begin sessions and of
	// all others in what is throttled.
	Group1 int `json:"messagePrioritizationGroup1" koanf:"messagePrioritizationGroup1" range:"1..100" default:"50" usage:"weight of requests that begin a session in what is throttled"`
	Group2 int `json:"messagePrioritizationGroup2" koanf:"messagePrioritizationGroup2" range:"1..100" default:"50" usage:"weight of all other requests in what is throttled"`
}

// Node selects the profiles of the node.
type Node struct {
	LoadProfile string `json:"loadProfile" koanf:"loadProfile" usage:"name of the load profile; none when empty"`
	// OverloadProfile only counts together with a load profile.
	OverloadProfile string `json:"overloadProfile" koanf:"overloadProfile" usage:"name of the overload profile; none when empty; works with a load profile only"`
}

// MessageProfile gives messages of the service-based interface their priority.
type MessageProfile struct {
	Name        string        `json:"messageProfileName" koanf:"messageProfileName" range:"name" usage:"name of the profile"`
	ServiceType string        `json:"serviceType" koanf:"serviceType" range:"BSF_Management" usage:"service it is for: BSF_Management"`
	Rules       []MessageRule `json:"messageProfileAttributes" koanf:"messageProfileAttributes" usage:"the rule with the lowest rulePriority that matches counts"`
}

// MessageRule gives the messages that it matches a priority.
type MessageRule struct {
	ID           string `json:"messageID" koanf:"messageID" range:"name" usage:"name of the rule"`
	RulePriority int    `json:"rulePriority" koanf:"rulePriority" range:"0..2147483647" usage:"lower is tried first"`
	Interface    string `json:"interfaceType" koanf:"interfaceType" range:"Any|Nbsf_Management|Nbsf_Management_Notify" usage:"interface: requests that come, or notifications that are sent"`
	Message      string `json:"messageType" koanf:"messageType" range:"Any|Register|Update|Deregister|Discovery|Subscribe|Unsubscribe|Notify" usage:"type of message"`
	// Filters must all hold.
	Filters  []MessageFilter `json:"messageProfileFilterConditions" koanf:"messageProfileFilterConditions" usage:"all of them must hold"`
	Override string          `json:"requestPriorityOverride" koanf:"requestPriorityOverride" range:"Always|IfNotPresent|Never" usage:"whether requestPriorityValue counts, against what the request brings"`
	Request  int             `json:"requestPriorityValue" koanf:"requestPriorityValue" range:"0..31" usage:"priority of the request"`
	Assign   string          `json:"responsePriorityAssign" koanf:"responsePriorityAssign" range:"Always|IfNotPresent|Never" usage:"whether responsePriorityValue goes into the answer, against the request's own"`
	Response int             `json:"responsePriorityValue" koanf:"responsePriorityValue" range:"0..31" usage:"priority of the answer"`
}

// MessageFilter is a condition on the priority that a message brings.
type MessageFilter struct {
	Name     string `json:"conditionName" koanf:"conditionName" range:"3gpp-Sbi-Message-Priority|oc-message-priority" usage:"header field"`
	Operator string `json:"typeOperator" koanf:"typeOperator" range:"|Equals|Not Equals|Less Than|Less Than Equals|Greater Than|Greater Than Equals" usage:"comparison; Equals when empty"`
	Value    int    `json:"value" koanf:"value" range:"0..31" usage:"priority"`
}

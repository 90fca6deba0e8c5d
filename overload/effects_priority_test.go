package overload

import (
	"net/http"

	"bsfd/internal/admission"
)

func priorityEffects() []effect {
	const m, d, none = ManagementService, DiameterService, admission.Absent
	// From priority 18 on everything is refused.
	strained := func(s *Settings) {
		s.Congestion.Management.Enabled, s.Congestion.Diameter.Enabled = true, true
		for i := range 2 {
			s.Shedding[i].Rules = []SheddingRule{{Congested, 18, 31, 0}}
		}
	}
	full := crowd(1e5, m, d)
	served := func(svc Service, q *admission.Request) func(*rig) any {
		return func(r *rig) any { return r.Gate(svc).Admit(q) == nil }
	}
	var list []effect
	for _, x := range []struct {
		setting, message, method string
		before                   bool
		change                   func(*Advanced)
	}{
		{"GET", "discover", http.MethodGet, true, func(a *Advanced) { a.Get = 18 }},
		{"POST", "register", http.MethodPost, false, func(a *Advanced) { a.Post = 17 }},
		{"PATCH", "update", http.MethodPatch, false, func(a *Advanced) { a.Patch = 17 }},
		{"DELETE", "deregister", http.MethodDelete, true, func(a *Advanced) { a.Delete = 18 }},
		{"SUBSCRIPTION", "subscribe", http.MethodPost, false, func(a *Advanced) { a.Subscription = 17 }},
	} {
		setting := "managementService advancedSettings.BSF_MGMT_" + x.setting + "_PCF_BINDING_REQUEST_PRIORITY"
		if x.message == "subscribe" {
			setting = "managementService advancedSettings.BSF_MGMT_SUBSCRIPTION_REQUEST_PRIORITY"
		}
		list = append(list, effect{setting, strained, full, served(m, httpRequest(x.message, x.method, none)), x.before,
			func(s *Settings) { x.change(&s.Management.Advanced) }, !x.before})
	}

	// rule is that a registration has priority 5, whatever it brings.
	rule := func(change func(*MessageRule)) func(*Settings) {
		return func(s *Settings) {
			strained(s)
			r := MessageRule{ID: "r", Interface: "Any", Message: "Any", Override: "Always", Request: 5, Assign: "Never"}
			change(&r)
			s.MessageProfiles = []MessageProfile{{"p", "BSF_Management", []MessageRule{r, {ID: "last", RulePriority: 9, Interface: "Any", Message: "Any", Override: "Always", Request: 30, Assign: "Never"}}}}
			s.Management.MessagePriority.Profile = "p"
		}
	}
	filter := func(f MessageFilter) func(*Settings) {
		return rule(func(r *MessageRule) { r.Filters = []MessageFilter{f} })
	}
	// brings is a registration with 3gpp-Sbi-Message-Priority 12.
	brings := httpRequest("register", http.MethodPost, 12)
	answered := func(r *rig) any {
		h := http.Header{}
		r.Gate(m).AdmitHTTP(brings, h)
		return h.Get("3gpp-Sbi-Message-Priority")
	}
	attributes := "messageProfiles [].messageProfileAttributes[]."
	conditions := attributes + "messageProfileFilterConditions[]."
	list = append(list, []effect{
		{"managementService messagePriority.messagePriorityProfile", func(s *Settings) { rule(func(*MessageRule) {})(s); s.Management.MessagePriority.Profile = "" }, full,
			served(m, httpRequest("register", http.MethodPost, none)), false, func(s *Settings) { s.Management.MessagePriority.Profile = "p" }, true},
		{attributes + "rulePriority", rule(func(*MessageRule) {}), full, served(m, brings), true, rule(func(r *MessageRule) { r.RulePriority = 10 }), false},
		{attributes + "interfaceType", rule(func(*MessageRule) {}), full, served(m, brings), true, rule(func(r *MessageRule) { r.Interface = "Nbsf_Management_Notify" }), false},
		{attributes + "messageType", rule(func(*MessageRule) {}), full, served(m, brings), true, rule(func(r *MessageRule) { r.Message = "Update" }), false},
		{conditions + "conditionName", filter(MessageFilter{"3gpp-Sbi-Message-Priority", "Equals", 12}), full, served(m, brings), true, filter(MessageFilter{"oc-message-priority", "Equals", 12}), false},
		{conditions + "typeOperator", filter(MessageFilter{"3gpp-Sbi-Message-Priority", "Equals", 12}), full, served(m, brings), true, filter(MessageFilter{"3gpp-Sbi-Message-Priority", "Not Equals", 12}), false},
		{conditions + "value", filter(MessageFilter{"3gpp-Sbi-Message-Priority", "Equals", 12}), full, served(m, brings), true, filter(MessageFilter{"3gpp-Sbi-Message-Priority", "Equals", 11}), false},
		{attributes + "requestPriorityOverride", rule(func(r *MessageRule) { r.Request = 20 }), full, served(m, brings), false, rule(func(r *MessageRule) { r.Request, r.Override = 20, "IfNotPresent" }), true},
		{attributes + "requestPriorityValue", rule(func(r *MessageRule) { r.Request = 20 }), full, served(m, brings), false, rule(func(*MessageRule) {}), true},
		{attributes + "responsePriorityAssign", rule(func(r *MessageRule) { r.Response = 3 }), full, answered, "", rule(func(r *MessageRule) { r.Response, r.Assign = 3, "Always" }), "3"},
		{attributes + "responsePriorityValue", rule(func(r *MessageRule) { r.Response, r.Assign = 3, "Always" }), full, answered, "3", rule(func(r *MessageRule) { r.Response, r.Assign = 4, "Always" }), "4"},
	}...)

	// rxRule is that an AAR has priority 5; all others have 20.
	rxRule := func(change func(*RxRule)) func(*Settings) {
		return func(s *Settings) {
			strained(s)
			r := RxRule{Name: "r", MessagePriority: 5, RulePriority: 1}
			change(&r)
			s.RxPriorities[0].Rules = []RxRule{r, {Name: "last", RulePriority: 9, MessagePriority: 30}}
		}
	}
	condition := func(c RxCondition) func(*Settings) {
		return rxRule(func(r *RxRule) { r.Conditions.AVPs = []RxCondition{c} })
	}
	aar := rxRequest("AAR", 12)
	aar.RequestType = 0
	other := rxRequest("AAR", 12)
	other.Application = 4
	rules := "diameterMessagePriorityProfiles [].priorityRules[]."
	conditions = rules + "conditions.preDefinedAVPConditions[]."
	return append(list, []effect{
		{"diameterSettings messagePriorityProfile", strained, full, served(d, rxRequest("AAR", none)), true, func(s *Settings) { s.Diameter.MessagePriorityProfile = "" }, false},
		{"diameterSettings defaultPriority", func(s *Settings) { strained(s); s.Diameter.MessagePriorityProfile = "" }, full, served(d, rxRequest("AAR", none)), false,
			func(s *Settings) { s.Diameter.DefaultPriority = 17 }, true},
		{rules + "messagePriority", rxRule(func(*RxRule) {}), full, served(d, aar), true, rxRule(func(r *RxRule) { r.MessagePriority = 18 }), false},
		{rules + "rulePriority", rxRule(func(*RxRule) {}), full, served(d, aar), true, rxRule(func(r *RxRule) { r.RulePriority = 10 }), false},
		{rules + "enableDRMPPriority", rxRule(func(*RxRule) {}), full, served(d, aar), true, rxRule(func(r *RxRule) { r.EnableDRMP = true }), false},
		{rules + "conditions.application", rxRule(func(*RxRule) {}), full, served(d, other), true, rxRule(func(r *RxRule) { r.Conditions.Application = "Rx" }), false},
		{rules + "conditions.message", rxRule(func(r *RxRule) { r.Conditions.Message = "AAR" }), full, served(d, aar), true, rxRule(func(r *RxRule) { r.Conditions.Message = "STR" }), false},
		{conditions + "conditionName", condition(RxCondition{Name: "DRMP", Value: 12}), full, served(d, aar), true, condition(RxCondition{Name: "OC-Message-Priority", Value: 12}), false},
		{conditions + "conditionRxRTValue", condition(RxCondition{Name: "Rx-Request-Type", Types: []string{"INITIAL_REQUEST"}}), full, served(d, aar), true,
			condition(RxCondition{Name: "Rx-Request-Type", Types: []string{"UPDATE_REQUEST"}}), false},
		{conditions + "typeOperator", condition(RxCondition{Name: "DRMP", Value: 12, Operator: "Equals"}), full, served(d, aar), true, condition(RxCondition{Name: "DRMP", Value: 12, Operator: "Less Than"}), false},
		{conditions + "value", condition(RxCondition{Name: "DRMP", Value: 12}), full, served(d, aar), true, condition(RxCondition{Name: "DRMP", Value: 13}), false},
	}...)
}

func answerEffects() []effect {
	const m, d = ManagementService, DiameterService
	congested := func(s *Settings) { s.Congestion.Management.Enabled, s.Congestion.Diameter.Enabled = true, true }
	full := crowd(1e5, m, d)
	refused := answerTo(m, httpRequest("register", http.MethodPost, 31))
	profile := func(change func(*ErrorCodeProfile)) func(*Settings) {
		return func(s *Settings) {
			congested(s)
			errorCode(s)
			change(&s.ErrorCodes[0])
			s.Shedding[0].ErrorCodeProfile = "e"
		}
	}
	asIs := profile(func(*ErrorCodeProfile) {})
	detail := func(r *rig) any { return r.Gate(m).Admit(httpRequest("register", http.MethodPost, 31)).Detail }
	closed := func(s *Settings) { errorCode(s); s.Shutdown.State = OperationComplete }
	const plain = "503 NF_CONGESTION Congestion 1s"
	advanced := "managementService advancedSettings.CONGESTION_"
	return []effect{
		{advanced + "RESPONSE_CODE", congested, full, refused, plain, func(s *Settings) { s.Management.Advanced.ResponseCode = 429 }, "429 NF_CONGESTION Congestion 1s"},
		{advanced + "RESPONSE_CAUSE", congested, full, refused, plain, func(s *Settings) { s.Management.Advanced.Cause = "X" }, "503 X Congestion 1s"},
		{advanced + "RETRY_AFTER", congested, full, refused, plain, func(s *Settings) { s.Management.Advanced.RetryAfter = 9 }, "503 NF_CONGESTION Congestion 9s"},
		{"diameterSettings CONGESTION_DIAMETER_RESPONSE_CODE", congested, full, answerTo(d, rxRequest("AAR", 15)), "3004 of 0", func(s *Settings) { s.Diameter.ResponseCode = 5012 }, "5012 of 0"},
		{"diameterSettings CONGESTION_DIAMETER_VENDOR_ID", congested, full, answerTo(d, rxRequest("AAR", 15)), "3004 of 0", func(s *Settings) { s.Diameter.VendorID = 10415 }, "3004 of 10415"},
		{"errorCodeProfiles [].errorCode", asIs, full, refused, "429 C T 7s", profile(func(p *ErrorCodeProfile) { p.Code = 504 }), "504 C T 7s"},
		{"errorCodeProfiles [].errorCause", asIs, full, refused, "429 C T 7s", profile(func(p *ErrorCodeProfile) { p.Cause = "X" }), "429 X T 7s"},
		{"errorCodeProfiles [].errorTitle", asIs, full, refused, "429 C T 7s", profile(func(p *ErrorCodeProfile) { p.Title = "X" }), "429 C X 7s"},
		{"errorCodeProfiles [].errorDescription", asIs, full, detail, "D", profile(func(p *ErrorCodeProfile) { p.Description = "X" }), "X"},
		{"errorCodeProfiles [].retryAfter", asIs, full, refused, "429 C T 7s", profile(func(p *ErrorCodeProfile) { p.RetryAfter = 0 }), "429 C T 0s"},
		{"controlledShutdown enableControlledShutdown", closed, nil, answerTo(d, rxRequest("STR", 0)), "3004 of 0", func(s *Settings) { s.Shutdown.Enabled = false }, "served"},
		{"controlledShutdown operationalState", closed, nil, answerTo(d, rxRequest("STR", 0)), "3004 of 0", func(s *Settings) { s.Shutdown.State = OperationPartial }, "served"},
		{"controlledShutdown errorCodeProfile", closed, nil, answerTo(m, httpRequest("discover", http.MethodGet, 0)), "503 NF_FAILOVER Shut down 0s", func(s *Settings) { s.Shutdown.ErrorCodeProfile = "e" }, "429 C T 7s"},
		{"controlledShutdown diameterResponseCode", closed, nil, answerTo(d, rxRequest("STR", 0)), "3004 of 0", func(s *Settings) { s.Shutdown.ResponseCode = 3002 }, "3002 of 0"},
		{"controlledShutdown diameterVendorId", closed, nil, answerTo(d, rxRequest("STR", 0)), "3004 of 0", func(s *Settings) { s.Shutdown.VendorID = 10415 }, "3004 of 10415"},
	}
}

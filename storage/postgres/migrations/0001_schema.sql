-- PCF bindings for PDU sessions: one row each, with the columns by which they
-- are found. "document" is the whole record as JSON; dnn and snssai are in
-- canonical form. "dup" is empty when a UE address may be registered once, and
-- the id otherwise, so that the unique indexes serve both policies.
CREATE TABLE pcf_binding (
    id         uuid        PRIMARY KEY,
    created    timestamptz NOT NULL,
    audited    timestamptz NOT NULL,
    attempts   smallint    NOT NULL DEFAULT 0,
    supi       text,
    ipv4       text,
    ip_domain  text        NOT NULL DEFAULT '',
    ipv6       text,
    mac        text,
    dnn        text        NOT NULL,
    snssai     text        NOT NULL,
    dup        text        NOT NULL DEFAULT '',
    pcf_id     text,
    pcf_set_id text,
    routed     boolean     NOT NULL DEFAULT false,
    document   text        NOT NULL
);
CREATE UNIQUE INDEX pcf_binding_ipv4 ON pcf_binding (ipv4, ip_domain, dnn, snssai, dup) WHERE ipv4 IS NOT NULL;
CREATE UNIQUE INDEX pcf_binding_ipv6 ON pcf_binding (ipv6, dnn, snssai, dup) WHERE ipv6 IS NOT NULL;
CREATE UNIQUE INDEX pcf_binding_mac ON pcf_binding (mac, dnn, snssai, dup) WHERE mac IS NOT NULL;
CREATE INDEX pcf_binding_supi ON pcf_binding (supi) WHERE supi IS NOT NULL;
CREATE INDEX pcf_binding_audited ON pcf_binding (audited, id);
CREATE INDEX pcf_binding_pcf ON pcf_binding (pcf_id) WHERE pcf_id IS NOT NULL;
CREATE INDEX pcf_binding_pcf_set ON pcf_binding (pcf_set_id) WHERE pcf_set_id IS NOT NULL;

-- What does not fit the address columns: framed routes, additional addresses,
-- and IPv6 prefixes that are no /64. "bits" is the prefix as zeros and ones, or
-- a MAC address; family is 4, 6 or 48.
CREATE TABLE binding_route (
    family     smallint NOT NULL,
    bits       text     NOT NULL,
    binding_id uuid     NOT NULL,
    PRIMARY KEY (family, bits, binding_id)
);
CREATE INDEX binding_route_binding ON binding_route (binding_id);

-- The lengths that occur in binding_route, so that containment is a handful of
-- exact lookups. Rows are never removed.
CREATE TABLE prefix_length (
    family smallint NOT NULL,
    len    integer  NOT NULL,
    PRIMARY KEY (family, len)
);

-- All other resources.
CREATE TABLE document (
    kind smallint NOT NULL,
    id   uuid     NOT NULL,
    key1 text,
    key2 text,
    uniq text,
    body text     NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE UNIQUE INDEX document_uniq ON document (kind, uniq) WHERE uniq IS NOT NULL;
CREATE INDEX document_key1 ON document (kind, key1) WHERE key1 IS NOT NULL;
CREATE INDEX document_key2 ON document (kind, key2) WHERE key2 IS NOT NULL;

-- Events that subscribers have still to hear of. A process that works on one
-- keeps its claim fresh.
CREATE TABLE event (
    id            uuid        PRIMARY KEY,
    claimed_until timestamptz NOT NULL,
    body          text        NOT NULL
);
CREATE INDEX event_claimed ON event (claimed_until, id);

-- Rows that transactions lock to take turns on what no index can keep unique.
CREATE TABLE guard (
    key text    PRIMARY KEY,
    n   integer NOT NULL DEFAULT 0
);

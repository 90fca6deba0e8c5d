-- Events of one subscriber are worked on by one process at a time, so that they
-- are delivered in order. An event that has no supi waits for no other.
ALTER TABLE event ADD COLUMN supi text NOT NULL DEFAULT '', ADD COLUMN claimed_by uuid;
UPDATE event SET supi = coalesce(body::json ->> 'supi', '');
CREATE INDEX event_supi ON event (supi, id);

-- Those who claim events take turns by locking this row.
INSERT INTO guard (key) VALUES ('claim');

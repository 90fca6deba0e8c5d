#!/bin/bash
# A freeDiameter relay on either side of bsfd, on the loopback of a network
# namespace of its own (freeDiameter wants an address that is not 127.x):
#
#   af.ims.example  ->  dra.example  ->  bsf.epc.example  ->  pcf.epc.example
#   af2.ims.example ->  bsf.epc.example  ->  dra.example  ->  pcf2.epc.example
#
# Usage: dra.sh BSFD PEERS, with the program and the folder of the test peers.
# Needs root. Exit status: 0 all as expected, 1 not, 2 the network did not come up.
set -u
bsfd=$1 peers=$2
if [ "${3:-}" != inside ]; then
    exec unshare --net --mount-proc --pid --fork --kill-child "$0" "$bsfd" "$peers" inside
fi
ip link set lo up && ip addr add 192.0.2.1/32 dev lo || exit 2
tmp=$(mktemp -d) || exit 2
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dra.example -keyout dra.key -out dra.pem 2>/dev/null || exit 2
cat > acl.conf <<'END'
ALLOW_IPSEC *.ims.example
ALLOW_IPSEC *.epc.example
END
# To pcf2 by host, which is connected; all else of the realm, and the AFs of
# bsfd, to bsfd.
cat > routes.conf <<'END'
dr="epc.example" : "bsf.epc.example" += 100 ;
dr="ims.example" : "bsf.epc.example" += 50 ;
END
cat > dra.conf <<'END'
Identity = "dra.example";
Realm    = "example";
ListenOn = "192.0.2.1";
Port     = 3870;
SecPort  = 0;
No_SCTP;
No_IPv6;
TLS_Cred = "dra.pem", "dra.key";
TLS_CA   = "dra.pem";
TwTimer = 6;
TcTimer = 5;
ConnectPeer = "bsf.epc.example"  { ConnectTo = "127.0.0.1"; Port = 3868; Realm = "epc.example"; No_TLS; };
ConnectPeer = "pcf2.epc.example" { ConnectTo = "127.0.0.1"; Port = 33870; Realm = "epc.example"; No_TLS; };
LoadExtension = "acl_wl.fdx" : "acl.conf";
LoadExtension = "rt_default.fdx" : "routes.conf";
END
cat > bsfd.yaml <<'END'
diameter:
  originHost: bsf.epc.example
  originRealm: epc.example
  transport: {watchdog: 6s, reconnectMin: 100ms}
  peers:
    - {host: pcf.epc.example, realm: epc.example, address: "127.0.0.1:33869", connect: true}
    - {host: dra.example, realm: example}
    - {host: af2.ims.example, realm: ims.example}
  routes:
    - {realm: epc.example, host: "pcf2*", peers: [dra.example]}
storage: {engine: memory}
END

# waits up to 40 s for a command to succeed
await() {
    for _ in $(seq 400); do
        "$@" && return 0
        sleep 0.1
    done
    echo "waited in vain for: $*"
    tail -n 30 bsfd.log dra.log
    exit 2
}
is_open() { curl -s http://127.0.0.1:8081/diameter/peers | grep -q "\"host\":\"$1\"[^}]*\"state\":\"Open\""; }

for n in 69:pcf 70:pcf2; do
    "$peers/rx_peer.escript" pcf --listen "127.0.0.1:338${n%%:*}" --realm epc.example --origin-host "${n##*:}.epc.example" \
        --rar 30 --asr 80 --print --run-for 200 > "${n##*:}.log" 2>&1 &
    pids+=($!)
done
await grep -q ready pcf.log
await grep -q ready pcf2.log
"$bsfd" serve --config bsfd.yaml > bsfd.log 2>&1 &
pids+=($!)
await curl -sf http://127.0.0.1:8081/readyz -o /dev/null
timeout 200 freeDiameterd -dd -c dra.conf > dra.log 2>&1 &
pids+=($!)
await is_open dra.example
await is_open pcf.epc.example
await grep -q "'STATE_OPEN'.*pcf2.epc.example" dra.log

# 10.45.0.x is at pcf, 10.45.1.x at pcf2.
for n in $(seq 0 255); do
    for at in 0:pcf 1:pcf2; do
        cat <<END
next
url = "http://127.0.0.1:8000/nbsf-management/v1/pcfBindings"
header = "content-type: application/json"
output = /dev/null
write-out = "%{http_code}\\n"
data = "{\"ipv4Addr\":\"10.45.${at%%:*}.$n\",\"dnn\":\"ims\",\"snssai\":{\"sst\":1},\"pcfFqdn\":\"pcf.epc.example\",\"pcfDiamHost\":\"${at##*:}.epc.example\",\"pcfDiamRealm\":\"epc.example\"}"
END
    done
done | sed 1d > curl.conf
test "$(curl -s --http2-prior-knowledge -K curl.conf | sort | uniq -c | tr -d ' \n')" = 512201 || { head -8 curl.conf; echo "no bindings"; exit 2; }

failed=0
# check NAME COMMAND...: the command must succeed
check() {
    local name=$1
    shift
    if "$@"; then
        echo "ok    $name"
    else
        echo "FAIL  $name"
        cat af.log
        tail -n 20 bsfd.log
        failed=1
    fi
}
af() { "$peers/rx_peer.escript" af --realm ims.example --dest-realm epc.example "$@" > af.log 2>&1; }
through() { af --connect 192.0.2.1:3870 --origin-host af.ims.example "$@"; }
direct() { af --connect 127.0.0.1:3868 --origin-host af2.ims.example "$@"; }
says() { grep -q "$1" "$2"; }

check "AF behind the relay: AAR and STR"            through --count 5 --ip 10.45.0.0
check "AF behind the relay: sessions that end"      through --count 3 --ip 10.45.0.0 --hold 3000
check "... with a RAR for each"                     says "'RAR' received: 3" af.log
check "... with an ASR for each"                    says "'ASR' received: 3" af.log
check "AF behind the relay: 500 sessions"           through --count 500 --window 64 --ip 10.45.0.0 --ip-range 256
check "AF behind the relay: no binding"             through --ip 10.46.0.0 --expect 5065
check "the Route-Records at the PCF"                says 'AAR .*Route-Record=af.ims.example.*Route-Record=dra.example\|AAR .*Route-Record=af.ims.example,dra.example\|AAR .*dra.example' pcf.log
check "PCF behind the relay: AAR and STR"           direct --count 5 --ip 10.45.1.0
check "PCF behind the relay: sessions that end"     direct --count 3 --ip 10.45.1.0 --hold 3000
check "... with a RAR for each"                     says "'RAR' received: 3" af.log
check "... with an ASR for each"                    says "'ASR' received: 3" af.log
check "PCF behind the relay: 500 sessions"          direct --count 500 --window 64 --ip 10.45.1.0 --ip-range 256
check "an idle connection for 3 Tw"                 direct --count 1 --ip 10.45.1.0 --linger 19000
check "... with DWR from bsfd"                      says "DWR recv [23]" af.log
exit $failed

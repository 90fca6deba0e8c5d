#!/usr/bin/env escript
%% Decodes AA-Answers, one in hexadecimal a line on standard input, with the
%% diameter application of Erlang/OTP and its dictionary of RFC 7683, and
%% prints what it finds in them.

-mode(compile).

dictionary() ->
    <<"@id 16777236\n"
      "@name doic_rx\n"
      "@prefix doic_rx\n"
      "@inherits diameter_gen_base_rfc6733\n"
      "@inherits diameter_gen_doic_rfc7683\n"
      "@messages\n"
      "AAR ::= < Diameter Header: 265, REQ, PXY > < Session-Id > * [ AVP ]\n"
      "AAA ::= < Diameter Header: 265, PXY > < Session-Id > { Auth-Application-Id } { Origin-Host } { Origin-Realm }\n"
      " [ Result-Code ] [ Experimental-Result ] [ Origin-State-Id ] [ Error-Message ] [ OC-Supported-Features ] * [ OC-OLR ] * [ AVP ]\n">>.

main([]) ->
    {ok, [Forms]} = diameter_make:codec(dictionary(), [forms, return]),
    {ok, Mod, Code} = compile:forms(Forms, [nowarn_unused_function]),
    {module, Mod} = code:load_binary(Mod, "doic_rx", Code),
    loop(Mod).

loop(Mod) ->
    case io:get_line("") of
        eof -> ok;
        Line -> show(Mod, binary:decode_hex(list_to_binary(string:trim(Line)))), loop(Mod)
    end.

show(Mod, Bin) ->
    Opts = #{decode_format => map, string_decode => false, strict_mbit => true, rfc => 6733, app_dictionary => Mod},
    {diameter_packet, _Header, _Avps, Msg, _Bin, Errors, _Tid} = diameter_codec:decode(Mod, Opts, Bin),
    io:format("~w ~w~n", [Errors, field('OC-OLR', Msg)]).

field(Name, [_ | #{} = Map]) -> maps:get(Name, Map, none);
field(Name, #{} = Map) -> maps:get(Name, Map, none);
field(_, Other) -> Other.

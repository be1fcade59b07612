//! Scripts with the loads and calls that the scanner must find in them.
//!
//! Each list has its counterpart with code that looks alike and loads nothing, since false findings are as wrong as
//! missed ones. The last test runs deep and long scripts, whose cost must stay linear.

use super::*;

fn scanned(source: &str) -> DocumentScan {
    let mut found = DocumentScan::default();
    scan(source, ScriptStart::Document, &mut found);
    found
}

fn loads(source: &str) -> Vec<(LoadTrigger, String)> {
    let loads = scanned(source).loads.into_iter();
    loads.map(|load| (load.trigger, load.origin)).collect()
}

#[test]
fn calls_that_load_are_found() {
    for source in [
        "fetch('https://a.example/v1')",
        "await fetch ( `https://a.example` , {method: 'POST'})",
        "fetch(`https://a.example/${id}`)",
        "fetch(\"https://a.example/\" + id)",
        "fetch(\"https:\\/\\/a.example\\/v1\")",
        "window.fetch('https://a.example/')",
        "new WebSocket('https://a.example/live')",
        "new window.EventSource('https://a.example/')",
        "new Worker('https://a.example/w.js')",
        "importScripts('https://a.example/w.js')",
        "import('https://a.example/m.js')",
        "navigator.sendBeacon('https://a.example/count')",
        "x.open('get', 'https://a.example/')",
        "if(a)/\"/.test(b);fetch('https://a.example/')",
        "a=b/c;d=\"/\";fetch('https://a.example/')",
        "a++/2;x=\"/'\";fetch('https://a.example/')",
        "x={a:1}/2;y='/';fetch('https://a.example/')",
        "`${a?`${b}`:'}'}`;fetch('https://a.example/')",
        "r=/[/'\"]/g;fetch('https://a.example/')",
        "({}).x/1;'/';fetch('https://a.example/')",
        "/* ' */ // \"\nfetch('https://a.example/')",
        "x=`${a}`/2;y='/';fetch('https://a.example/')",
    ] {
        let found = loads(source);
        let wanted = (LoadTrigger::Call, "https://a.example".to_owned());
        assert_eq!(found, [wanted], "{source}");
    }
}

/// Code that runs as soon as the script does, however deeply it is nested, and code that may never run.
#[test]
fn calls_that_certainly_run_are_told_apart() {
    let load = "fetch('https://a.example/')";
    for source in [
        "!function(){LOAD}()",
        "(function(){LOAD})()",
        "(function(){LOAD}())",
        "(()=>LOAD)()",
        "(async()=>{LOAD})();",
        "void (async e=>{await LOAD})(1)",
        "(function(){LOAD}).call(this)",
        "function(){}(0,function(){LOAD})()",
        "(()=>{!function(){LOAD}()})()",
        "{LOAD}",
        "try{LOAD}catch{}",
        "if(a){LOAD}",
        "async function load(){LOAD}\nload()",
        "load();function load(){LOAD}",
        "const load=async()=>{LOAD}\nconst x=await load()",
        "const load=()=>LOAD;(()=>{load()})()",
        "var load=function(){LOAD};load().then(show)",
        "const lazy=()=>import('x')\nLOAD",
        "on(()=>x,LOAD)",
        "on(e=>e.y)\nLOAD",
        "const f=a=>a?b:c;LOAD",
        "for await(const a of b){LOAD}",
        "function f(){}LOAD",
        "x={m(){},n:()=>{}};LOAD",
    ] {
        let source = source.replace("LOAD", load);
        let wanted = (LoadTrigger::Call, "https://a.example".to_owned());
        assert_eq!(loads(&source), [wanted], "{source}");
    }
    for source in [
        "async function discover(){return LOAD}",
        "async function report(e){try{await LOAD}catch{}}if(false)report(1)",
        "function report(){LOAD}if(false){report()}",
        "function report(){LOAD}a&&report()",
        "function report(){LOAD}a?report():b",
        "function report(){LOAD}for(;;){report()}",
        "function report(){LOAD}try{}catch(e){report()}",
        "function report(){LOAD}on(report);report()",
        "function report(){LOAD}let x={report(){}}",
        "function t(){LOAD}!function(t){t()}(a)",
        "function t(){LOAD}function u(){t()}",
        "function a(){LOAD;b()}function b(){a()}",
        "const lazy=()=>LOAD",
        "const lazy=()=>LOAD\nlazy",
        "const lazy=e=>({x:LOAD})",
        "x.load=function(){LOAD}",
        "x.load=function(){LOAD};load()",
        "class A{load(){LOAD}}",
        "({load(){LOAD},async*more(){}})",
        "on('click',()=>{LOAD})",
        "on('click',function(){LOAD})()",
        "a.then(()=>LOAD)",
        "`${()=>LOAD}`",
        "function f(){LOAD}(0,g)()",
        "const f=()=>{LOAD}",
        "var m={12:(e,t,n)=>{LOAD}}",
    ] {
        let source = source.replace("LOAD", load);
        let wanted = (LoadTrigger::Deferred, "https://a.example".to_owned());
        assert_eq!(loads(&source), [wanted], "{source}");
    }
    let mut found = DocumentScan::default();
    scan(load, ScriptStart::Event, &mut found);
    assert_eq!(found.loads[0].trigger, LoadTrigger::Deferred);
}

#[test]
fn static_imports_are_found() {
    for source in [
        "import 'https://a.example/m.js'",
        "import x from \"https://a.example/m.js\"",
        "import{a as b}from'https://a.example/m.js'",
        "export * from 'https://a.example/m.js'",
    ] {
        let wanted = (LoadTrigger::Document, "https://a.example".to_owned());
        assert_eq!(loads(source), [wanted], "{source}");
    }
}

#[test]
fn assignments_are_told_apart() {
    for source in [
        "image.src = 'https://a.example/x.png'",
        "s.setAttribute(\"src\", \"https://a.example/x.js\")",
    ] {
        let wanted = (LoadTrigger::Assignment, "https://a.example".to_owned());
        assert_eq!(loads(source), [wanted], "{source}");
    }
}

#[test]
fn addresses_that_nothing_loads_are_not_found() {
    for source in [
        // What zod, React, Ajv and others carry.
        "try{new URL(`http://[${e.value}]`)}catch{}",
        "new URL('https://a.example/')",
        "const ns='http://www.w3.org/2000/svg';document.createElementNS(ns,'svg')",
        "x.$schema=\"http://json-schema.org/draft-07/schema#\"",
        "throw Error('see https://a.example/ or fetch(\"https://b.example/\")')",
        "fetch(`https://${host}/v1`)",
        "fetch('https://' + host)",
        "fetch('https://a.example' + path)",
        "fetch('https://a.example'.concat(path))",
        "fetch(`https://a.example${path}`)",
        "// fetch('https://a.example/')",
        "/* import 'https://a.example/' */",
        "x=/fetch('https:\\/\\/a.example\\/')/",
        "`fetch('https://a.example/')`",
        "cache.fetch('https://a.example/')",
        "cache.window.fetch('https://a.example/')",
        "prefetch('https://a.example/')",
        "Array.from('https://a.example/')",
        "x.import('https://a.example/')",
        "class A{#fetch(u){} x(){this.#fetch('https://a.example/')}}",
        "x?.fetch('https://a.example/')",
        "new URL('https://a.example/x.js', import.meta.url)",
        "import.meta.url==='https://a.example/'",
        "//# sourceMappingURL=https://a.example/x.js.map",
        "/*! @license https://a.example/ fetch('https://a.example/') */",
        "window.open('https://a.example/', 'https://b.example/')",
        "x.open('name', 'https://a.example/')",
        "location.href='https://a.example/'",
        "class WebSocket{} WebSocket('https://a.example/')",
        "fetch('/v1')",
        "fetch('",
        "fetch(`",
        "'\\",
        "/",
        "}",
        "`${",
    ] {
        assert_eq!(loads(source), [], "{source}");
    }
}

fn calls(source: &str) -> Vec<(&'static str, bool)> {
    let calls = scanned(source).calls.into_iter();
    calls.map(|call| (call.name, call.is_tried)).collect()
}

#[test]
fn text_that_is_run_is_found() {
    assert_eq!(calls("x=eval(y)"), [("eval(", false)]);
    assert_eq!(
        calls("await new Function('a','b')(c)"),
        [("new Function(", false)]
    );
    assert_eq!(calls("setTimeout('tick()', 9)"), [("setTimeout(\"", false)]);
    for source in [
        "retrieval(x); obj.eval(x); medieval(1); 'eval(x)'; function eval(x){}",
        "setTimeout(tick, 9); new Functional(x)",
        "/* eval(x) */",
    ] {
        assert_eq!(calls(source), [], "{source}");
    }
}

#[test]
fn a_probe_is_told_from_a_call() {
    for (source, is_tried) in [
        // As in zod and pdf.js.
        (
            "function f(){try{return new Function(\"\"),!0}catch{return!1}}",
            true,
        ),
        ("try { if (a) { new Function('') } } catch (e) {}", true),
        ("try{a()}catch(e){new Function('')}", false),
        ("try{on(x,function(){new Function('')})}catch{}", false),
        ("try{on(x,()=>{new Function('')})}catch{}", false),
        ("x.try={y:new Function('')}", false),
        // A function that is called in a `try` and nowhere else.
        (
            "function canEval(){return new Function('')()}try{ok=canEval()===1}catch{}",
            true,
        ),
        ("try{(()=>{new Function('')})()}catch{}", true),
        ("try{!function(){new Function('')}()}catch{}", true),
        ("const can=()=>new Function('');try{can()}catch{}", true),
        (
            "function a(){new Function('')}function b(){try{a()}catch{}}",
            true,
        ),
        (
            "function can(){new Function('')}try{can()}catch{}can()",
            false,
        ),
        (
            "function can(){new Function('')}try{can()}catch{can()}",
            false,
        ),
        (
            "function can(){new Function('')}try{can()}catch{}on(can)",
            false,
        ),
        ("function can(){new Function('')}", false),
        ("try{on(x,()=>new Function(''))}catch{}", false),
        ("new Function('')", false),
    ] {
        assert_eq!(calls(source), [("new Function(", is_tried)], "{source}");
    }
}

#[test]
fn text_that_certainly_runs_is_told_apart() {
    for (source, is_certain) in [
        ("new Function('')", true),
        ("(()=>{new Function('')})()", true),
        ("function run(){new Function('')}run()", true),
        ("function run(){new Function('')}", false),
        ("class A{run(){new Function('')}}", false),
    ] {
        let calls = scanned(source).calls;
        assert_eq!(calls[0].is_certain, is_certain, "{source}");
    }
}

#[test]
fn calls_that_the_sandbox_forbids_are_found() {
    assert_eq!(calls("alert(1)"), [("alert(", false)]);
    assert_eq!(calls("window.confirm('x')"), [("confirm(", false)]);
    assert_eq!(calls("localStorage.x=1"), [("localStorage.", false)]);
    for source in [
        "toast.alert(1)",
        "\"alert(1)\"",
        "typeof localStorage",
        // Methods of these names, as in the MCP SDK and in mathjs.
        "class Server{prompt(e,...t){let n=1}}",
        "x={async confirm(e){},eval (a=f(1)) {},#alert(){}}",
    ] {
        assert_eq!(calls(source), [], "{source}");
    }
}

/// The cost stays linear in the length, whatever the nesting.
#[test]
fn deep_and_long_scripts_end() {
    for piece in ["{eval(", "`${", "[", "</*", "a/", "'", "/["] {
        let source = piece.repeat(200_000);
        assert!(scanned(&source).calls.len() <= 1);
    }
}

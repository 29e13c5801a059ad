//! The page of `--html` in a real browser: headless Chromium opens it and uses it as a person
//! would.
//!
//! A script added to the page works the keys and the fields, and writes down what came of it. Where
//! there is no Chromium (`STREAMSAN_BROWSER` names one; `apt-get install chromium`) the tests say
//! so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::run::{end, streamsan};
use tests::{build, made, product};

pub(super) fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STREAMSAN_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|n| folder.join(n))).find(|f| f.exists());
    if found.is_none() {
        eprintln!("skipped: no chromium on PATH (apt-get install chromium, or STREAMSAN_BROWSER=FILE)");
    }
    found
}

/// What every probe starts with.
const PROBE: &str = r#"
const wrong = [];
addEventListener("error", e => wrong.push(String(e.message)));
const press = k => (document.activeElement || document.body).dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
const enter = (id, value) => { const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event("input", { bubbles: true })); };
const visible = () => [...document.querySelectorAll("article")].filter(c => !c.hidden);
const light = c => { const v = c.match(/[\d.]+/g).map(Number).slice(0, 3).map(n => { n /= 255; return n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4; }); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const say = answer => { const e = document.createElement("pre"); e.id = "answer"; e.textContent = "ANSWER" + JSON.stringify({ ...answer, wrong }) + "END"; document.body.append(e); };
"#;

/// Opens a page with a script of ours behind its own; answers what the script said.
fn probe(browser: &Path, page: &Path, script: &str) -> Value {
    let text = std::fs::read_to_string(page).expect("the page");
    let probed = page.with_extension("probe.html");
    let text =
        text.replacen("<script>\n\"use strict\"", &format!("<script>{PROBE}</script>\n<script>\n\"use strict\""), 1);
    std::fs::write(&probed, text.replacen("</body>", &format!("<script>{{ {script} }}</script></body>"), 1))
        .expect("write");
    let home = page.with_extension("chromium");
    let mut command = Command::new(browser);
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.arg(format!("--user-data-dir={}", home.display())).args(["--window-size=1250,900", "--dump-dom"]);
    let ended = end(command.arg(format!("file://{}", probed.display())));
    let _ = std::fs::remove_dir_all(home);
    let answer = ended.out.split("ANSWER{").nth(1).and_then(|rest| rest.split("}END").next());
    let answer =
        answer.unwrap_or_else(|| panic!("no answer: {}\n{}", ended.err, &ended.out[..ended.out.len().min(2000)]));
    // The browser writes text with entities.
    let answer = answer.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    let value: Value = serde_json::from_str(&format!("{{{answer}}}")).unwrap_or_else(|e| panic!("{e}: {answer}"));
    assert_eq!(value["wrong"].as_array().map(Vec::len), Some(0), "{value:#}");
    value
}

/// `streamsan check --pedantic --html` of a trace.
fn page(trace: &Path, folder: &Path) -> PathBuf {
    let page = folder.join("report.html");
    let ended = end(streamsan(["check", "--pedantic", "--html"]).arg(&page).arg(trace));
    assert!(matches!(ended.code(), Some(0 | 66)), "{}", ended.err);
    page
}

#[test]
fn a_finding_shows_lanes_waits_the_missing_one_stacks_and_bytes() {
    let Some(browser) = browser() else { return };
    let folder = build::scratch("page");
    let trace = folder.join("t");
    // Stream 2 waits for stream 1 in the middle, but the fill after that races.
    made::write(&trace, &made::crossing());
    let answer = probe(
        &browser,
        &page(&trace, &folder),
        r##"
        const first = document.querySelector("article"), svg = first.querySelector(".lanes .scroll svg");
        const steps = [...svg.querySelectorAll(".step")].map(g => g.querySelector("text").textContent);
        const of = s => [...first.querySelectorAll(s)];
        const box = g => { const r = g.getBBox(); return [r.x, r.y, r.width, r.height]; };
        const [p, a] = ["previous", "access"].map(r => box(svg.querySelector("[data-role=" + r + "] rect")));
        const line = svg.querySelector(".missing path").getBBox();
        say({
            steps, lanes: of(".lanes text.lane").map(t => t.querySelector("title").textContent),
            short: of(".lanes text.lane").map(t => t.firstChild.textContent),
            waits: [...svg.querySelectorAll("g.wait")].map(g => [+g.dataset.from, +g.dataset.to]),
            missing: first.querySelector("p.missing").textContent,
            dashed: !!svg.querySelector(".missing path").getAttribute("stroke-dasharray"),
            reaches: line.x <= p[0] + p[2] && line.x + line.width >= a[0],
            below: a[1] > p[1], later: a[0] > p[0],
            stacks: of("section").length, bars: of(".bar i").map(i => [i.style.left, i.style.width]),
            list: of(".steps li").length, scrolls: svg.parentNode.tabIndex === 0,
        });
        "##,
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let steps: Vec<String> = answer["steps"].as_array().expect("steps").iter().map(text).collect();
    assert_eq!(
        steps,
        ["cuMemsetD8Async", "record event 1", "cuMemsetD8Async", "wait for event 1", "cuMemsetD8Async"],
        "{answer:#}"
    );
    assert_eq!(answer["waits"], serde_json::json!([[1, 3]]), "the wait that there is, and no other");
    let lanes = answer["lanes"].as_array().expect("lanes");
    assert!(
        text(&lanes[0]).starts_with("stream 1 (non-block") && text(&lanes[1]).starts_with("stream 2 "),
        "{lanes:?}"
    );
    assert_eq!(answer["short"], serde_json::json!(["stream 1", "stream 2"]));
    assert!(text(&answer["missing"]).contains("Nothing makes stream 2 wait until stream 1"), "{answer:#}");
    for yes in ["dashed", "reaches", "below", "later", "scrolls"] {
        assert_eq!(answer[yes], true, "{yes}: {answer:#}");
    }
    assert_eq!((&answer["stacks"], &answer["list"]), (&2.into(), &5.into()));
    // Fills of bytes 0 to 2047 and 1024 to 3071 of 4096.
    assert_eq!(answer["bars"], serde_json::json!([["0%", "50%"], ["25%", "50%"], ["25%", "25%"]]));
}

#[test]
fn the_table_follows_the_filters_and_its_rows_open_findings() {
    let Some(browser) = browser() else { return };
    let folder = build::scratch("page-table");
    let trace = folder.join("t");
    made::write(&trace, &made::many(30, 1_000));
    let answer = probe(
        &browser,
        &page(&trace, &folder),
        r##"
        const rows = () => [...document.querySelectorAll("#overview tr[data-finding]")].filter(r => !r.hidden);
        const first = rows().length, more = document.querySelector("#overview button"), offers = more.textContent;
        enter("search", "number_17_ later"); const found = rows().length, offersFound = more.hidden;
        enter("search", "no such thing"); const none = rows().length;
        enter("search", ""); more.click(); const every = rows().length, offersEvery = more.hidden;
        const last = rows()[every - 1], id = "finding-" + last.dataset.finding, card = document.getElementById(id);
        const before = !!card.querySelector(".body");
        last.click();
        const after = !!card.querySelector(".body"), header = document.querySelector("header").offsetHeight;
        const top = card.getBoundingClientRect().top, low = innerHeight - header;
        const theme = document.getElementById("theme"), was = theme.getAttribute("aria-pressed");
        theme.click();
        say({
            first, offers, found, offersFound, none, every, offersEvery, before, after, address: location.hash === "#" + id,
            inView: top >= header && top < low, switches: theme.getAttribute("aria-pressed") !== was,
            verdict: document.getElementById("verdict").textContent,
            wraps: [...document.querySelectorAll(".lines pre")].every(e => e.scrollWidth <= e.clientWidth),
        });
        "##,
    );
    let numbers = ["first", "found", "none", "every"].map(|key| answer[key].as_u64().unwrap_or(u64::MAX));
    let every = numbers[3];
    assert!(every > 20 && numbers == [20, 1, 0, every], "{answer:#}");
    assert_eq!(answer["offers"], format!("show all {every}"), "{answer:#}");
    assert_eq!(answer["before"], false, "{answer:#}");
    for yes in ["offersFound", "offersEvery", "after", "address", "inView", "switches", "wraps"] {
        assert_eq!(answer[yes], true, "{yes}: {answer:#}");
    }
    assert!(answer["verdict"].as_str().is_some_and(|text| text.contains("findings fail this run")), "{answer:#}");
}

#[test]
fn a_hundred_thousand_ops_and_hundreds_of_findings_can_be_searched_by_keyboard() {
    let Some(browser) = browser() else { return };
    let folder = build::scratch("page-large");
    let trace = folder.join("t");
    let findings = 300;
    made::write(&trace, &made::many(findings, 100_000));
    let page = page(&trace, &folder);
    let size = std::fs::metadata(&page).expect("the page").len();
    assert!(size < 4 << 20, "{size} bytes: the page grows with the findings, not with the run");
    let answer = probe(
        &browser,
        &page,
        r##"
        const all = visible().length, open = document.querySelectorAll(".body").length;
        press("/"); const searching = document.activeElement.id;
        enter("search", "number_17_ later"); const found = visible().length, said = document.getElementById("count").textContent;
        press("Escape"); const left = document.activeElement === document.body;
        press("j"); const focused = document.activeElement.closest("article") === visible()[0];
        const before = document.activeElement.getAttribute("aria-expanded");
        document.activeElement.click(); const after = document.activeElement.getAttribute("aria-expanded");
        enter("search", ""); enter("hazard", "write-after-write"); const waw = visible().length;
        enter("hazard", "read-after-write"); const raw = visible().length;
        enter("hazard", ""); enter("sure", "certain"); const sure = visible().length;
        enter("sure", "");
        press("j"); press("j"); const third = visible().indexOf(document.activeElement.closest("article"));
        press("k"); const second = visible().indexOf(document.activeElement.closest("article"));
        const ratios = {};
        for (const theme of ["light", "dark"]) {
            document.documentElement.classList.toggle("dark", theme === "dark");
            for (const s of [".kind", ".first", ".second", ".legend", ".place", "li .src", ".tag", ".note", "h1"]) {
                const e = document.querySelector(s); if (!e) continue;
                let back = e; while (back && getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
                ratios[theme + s] = contrast(getComputedStyle(e).color, getComputedStyle(back || document.body).backgroundColor);
            }
        }
        say({ all, open, searching, found, said, left, focused, before, after, waw, raw, sure, third, second, ratios });
        "##,
    );
    assert_eq!((&answer["all"], &answer["open"]), (&findings.into(), &3.into()), "{answer:#}");
    assert_eq!((&answer["searching"], &answer["found"], &answer["left"]), (&"search".into(), &1.into(), &true.into()));
    assert_eq!(answer["said"], format!("1 of {findings}"));
    assert_eq!(
        (&answer["focused"], &answer["before"], &answer["after"]),
        (&true.into(), &"false".into(), &"true".into())
    );
    assert_eq!(
        (&answer["waw"], &answer["raw"], &answer["sure"]),
        (&1.into(), &(findings - 1).into(), &1.into()),
        "{answer:#}"
    );
    assert_eq!((&answer["third"], &answer["second"]), (&2.into(), &1.into()), "{answer:#}");
    for (what, ratio) in answer["ratios"].as_object().expect("ratios") {
        assert!(ratio.as_f64().expect("a number") >= 4.5, "{what} is hard to read: {ratio}");
    }
    assert!(answer["ratios"].as_object().expect("ratios").len() >= 10, "{answer:#}");
}

#[test]
fn a_recorded_run_of_pytorch_shows_its_sources() {
    let Some(browser) = browser() else { return };
    let folder = build::scratch("page-torch");
    let answer = probe(
        &browser,
        &page(&product::root().join("tests/recorded/triton_step.trace"), &folder),
        r##"
        const text = document.querySelector("article").textContent;
        // As on a telephone: what is wider than the page scrolls in a box of its own.
        document.body.style.width = "380px";
        const out = [...document.querySelectorAll("main *")].filter(e => !e.closest("#overview, .lanes, pre, ol") && e.getBoundingClientRect().right > 381);
        const folded = [...document.querySelectorAll("article li summary")].map(e => e.textContent);
        say({ fits: out.length === 0, out: out.map(e => e.outerHTML.slice(0, 80)), folded: folded.some(t => t === "[3 frames of Triton]"), source: text.includes("scale[(40,)](batch, 10000, BLOCK=256)"), torch: text.includes("wait_stream(stream_2)"), part: text.includes("in step 0"), cards: visible().length });
        "##,
    );
    for yes in ["source", "torch", "part", "fits", "folded"] {
        assert_eq!(answer[yes], true, "{answer:#}");
    }
    assert_eq!(answer["cards"], 2);
}

/// A clean run says so, with what ran, when, by which version, and what was checked; with scripts
/// and without.
#[test]
fn a_clean_run_says_so() {
    let folder = build::scratch("page-clean");
    let page = page(&product::root().join("tests/recorded/triton_step_waited.trace"), &folder);
    let text = std::fs::read_to_string(&page).expect("the page");
    let said = ["COVERAGE: 3 launches", "SUMMARY: 0 findings", "triton_step_waited.py</code>", "<noscript>", " UTC"];
    for part in said {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains(&format!("StreamSan {}", env!("CARGO_PKG_VERSION"))));
    let Some(browser) = browser() else { return };
    let answer = probe(
        &browser,
        &page,
        r##"
        const seen = s => document.querySelector(s).checkVisibility();
        say({ verdict: document.getElementById("verdict").textContent, open: document.getElementById("checked").open, search: seen("#search"), cards: visible().length });
        "##,
    );
    assert_eq!(answer["verdict"], "No data race was found in this run.", "{answer:#}");
    assert_eq!((&answer["open"], &answer["search"], &answer["cards"]), (&true.into(), &false.into(), &0.into()));
}

/// A page made by `streamsan run --sim` of a program whose kernels have a line table shows the line
/// inside the kernel on both sides.
#[test]
fn the_line_inside_the_kernel_is_shown() {
    let Some(browser) = browser() else { return };
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let source = product::root().join("tests/corpus/cuda/stream_pair_unordered.cu");
    let text = std::fs::read_to_string(&source).expect("the source");
    let folder = build::scratch("page-inside");
    for (options, known) in [(&["-lineinfo"][..], true), (&[], false)] {
        let program = build::cuda_program(&source, "shared", options).expect("compiles");
        let page = folder.join("report.html");
        let mut command = streamsan(["run", "--sim", "--error-exitcode", "0", "--html"]);
        let ended = end(command.arg(&page).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
        assert!(page.exists(), "{}", ended.err);
        let script = "say({ inside: [...document.querySelectorAll('article')][0].querySelectorAll('.inside').length,
            places: [...document.querySelectorAll('article .inside .place')].slice(0, 2).map(e => e.textContent),
            sources: [...document.querySelectorAll('article .inside .src')].slice(0, 2).map(e => e.textContent) });";
        let answer = probe(&browser, &page, script);
        if !known {
            assert_eq!(answer["inside"], 0, "{answer:#}");
            continue;
        }
        let line = |part: &str| text.lines().enumerate().find(|l| l.1.contains(part)).expect("a line of the source");
        let (read, write) = (line("y[i] = "), line("x[i] = "));
        let places = [write, read].map(|l| format!("stream_pair_unordered.cu:{}", l.0 + 1));
        assert_eq!(answer["places"], serde_json::json!(places), "{answer:#}");
        assert_eq!(answer["sources"], serde_json::json!([write.1.trim(), read.1.trim()]), "{answer:#}");
    }
}

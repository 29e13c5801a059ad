//! The site, a report and a list of synchronisations in a browser that is as narrow as a telephone,
//! a tablet and a screen: nothing sticks out, the menu and the search are there, and what an
//! address leads to is not under the header.
//!
//! Where there is no Chromium the tests say so and pass, as those of [`super::pages`].

use std::path::Path;

use serde_json::Value;
use tests::run::{PATIENCE, command, end, end_within, streamsan};
use tests::{build, made, product};

use super::pages::browser;

/// What `tests/pages/widths.js` finds on these pages of a folder.
fn looked(browser: &Path, folder: &Path, pages: &[&str]) -> Value {
    let scripts = product::root().join("tests/pages");
    let mut python = command("python3");
    python.arg(scripts.join("browse.py")).arg(browser).arg(folder).arg(scripts.join("widths.js")).args(pages);
    let ended = end_within(&mut python, 5 * PATIENCE);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let told: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out));
    assert_eq!(told["found"].as_array().map(Vec::len), Some(3 * pages.len()), "{told:#}");
    told
}

/// Each page at each width.
fn each(told: &Value) -> impl Iterator<Item = &Value> {
    told["found"].as_array().expect("a list").iter()
}

fn sticks_out(one: &Value) -> bool {
    one["wide"] != false || one["out"].as_array().is_none_or(|out| !out.is_empty())
}

#[test]
fn the_site_fits_a_telephone_a_tablet_and_a_screen() {
    let Some(browser) = browser() else { return };
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let folder = build::scratch("site_widths").join("site");
    let made =
        end_within(command("python3").arg(product::root().join("scripts/site")).arg("-o").arg(&folder), 5 * PATIENCE);
    assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
    // The page with the widest table and the longest listings among them.
    let pages = [
        "",
        "guide/getting-started/",
        "guide/gallery/",
        "comparison/",
        "findings/read-after-write/",
        "reference/formats/",
    ];
    let told = looked(&browser, &folder, &pages);
    for one in each(&told) {
        assert!(!sticks_out(one), "{one:#}");
        assert!(one["menu"].as_u64().is_some_and(|entries| entries > 5), "no menu: {one:#}");
    }
    let first = told["hits"]["links"][0].as_str().expect("the search finds something");
    assert!(first.contains("/findings/freed-without-record_stream/"), "{told:#}");
}

#[test]
fn a_report_and_a_list_of_synchronisations_fit_them_too() {
    let Some(browser) = browser() else { return };
    let folder = build::scratch("page_widths");
    let trace = folder.join("t");
    made::write(&trace, &made::many(30, 1_000));
    let page = folder.join("report.html");
    let ended = end(streamsan(["check", "--pedantic", "--html"]).arg(&page).arg(&trace));
    assert!(matches!(ended.code(), Some(0 | 66)), "{}", ended.err);
    let ended = end(streamsan(["excess", "--html"]).arg(folder.join("excess.html")).arg(&trace));
    assert!(matches!(ended.code(), Some(0 | 66)), "{}", ended.err);
    // A page that is too wide, or the test would prove nothing.
    let wide = "<!doctype html><header>h</header><article id=a style='margin-top:4000px'>a</article>\
        <p style='width:1400px;margin-bottom:4000px'>wide</p><style>header { position: sticky; top: 0; height: 90px }</style>";
    std::fs::write(folder.join("wide.html"), wide).expect("written");
    let told = looked(&browser, &folder, &["report.html", "excess.html", "wide.html"]);
    for one in each(&told) {
        let is_wide = one["page"] == "wide.html";
        assert_eq!(sticks_out(one), is_wide, "{one:#}");
        if one["page"] == "excess.html" {
            continue;
        }
        // How far the header, which stays in view, lies over the finding of the address.
        for under in ["under", "underAtOnce"] {
            let is_under = one[under].as_f64().expect("a number") > 0.0;
            assert_eq!(is_under, is_wide, "{under}: {one:#}");
        }
        assert!(is_wide || one["sticks"] == true, "{one:#}");
        // Of 30 findings the first 20 are listed, on a telephone too.
        assert_eq!(one["rows"], if is_wide { 0 } else { 20 }, "{one:#}");
    }
}

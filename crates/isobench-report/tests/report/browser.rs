//! The page in a real browser: that it opens without a complaint and without the network, shows
//! values to pointer and keyboard, changes its theme, can be read in both, fits a phone and a desk,
//! prints, and hands out its data.
//!
//! Skipped where Chromium isn't installed. What can be told without a browser is in `html.rs`.

mod driver;

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::WebDriver;
use isobench_report::to_html;
use isobench_result::{Cell, Document};
use isobench_testkit::installed::{chromium, skip};
use serde_json::{Value, json};

use crate::examples;

/// The width of a sheet between its margins, in CSS pixels.
const A4: u32 = 688;

const SCRIPTS: &str = include_str!("browser/page.js");

/// A block of the scripts, by its name.
fn script(name: &str) -> &'static str {
    let begin = format!("// --- {name}\n");
    let (_, rest) = SCRIPTS.split_once(&begin).unwrap_or_else(|| panic!("there is no script {name}"));
    rest.split("// --- ").next().unwrap_or(rest)
}

/// A browser, and the examples as files.
struct Pages {
    session: WebDriver,
    folder: tempfile::TempDir,
}

impl Pages {
    /// `None`, and says so, if there is no browser.
    fn new(test: &str) -> Option<Pages> {
        let browser = chromium().map_err(|why| skip(test, &why)).ok()?;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let session = WebDriver::start(&browser, folder.path()).expect("the browser starts");
        Some(Pages { session, folder })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.html"))
    }

    /// Opens an example, with everything opened that can be.
    fn open(&self, name: &str) -> &WebDriver {
        self.show(name, || examples::example(name))
    }

    /// Opens a document, with everything opened that can be.
    fn show(&self, name: &str, document: impl FnOnce() -> Document) -> &WebDriver {
        let file = self.file(name);
        if !file.is_file() {
            fs::write(&file, to_html(&document())).expect("the page can be written");
        }
        self.session.open(&format!("file://{}", file.display()));
        self.session.run("for (const details of document.querySelectorAll('details')) details.open = true");
        &self.session
    }
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}

/// In as many browsers as there are processors.
#[test]
fn every_example_opens_fits_and_can_be_read() {
    let names: Vec<&str> = examples::all().into_iter().map(|(name, _)| name).collect();
    let browsers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for share in names.chunks(names.len().div_ceil(browsers)) {
            scope.spawn(|| open_fit_and_can_be_read(share));
        }
    });
}

fn open_fit_and_can_be_read(names: &[&str]) {
    let Some(pages) = Pages::new("every_example_opens_fits_and_can_be_read") else { return };
    let mut faults: Vec<String> = Vec::new();
    for name in names {
        let session = pages.open(name);
        let mut find = |what: &str, place: &str| {
            faults.extend(
                texts(&session.run(script(what))).iter().map(|fault| format!("{name}, {place}: {fault}")),
            );
        };
        for (width, theme) in [(390, "light"), (768, "dark"), (1280, "light"), (1920, "dark")] {
            session.resize(width);
            session.prefer(theme);
            find("clipped", &width.to_string());
            find("contrast", theme);
        }
        session.resize(A4);
        session.emulate("print");
        find("clipped", "on paper");
        session.emulate("");
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let complaints = pages.session.log("browser");
    assert!(complaints.is_empty(), "{complaints:#?}");
    let asked = requests(&pages.session);
    assert!(!asked.is_empty(), "the log knows the pages themselves");
    let others: Vec<&String> = asked.iter().filter(|url| !url.starts_with("file://")).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// The addresses that our pages asked for since the last call.
fn requests(session: &WebDriver) -> Vec<String> {
    let entries = session.log("performance");
    let url = |entry: &Value| {
        let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
        let sent = event["message"]["method"] == "Network.requestWillBeSent";
        let request = &event["message"]["params"];
        // The browser's own first page asks for much.
        let ours = request["documentURL"].as_str()?.starts_with("file://");
        (sent && ours).then(|| request["request"]["url"].as_str().unwrap_or_default().to_owned())
    };
    entries.iter().filter_map(url).collect()
}

#[test]
fn the_page_does_what_it_should() {
    let Some(pages) = Pages::new("the_page_does_what_it_should") else { return };
    let session = pages.open("observed");
    session.resize(1280);
    the_checks_find_faults(session);
    let session = pages.open("observed");
    landmarks_are_there(session);
    hatchings_are_seen(session);
    pointer_and_keyboard_show_values(session);
    the_switch_changes_the_theme(session);
    data_are_handed_out(session);
    the_page_prints(session);
    let complaints = session.log("browser");
    assert!(complaints.is_empty(), "{complaints:#?}");
    // Last, because it makes the browser complain.
    assert_eq!(session.wait_for(script("blocked")), "img-src", "the policy forbids requests");
}

/// A check that finds nothing must be able to find something.
fn the_checks_find_faults(session: &WebDriver) {
    session.run("document.querySelector('.headline').style.color = '#9a9a9a'");
    session.run("document.querySelector('.headline').style.background = '#fff'");
    assert_eq!(texts(&session.run(script("contrast"))).len(), 1, "grey on white is faint");
    session.run("document.querySelector('.headline').style.width = '3000px'");
    session.run("document.querySelector('.headline').style.maxWidth = 'none'");
    assert!(!texts(&session.run(script("clipped"))).is_empty(), "what is too wide is found");
}

#[test]
fn without_its_script_the_page_is_complete() {
    let Some(pages) = Pages::new("without_its_script_the_page_is_complete") else { return };
    let session = &pages.session;
    session.tell("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    session.prefer("light");
    pages.open("observed");
    session.resize(1280);
    let paper = || session.run("return getComputedStyle(document.body).backgroundColor");
    let light = paper();
    session.click("label[for=theme-dark]");
    assert_ne!(paper(), light, "the switch works by style alone");
    assert_eq!(session.run("return document.querySelectorAll('svg.chart title').length > 9"), true);
    assert_eq!(session.run("return document.querySelector('button.save').hidden"), true, "no dead button");
    session.run("document.querySelector('details.legend').open = false");
    session.click("details.legend summary");
    assert_eq!(session.run("return document.querySelector('details.legend').open"), true);
}

fn landmarks_are_there(session: &WebDriver) {
    let tree = session.tell("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().expect("a tree of nodes");
    for role in ["banner", "navigation", "main", "contentinfo"] {
        assert!(nodes.iter().any(|node| node["role"]["value"] == role), "there is no {role}");
    }
    session.press("Tab");
    assert_eq!(session.run("return document.activeElement.className"), "skip", "the first stop skips");
}

fn hatchings_are_seen(session: &WebDriver) {
    let strokes = session.run(script("hatchings"));
    let strokes = strokes.as_array().expect("a list");
    assert!(strokes.len() > 20, "{strokes:?}");
    assert!(strokes.iter().all(|stroke| stroke == "rgb(255, 255, 255)"), "{strokes:?}");
}

fn pointer_and_keyboard_show_values(session: &WebDriver) {
    assert_eq!(session.run(script("tip")), Value::Null, "nothing is pointed at");
    let mark = session.run(script("tipped"));
    let place = |name: &str| mark[name].as_f64().unwrap_or_else(|| panic!("no mark lies free: {mark}"));
    session.point(place("x"), place("y"));
    assert_eq!(session.run(script("tip")), mark["tip"], "the pointer shows the value");
    session.press("Escape");
    assert_eq!(session.run(script("tip")), Value::Null, "Escape hides it");
    session.point(1.0, 1.0);
    let tip = session.run(script("focus"));
    assert!(tip.is_string(), "no mark takes the keyboard");
    // The page may scroll on its way to the mark, and does here; the tip stays with it.
    session.settle();
    session.run("scrollBy(0, 40)");
    session.settle();
    assert_eq!(session.run(script("tip")), tip, "the keyboard shows the value");
    let described = session.run("return document.activeElement.getAttribute('aria-describedby')");
    assert_eq!(described, "tip", "and says so to screen readers");
    session.run("document.activeElement.blur()");
    assert_eq!(session.run(script("tip")), Value::Null, "it goes when the keyboard does");
}

fn the_switch_changes_the_theme(session: &WebDriver) {
    let paper = || session.run("return getComputedStyle(document.body).backgroundColor");
    session.prefer("light");
    let light = paper();
    session.prefer("dark");
    let dark = paper();
    assert_ne!(light, dark, "the system's theme is followed");
    for (theme, expected) in [("light", &light), ("dark", &dark)] {
        for system in ["light", "dark"] {
            session.prefer(system);
            session.run(&format!("document.getElementById('theme-{theme}').click()"));
            assert_eq!(paper(), *expected, "{theme} is chosen, the system's is {system}");
            let faint = texts(&session.run(script("contrast")));
            assert!(faint.is_empty(), "{theme}: {faint:#?}");
        }
    }
    session.run("document.getElementById('theme-auto').click()");
    session.prefer("light");
    assert_eq!(paper(), light, "the system's theme again");
}

/// The name and the text of the file that a button hands out.
fn saved(session: &WebDriver, selector: &str) -> (String, String) {
    let saved = session.wait_for(&script("saved").replace("SELECTOR", &json!(selector).to_string()));
    let [file, text] = ["file", "text"].map(|name| saved[name].as_str().expect("a text").to_owned());
    (file, text)
}

fn data_are_handed_out(session: &WebDriver) {
    let shown = session.run(
        "const button = document.querySelector('figure button.save'); \
         return [button.dataset.file, document.getElementById(button.dataset.save).textContent]",
    );
    let (file, text) = saved(session, "figure button.save");
    assert_eq!(shown, json!([file, text]));
    assert!(text.lines().count() > 1 && text.contains(','), "{file}: {text}");
}

fn the_page_prints(session: &WebDriver) {
    // On paper it is light, whatever was chosen.
    session.run("document.getElementById('theme-dark').click()");
    session.emulate("print");
    let paper = session.run("return getComputedStyle(document.documentElement).colorScheme");
    assert_eq!(paper, "light");
    let shown = session.run("return document.querySelector('.contents').getClientRects().length");
    assert_eq!(shown, 0, "the contents aren't printed");
    session.emulate("");
}

/// The number of sheets that a page takes as it stands.
fn sheets(session: &WebDriver) -> usize {
    let printed =
        session.tell("Page.printToPDF", &json!({ "printBackground": false, "preferCSSPageSize": true }));
    let pdf = STANDARD.decode(printed["data"].as_str().expect("a PDF")).expect("base64");
    assert!(pdf.starts_with(b"%PDF-"));
    pdf.windows(12).filter(|part| *part == b"/Type /Page\n").count()
}

#[test]
fn a_printed_page_is_short() {
    let Some(pages) = Pages::new("a_printed_page_is_short") else { return };
    for (name, most) in [("three-levels", 9), ("observed", 14), ("strategies", 14), ("many-factors", 14)] {
        let session = pages.open(name);
        session.run("for (const details of document.querySelectorAll('details')) details.open = false");
        let folded = sheets(session);
        assert!((1..=most).contains(&folded), "{name}: {folded} sheets");
        session
            .run("for (const details of document.querySelectorAll('section > details')) details.open = true");
        assert!(sheets(session) > folded, "{name}: what is open is printed");
    }
}

#[test]
fn tables_are_sorted_and_filtered() {
    let Some(pages) = Pages::new("tables_are_sorted_and_filtered") else { return };
    let session = pages.open("many-factors");
    session.resize(1280);
    let column = |number: u32| {
        texts(&session.run(&format!(
            "const rows = [...document.querySelector('.results').tBodies[0].rows].filter((row) => row.cells.length > \
             1); return rows.map((row) => row.cells[{number}].firstElementChild.textContent)"
        )))
    };
    let before = column(1);
    let heading = "document.querySelectorAll('.results thead th')[1]";
    for direction in ["ascending", "descending"] {
        session.run(&format!("{heading}.querySelector('button').click()"));
        assert_eq!(session.run(&format!("return {heading}.getAttribute('aria-sort')")), direction);
        let numbers: Vec<f64> =
            column(1).iter().map(|text| text.replace(',', "").parse().expect("a rate")).collect();
        let rises = numbers.is_sorted_by(|one, next| one <= next);
        let falls = numbers.is_sorted_by(|one, next| one >= next);
        assert!(if direction == "ascending" { rises } else { falls }, "{direction}: {numbers:?}");
    }
    let mut after = column(1);
    let mut same = before.clone();
    after.sort();
    same.sort();
    assert_eq!(after, same, "no row is lost");
    the_filter_hides_rows(session);
    let complaints = session.log("browser");
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// An example, and all its cells again with more clients.
fn many_rows() -> Document {
    let mut document = examples::example("many-factors");
    let more: Vec<Cell> =
        document.cells.iter().map(|cell| Cell { clients: cell.clients * 100, ..cell.clone() }).collect();
    document.cells.extend(more);
    document
}

#[test]
fn a_comparison_of_many_rows_stays_short() {
    let Some(pages) = Pages::new("a_comparison_of_many_rows_stays_short") else { return };
    let session = pages.show("many-rows", many_rows);
    session.run("for (const details of document.querySelectorAll('details')) details.open = false");
    session.resize(1280);
    let shown = || {
        let rows = "[...document.querySelectorAll('.results:not(details *) tr[data-values]')]";
        session.run(&format!("return {rows}.filter((row) => row.getClientRects().length).length"))
    };
    let height = || session.run("return document.documentElement.scrollHeight").as_u64().unwrap_or(u64::MAX);
    assert_eq!(shown(), 12);
    assert!(height() < 12_000, "{} pixels", height());
    assert!(sheets(session) < 14, "{} sheets", sheets(session));
    session.click("label[for=all-rows]");
    assert_eq!(shown(), 24);
    let clipped = texts(&session.run(script("clipped")));
    assert!(clipped.is_empty(), "{clipped:#?}");
}

fn the_filter_hides_rows(session: &WebDriver) {
    let shown = || {
        let rows = "[...document.querySelectorAll('.results:not(details *) tr[data-values]')]";
        session.run(&format!("return {rows}.filter((row) => row.getClientRects().length).length"))
    };
    let all = shown();
    let choose = |value: &str| {
        session.run(&format!(
            "const select = document.querySelector('.filters select'); select.value = {value:?}; \
             select.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        ))
    };
    choose("serializable");
    let chosen = shown();
    assert!(chosen.as_u64() < all.as_u64() && chosen.as_u64() > Some(0), "{chosen} of {all}");
    let status = session.run("return document.querySelector('.filters [role=status]').textContent");
    assert_eq!(status, format!("{chosen} of {all} rows"));
    choose("");
    assert_eq!(shown(), all);
}

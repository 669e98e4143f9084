//! The page in a real browser: that it opens without a complaint and without the network, shows
//! values to pointer and keyboard, changes its theme, can be read in both, fits a phone and a desk,
//! prints, and hands out its data.
//!
//! Skipped where Chromium isn't installed. What can be told without a browser is in `html.rs`.

#[path = "browser/driver.rs"]
mod driver;
mod examples;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::WebDriver;
use isobench_report::to_html;
use isobench_testkit::installed::{chromium, skip};
use serde_json::{Value, json};

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
        let file = self.file(name);
        if !file.is_file() {
            fs::write(&file, to_html(&examples::example(name))).expect("the page can be written");
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

#[test]
fn every_example_opens_fits_and_can_be_read() {
    let Some(pages) = Pages::new("every_example_opens_fits_and_can_be_read") else { return };
    for (name, _) in examples::all() {
        let session = pages.open(name);
        for (width, theme) in [(360, "light"), (768, "dark"), (1280, "light"), (1400, "dark")] {
            session.resize(width);
            session.prefer(theme);
            let wide = texts(&session.run(script("overflow")));
            assert!(wide.is_empty(), "{name} at {width}: {wide:#?}");
            let faint = texts(&session.run(script("contrast")));
            assert!(faint.is_empty(), "{name}, {theme}: {faint:#?}");
        }
    }
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
    data_are_handed_out(session, pages.folder.path());
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
    assert!(!texts(&session.run(script("overflow"))).is_empty(), "what is too wide is found");
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

fn data_are_handed_out(session: &WebDriver, folder: &Path) {
    let to = json!({ "behavior": "allow", "downloadPath": folder });
    session.tell("Browser.setDownloadBehavior", &to);
    let shown = session.run(
        "const button = document.querySelector('figure button.save'); button.click(); \
         return [button.dataset.file, document.getElementById(button.dataset.save).textContent]",
    );
    let file = folder.join(shown[0].as_str().expect("a name"));
    let text = shown[1].as_str().expect("a text");
    assert!(text.lines().count() > 1 && text.contains(','), "{text}");
    let patience = Instant::now() + Duration::from_secs(30);
    while fs::read_to_string(&file).ok().as_deref() != Some(text) {
        assert!(Instant::now() < patience, "{} was not saved", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn the_page_prints(session: &WebDriver) {
    let printed = session.tell("Page.printToPDF", &json!({ "printBackground": false }));
    let pdf = STANDARD.decode(printed["data"].as_str().expect("a PDF")).expect("base64");
    assert!(pdf.starts_with(b"%PDF-"));
    let pages = pdf.windows(12).filter(|part| *part == b"/Type /Page\n").count();
    assert!((2..60).contains(&pages), "{pages} pages");
    // On paper it is light, whatever was chosen.
    session.run("document.getElementById('theme-dark').click()");
    session.tell("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    let paper = session.run("return getComputedStyle(document.documentElement).colorScheme");
    assert_eq!(paper, "light");
    let shown = session.run("return document.querySelector('.contents').getClientRects().length");
    assert_eq!(shown, 0, "the contents aren't printed");
    session.tell("Emulation.setEmulatedMedia", &json!({ "media": "" }));
}

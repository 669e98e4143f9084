//! A headless browser, spoken to in `WebDriver`'s plain HTTP and JSON.
//!
//! Starts and ends its own processes only. Not here: what is tested.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isobench_testkit::installed::Browser;
use serde_json::{Value, json};
use ureq::Agent;

/// A session of a browser; it ends when this is dropped.
pub struct WebDriver {
    driver: Child,
    agent: Agent,
    /// The address of the session, once there is one.
    address: String,
}

impl WebDriver {
    /// Starts a driver and, with it, a browser without a window that keeps its data in `folder`.
    ///
    /// # Errors
    /// Says what doesn't work.
    pub fn start(browser: &Browser, folder: &Path) -> Result<WebDriver, String> {
        let mut driver = Command::new(&browser.driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", browser.driver.display()))?;
        let output = driver.stdout.take().expect("it is piped");
        let port = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| port_of(&line));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(2)))
            .build();
        let address = format!("http://127.0.0.1:{}/session", port.unwrap_or(0));
        let mut session = WebDriver { driver, agent: config.into(), address };
        if port.is_none() {
            return Err("chromedriver doesn't tell its port".to_owned());
        }
        let data = format!("--user-data-dir={}", folder.join("browser").display());
        let found = session.post(
            "",
            &json!({ "capabilities": { "alwaysMatch": {
                "browserName": "chrome",
                "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
                "goog:chromeOptions": {
                    "binary": browser.chromium,
                    "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", data],
                },
            }}}),
        )?;
        let id = found["sessionId"].as_str().ok_or("the browser's session has no name")?;
        session.address = format!("{}/{id}", session.address);
        Ok(session)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let address = format!("{}{path}", self.address);
        let request = self.agent.post(&address).content_type("application/json");
        let mut reply = request.send(body.to_string()).map_err(|error| error.to_string())?;
        let status = reply.status();
        // A printed page is large.
        let body = reply.body_mut().with_config().limit(100 << 20);
        let answer = body.read_to_vec().map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        if status.is_success() {
            Ok(answer["value"].clone())
        } else {
            Err(format!("{path}: {}", answer["value"]["message"]))
        }
    }

    /// Opens a page, and waits until it is there.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url })).expect("the page opens");
    }

    /// Runs a script as the body of a function; what it returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] })).expect("the script runs")
    }

    /// Runs a script that calls `arguments[0]` with its result when it is done.
    pub fn wait_for(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({ "script": script, "args": [] })).expect("the script ends")
    }

    /// Waits until two frames have been drawn: the events of what was scrolled, and of where the
    /// pointer was moved, are sent by then.
    pub fn settle(&self) {
        self.wait_for("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
    }

    /// Speaks to the browser in its own protocol. Source: Chrome `DevTools` Protocol.
    pub fn tell(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.post("/goog/cdp/execute", &body).unwrap_or_else(|why| panic!("{command}: {why}"))
    }

    /// The log since the last call: "browser" is the console, "performance" the network.
    pub fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind })).expect("there is a log");
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Makes the window so wide, in CSS pixels, as on a screen of this kind.
    pub fn resize(&self, width: u32) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.tell("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Shows the page as on this medium, "print" or, for the screen, "".
    pub fn emulate(&self, medium: &str) {
        self.tell("Emulation.setEmulatedMedia", &json!({ "media": medium }));
    }

    /// Makes the system's theme "light" or "dark".
    pub fn prefer(&self, theme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.tell("Emulation.setEmulatedMedia", &features);
    }

    /// Moves the pointer to a place in the window, once the page lies still: a page that scrolls
    /// takes its tip away.
    pub fn point(&self, x: f64, y: f64) {
        self.settle();
        self.tell("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
        self.settle();
    }

    /// Clicks on the middle of the first element that a selector finds.
    pub fn click(&self, selector: &str) {
        let middle = self.run(&format!(
            "const found = document.querySelector({selector:?}); \
             found.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const box = found.getBoundingClientRect(); \
             return [box.left + box.width / 2, box.top + box.height / 2]"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1 });
            self.tell("Input.dispatchMouseEvent", &event);
        }
    }

    /// Presses and releases a key by its name.
    pub fn press(&self, key: &str) {
        let code = if key == "Tab" { 9 } else { 27 };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.tell("Input.dispatchKeyEvent", &event);
        }
    }
}

impl Drop for WebDriver {
    fn drop(&mut self) {
        // The browser ends with its session, the driver only when it is ended. If one is gone
        // already, so much the better.
        let _ = self.agent.delete(&self.address).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The number in "`ChromeDriver` was started successfully on port 41234."
fn port_of(line: &str) -> Option<u16> {
    line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
}

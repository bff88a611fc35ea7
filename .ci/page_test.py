"""Looks at the status page as a person would: in a browser, at two sizes, by mouse and by keyboard."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from PIL import Image
from playwright.sync_api import sync_playwright

from daemon import DAEMON, ROOT, free_port, params
from page_picture import picture

SAMPLE = ROOT / "cuzk-synth/samples/c1-2KiB-v1_1-miner1000-sector43.json"
SIZES = {"desktop": (1360, 900), "phone": (390, 844)}
# What a hostile client may call its job. It must be seen as these characters.
NAME = "<img src=x onerror=alert(1)>"
# On a busy machine each takes long.
JOBS = 3
PATIENCE = 120
TOKEN_FILE_MODE = 0o600


class Daemon:
    """A daemon with a folder of its own, which may be ended and begun again."""

    def __init__(self, folder, more=""):
        self.folder, self.grpc, self.http = pathlib.Path(folder), free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}/"
        self.config = self.folder / "cuzk.toml"
        self.config.write_text(
            f'[daemon]\nlisten = "127.0.0.1:{self.grpc}"\n[http]\nlisten = "127.0.0.1:{self.http}"\n'
            f'[srs]\nparam_cache = "{params()}"\nallow_dev_params = true\n[store]\npath = "{folder}/store"\n{more}'
        )
        self.process, self.jobs = None, []

    def begin(self):
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([DAEMON, "serve", "--config", self.config], stderr=log)

    def end(self):
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0, (self.folder / "log").read_text()

    def prove(self, name, priority="normal"):
        """Sends a job, and does not wait for it."""
        words = ["prove", "--addr", f"127.0.0.1:{self.grpc}", "--c1", SAMPLE, "--miner", "1000", "--sector", "43"]
        words += ["--request-id", name, "--priority", priority, "--quiet", "--out", self.folder / f"proof{len(self.jobs)}"]
        self.jobs.append(subprocess.Popen([DAEMON, *words]))

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *_):
        for process in [self.process, *self.jobs]:
            process.kill()
            process.wait()


def open_page(browser, url, size, scheme="light"):
    """A page that notes what goes wrong, and what it asks of whom."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1, locale="en-GB"
    )
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.problems, page.foreign = [], []
    page.on("console", lambda message: message.type in ("error", "warning") and page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: request.url.startswith(url) or page.foreign.append(request.url))
    page.goto(url)
    return page


def clean(page):
    assert page.problems == [], page.problems
    assert page.foreign == [], page.foreign


def shot(page, folder, name):
    """Takes a picture, and makes sure that there is something on it."""
    path = folder / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    image = Image.open(path).convert("RGB")
    colours = image.getcolors(maxcolors=1 << 24)
    most = max(count for count, _ in colours)
    assert len(colours) > 50, f"{name}: only {len(colours)} colours"
    assert most < 0.97 * image.width * image.height, f"{name}: nearly all of one colour"
    for part in range(3):
        # Of the first screen, so that a long tail does not hide that its middle is empty.
        top = min(image.height, 900) * part // 3
        band = image.crop((0, top, image.width, top + min(image.height, 900) // 3))
        assert len(band.getcolors(maxcolors=1 << 24)) > 3, f"{name}: part {part} is blank"


def fits(page):
    """Nothing is wider than the screen."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than the screen"


def until(page, truth, seconds=20):
    """Waits until something is true in the page. Its policy forbids what playwright has for that."""
    end = time.monotonic() + seconds
    while not page.evaluate(truth):
        assert time.monotonic() < end, f"never: {truth}"
        time.sleep(0.1)


def live(page):
    page.wait_for_selector("body[data-link=live]")


def text_of(page, selector):
    return page.inner_text(selector)


def check_jobs(daemon, page, phone, folder):
    """Jobs that are sent meanwhile show up and finish, on both screens."""
    live(page)
    assert text_of(page, "#state") == "serving" and "cpu" in text_of(page, "#device-list")
    assert [row.split()[0] for row in page.locator("#queue-rows tr").all_inner_texts()] == [
        "critical", "high", "normal", "low",
    ]
    assert "porep-2k" in text_of(page, "#srs-rows") and "of" in text_of(page, "#share-list")
    daemon.prove(NAME, "high")
    for n in range(JOBS - 1):
        daemon.prove(f"job {n}")
    until(page, "document.querySelectorAll('#unfinished-rows tr').length >= 2")
    page.wait_for_selector("#device-list .workers li")
    shot(page, folder, "desktop-at-work")
    row = page.locator("#ended-rows tr", has_text=NAME)
    row.wait_for(timeout=1000 * PATIENCE)
    assert "completed" in row.inner_text() and "t01000/43" in row.inner_text()
    assert page.locator("img").count() == 0, "a request's name became markup"
    bar = row.locator(".phases")
    assert "synthesis" in bar.get_attribute("aria-label") and "kernels" in bar.get_attribute("aria-label")
    widths = bar.locator("span").evaluate_all("parts => parts.map(part => part.getBoundingClientRect().width)")
    assert len(widths) >= 3 and sum(widths) > 50, widths
    assert "Kernels ran" in text_of(page, "#device-list .use")
    drawn = page.evaluate(
        """() => {
            const canvas = document.querySelector("#device-list canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    assert drawn > 4, "the time line is empty"
    until(page, f"document.querySelectorAll('#ended-rows tr').length === {JOBS}", seconds=PATIENCE)
    for screen, name in ((page, "desktop"), (phone, "phone")):
        live(screen)
        until(screen, f"document.querySelectorAll('#ended-rows tr').length === {JOBS}")
        fits(screen)
        shot(screen, folder, name)
        clean(screen)


def check_keyboard(page):
    """Everything can be reached by Tab, and shows that it has been."""
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(
            """() => {
                const at = document.activeElement;
                const seen = at.matches("input") ? at.nextElementSibling : at;
                return [at.className || at.name || at.getAttribute("href"), getComputedStyle(seen).outlineStyle];
            }"""
        ))
    names = [name for name, _ in reached]
    for wanted in ("skip", "span", "/status.json", "/metrics", "/readyz"):
        assert wanted in names, (wanted, reached)
    assert all(outline == "solid" for name, outline in reached if name), reached
    page.focus("#spans input[value='120']")
    page.keyboard.press("ArrowRight")
    assert page.is_checked("#spans input[value='300']")
    until(page, "document.querySelector('#device-list canvas').getAttribute('aria-label').includes('5 min')")


def check_structure(page):
    """What those who do not see the page are told."""
    told = page.evaluate(
        """() => ({
            landmarks: ["header", "main", "footer"].map((name) => document.querySelectorAll(name).length),
            captions: [...document.querySelectorAll("table")].filter((table) => !table.caption?.textContent).length,
            images: [...document.querySelectorAll("[role=img]:not([hidden])")].filter((one) => !one.getAttribute("aria-label")).length,
            sections: [...document.querySelectorAll("section")].filter((one) => !document.getElementById(one.getAttribute("aria-labelledby"))).length,
            language: document.documentElement.lang,
        })"""
    )
    assert told == {"landmarks": [1, 1, 1], "captions": 0, "images": 0, "sections": 0, "language": "en"}, told


def check_large(browser, url, folder):
    """A machine with everything on it, made up: four devices, one of them sick, and errors."""
    for size, scheme in (("desktop", "dark"), ("phone", "light")):
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB")
        context.set_default_timeout(20_000)
        page = context.new_page()
        body = f"data: {json.dumps(picture(time.time_ns() // 1_000_000))}\n\n"
        page.route("**/events", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
        page.goto(url)
        until(page, "document.querySelectorAll('#device-list > li').length === 4")
        assert "gets no work" in text_of(page, "#device-list") and "Xid 79" in text_of(page, "#device-list")
        assert page.locator("#error-list li").count() == 3
        assert "loading, 42 %" in text_of(page, "#srs-rows")
        assert page.locator("#unfinished-rows tr").count() == 6
        fits(page)
        # The made-up stream ends at once, which dims the page.
        page.evaluate("document.querySelector('main').style.opacity = 1")
        shot(page, folder, f"large-{size}")
        context.close()


def check_lost(daemon, page, folder):
    """The page says so when the daemon is gone, and comes back with it."""
    daemon.end()
    page.wait_for_selector("#lost:not([hidden])")
    assert "Connection lost" in text_of(page, "#link") and "Trying again" in text_of(page, "#lost")
    shot(page, folder, "lost")
    daemon.begin()
    live(page)
    assert page.is_hidden("#lost")
    assert page.locator("#ended-rows tr").count() == JOBS, "finished jobs outlive the daemon"


def check_login(browser, folder):
    """With tokens, a browser comes in by the form and leaves by the button."""
    with tempfile.TemporaryDirectory() as place:
        made = subprocess.run(
            [DAEMON, "token", "new", "--name", "page", "--scope", "read"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        file = pathlib.Path(place, "tokens")
        file.write_text(made[1] + "\n")
        file.chmod(TOKEN_FILE_MODE)
        with Daemon(place, f'[auth]\ntokens = "{file}"\n') as daemon:
            wait_for_http(daemon)
            page = open_page(browser, daemon.url, "phone", "dark")
            assert page.url.endswith("/login")
            page.fill("#token", "not-a-token-of-this-daemon")
            page.keyboard.press("Enter")
            until(page, "document.querySelector('#message').textContent.includes('not known')")
            fits(page)
            page.screenshot(path=folder / "login.png")
            page.problems.clear()  # Chromium calls the refusal an error.
            page.fill("#token", made[3])
            page.click("button")
            live(page)
            [cookie] = page.context.cookies()
            assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and made[3] not in cookie["value"], cookie
            assert page.evaluate("document.cookie") == ""
            clean(page)
            page.click("text=Log out")
            page.wait_for_url("**/login")
            assert page.context.cookies() == []


def wait_for_http(daemon):
    """The page answers from the first moment on; before that there is the program's own start."""
    import urllib.error
    import urllib.request

    for _ in range(300):
        try:
            urllib.request.urlopen(f"{daemon.url}readyz", timeout=5)
            return
        except urllib.error.URLError:  # Also 503, as long as it is not ready.
            time.sleep(0.1)
    raise AssertionError((daemon.folder / "log").read_text())


def main():
    folder = pathlib.Path(sys.argv[1])
    begin = time.monotonic()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place, Daemon(place) as daemon:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        wait_for_http(daemon)
        page = open_page(browser, daemon.url, "desktop")
        phone = open_page(browser, daemon.url, "phone", "dark")
        check_jobs(daemon, page, phone, folder)
        check_structure(page)
        check_keyboard(page)
        clean(page)
        check_large(browser, daemon.url, folder)
        check_lost(daemon, page, folder)
        check_login(browser, folder)
        browser.close()
        daemon.end()
    print(f"status page: live at two sizes, by keyboard, over a restart, behind a token; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()

/* Each page at three widths: what sticks out of the page, and whether the header lies over what an address leads to. A wide table or
   listing scrolls in a box of its own, so it does not stick out. */
const WIDTHS = [360, 768, 1280];
const sleep = ms => new Promise(done => setTimeout(done, ms));
const wait = async what => { for (let i = 0; i < 120; i++) { const got = what(); if (got) return got; await sleep(250); } return null; };
const frame = async (page, width) => {
    const f = document.createElement("iframe");
    f.style.cssText = `border:0;height:900px;width:${width}px`;
    f.src = "/" + page;
    const loaded = new Promise(done => { f.onload = done; });
    document.body.append(f);
    await loaded;
    await sleep(100);
    return f;
};
const hides = (e, end, view) => {
    for (let p = e; p && p !== end; p = p.parentElement) if (p !== e && view.getComputedStyle(p).overflowX !== "visible") return true;
    return false;
};
const found = [];
for (const page of pages) for (const width of WIDTHS) {
    const f = await frame(page, width), d = f.contentDocument, view = f.contentWindow, room = d.documentElement.clientWidth;
    const out = [...d.body.querySelectorAll("*")].filter(e => {
        const box = e.getBoundingClientRect();
        return box.width > 0 && box.height > 0 && box.right > room + 1 && box.left < room && !hides(e, d.body, view);
    });
    const one = { page, width, wide: d.documentElement.scrollWidth > room, out: out.slice(0, 3).map(e => e.outerHTML.slice(0, 120)) };
    /* A report: its findings have addresses, and its header may wrap. */
    const last = [...d.querySelectorAll("article[id]")].pop(), header = d.querySelector("header");
    if (last) {
        view.location.hash = "#" + last.id;
        await sleep(200);
        const top = last.getBoundingClientRect().top;
        one.under = header.offsetHeight - top;
        one.rows = [...d.querySelectorAll("#overview tr[data-finding]")].filter(e => e.getBoundingClientRect().height > 0).length;
        one.sticks = Math.abs(header.getBoundingClientRect().top) < 1;
        const again = await frame(page + "#" + last.id, width), card = again.contentDocument.getElementById(last.id);
        one.underAtOnce = again.contentDocument.querySelector("header").offsetHeight - card.getBoundingClientRect().top;
        again.remove();
    }
    /* The site: its menu is there, or behind a button. */
    const button = d.querySelector("label.md-header__button[for=__drawer]"), menu = d.querySelector(".md-sidebar--primary");
    if (button && menu) {
        if (button.getBoundingClientRect().width > 0) button.click();
        const shown = () => [...menu.querySelectorAll("a[href], label")].filter(e => {
            const box = e.getBoundingClientRect();
            return box.width > 0 && box.left >= 0 && box.right <= room && box.top >= 0 && box.top < 900;
        }).length;
        /* It slides in. */
        one.menu = await wait(shown);
    }
    found.push(one);
    f.remove();
}
/* The search of the site finds a page and leads there. */
let hits = null;
const f = await frame(pages[0], 1280), open = f.contentDocument.querySelector(".md-search__button");
if (open) {
    open.click();
    const root = await wait(() => ([...f.contentDocument.querySelectorAll("*")].find(e => e.shadowRoot && e.shadowRoot.querySelector("input")) || {}).shadowRoot);
    const input = root.querySelector("input");
    const ready = await wait(() => !/Loading/.test(root.textContent));
    input.value = "record_stream";
    input.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    await wait(() => root.querySelector("a[href]"));
    hits = { ready: !!ready, links: [...root.querySelectorAll("a[href]")].map(a => new URL(a.href).pathname), text: root.textContent.slice(0, 200) };
}
answer({ found, hits });

/* The theme, and the height of the header: before anything is scrolled to, and whenever the header wraps anew. */
const $ = id => document.getElementById(id);
let dark = matchMedia("(prefers-color-scheme: dark)").matches;
const theme = () => {
    document.documentElement.classList.toggle("dark", dark);
    $("theme").setAttribute("aria-pressed", String(dark));
    $("theme").textContent = dark ? "dark: on" : "dark: off";
};
$("theme").addEventListener("click", () => { dark = !dark; theme(); });
theme();
const measure = () => document.documentElement.style.setProperty("--header", document.querySelector("header").offsetHeight + "px");
measure();
new ResizeObserver(measure).observe(document.querySelector("header"));

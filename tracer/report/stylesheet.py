"""How the report looks."""

CSS = """
:root { color-scheme: light dark; --ink: #202124; --soft: #5f6368; --line: #dadce0;
  --link: #0057a3; --paper: #fff; --panel: #f6f8fa; --hair: #f1f3f4; --error: #b3261e;
  --warning: #8a6100; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e6e8; --soft: #a3a9af; --line: #4a4f55; --link: #7cb7ff; --paper: #16181b;
    --panel: #212529; --hair: #2a2e33; --error: #ff8a80; --warning: #f0c75e; }
  figure svg [style*="#0072b2"] { filter: brightness(1.35); }
}
@media print { :root { color-scheme: light; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 0; }
h3 { font-size: 1rem; margin: 1.4em 0 .3em; }
header p, .question, .note { color: var(--soft); margin: .2em 0 1em; }
.note { font-size: .85rem; margin: 0 0 .4em; }
#advice { font-size: 1.1rem; max-width: 46em; margin: 0 0 1.2em; }
#advice p { margin: .3em 0; }
.cards { display: grid; gap: 10px; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); }
.cards + .note { margin-top: .5em; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; }
.card span { display: block; font-size: .8rem; color: var(--soft); }
.card b { font-size: 1.3rem; font-weight: 600; }
.good, .fair, .bad { border-left: 4px solid #009e73; padding: 8px 12px; margin: 16px 0;
  background: var(--panel); }
.fair { border-color: #e69f00; } .bad { border-color: #d55e00; }
.good ul, .fair ul, .bad ul { margin: .5em 0 0; padding-left: 1.2em; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 10px 0;
  border-bottom: 1px solid var(--line); }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
section { margin-top: 40px; scroll-margin-top: 12px; }
figure { margin: 1em 0; }
figcaption { font-size: .85rem; font-weight: 600; margin-bottom: .3em; }
figure svg { width: 100%; height: auto; display: block; }
.narrow { display: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 12px 3px 0; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line); }
td { border-bottom: 1px solid var(--hair); }
.text { text-align: left; }
summary { cursor: pointer; color: var(--link); font-size: .85rem; padding: .4em 0; }
.error b { color: var(--error); } .warning b { color: var(--warning); }
@media (max-width: 640px) {
  main { padding: 16px 12px 48px; }
  .wide { display: none; } .narrow { display: block; }
  .cards { grid-template-columns: repeat(2, 1fr); }
}
@media print { nav { display: none; } details { display: block; } }
"""

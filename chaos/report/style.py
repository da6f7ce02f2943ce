"""How the page looks: the system's own type, few colours, dark where the reader's system is dark, and paper when printed."""

STYLE = """
:root{--ink:#1d2126;--soft:#5b6570;--line:#dfe3e8;--paper:#fff;--tint:#f5f7f9;
--ok:#1a7f4b;--ok-bg:#e3f4ea;--bad:#b3261e;--bad-bg:#fde7e5;--open:#8a5a00;--open-bg:#fdf1d7;
--lease:#3b6fb6;--process:#2f8a57;--leader:#8b62b5;--worker:#8994a0;--bar-ink:#fff;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;--mono:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){:root{--ink:#e3e7eb;--soft:#98a3ae;--line:#2e353d;--paper:#14181c;--tint:#1b2126;
--ok:#63c78f;--ok-bg:#173326;--bad:#ff8a80;--bad-bg:#4a1d1a;--open:#e7b95a;--open-bg:#3d2f11;
--lease:#6b9be0;--process:#5cb884;--leader:#b08fd8;--worker:#7c8793;--bar-ink:#0d1013}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 var(--sans);font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}
main{max-width:1180px;margin:0 auto;padding:40px 28px 96px}
h1,h2,h3,h4,p,ul,dl,dd,pre,figure{margin:0;padding:0}
h1{font-size:30px;line-height:1.2;font-weight:640;letter-spacing:-.01em;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:21px;font-weight:640}h2 small{font-size:14px;font-weight:450;margin-left:10px}
h3{font-size:15px;font-weight:640;margin-bottom:8px}
small{color:var(--soft);font-weight:400}
.good,.ok{color:var(--ok)}.bad{color:var(--bad)}.open{color:var(--open)}.faint{color:var(--soft)}
h1{color:var(--ink)}header.good h1 span{color:var(--ok)}header.bad h1 span{color:var(--bad)}header.open h1 span{color:var(--open)}
.over{color:var(--soft);margin-bottom:6px}
.facts{color:var(--soft);margin-top:10px;overflow-wrap:anywhere}
.able{list-style:none;display:flex;flex-wrap:wrap;gap:2px 20px;margin-top:4px;color:var(--soft)}
nav{margin-top:28px}nav ul{list-style:none}nav li{padding:3px 0}nav a{display:inline-block;min-width:90px}
a{color:inherit;text-underline-offset:3px}
.drill{margin-top:48px;padding-top:28px;border-top:1px solid var(--line)}
.block{margin-top:36px}
.note{margin-top:16px}
pre,code{font:13px/1.5 var(--mono)}
pre{margin-top:8px;padding:7px 10px;background:var(--tint);border-radius:5px;white-space:pre-wrap;overflow-wrap:anywhere;user-select:all}
.totals{display:flex;flex-wrap:wrap;gap:18px 40px;margin-top:24px}
.totals div{display:flex;flex-direction:column-reverse}.totals dt{color:var(--soft);font-size:13px}.totals dd{font-size:22px;font-weight:560;line-height:1.2}
.wide{overflow-x:auto;border-radius:4px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin-bottom:12px;color:var(--soft);font-size:13px}
table{border-collapse:collapse}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
th{font-weight:inherit;text-align:left}
.plain{width:100%}.plain th,.plain td{padding:5px 18px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word}.plain tbody th{min-width:150px}.narrow{width:auto;min-width:min(100%,560px)}
.plain thead th{color:var(--soft);font-size:13px;white-space:nowrap}.plain .n{text-align:right;white-space:nowrap}
.plain .barred{width:36%}.plain td:last-child,.plain th:last-child{padding-right:0}
.matrix{font-size:13px}
.matrix th,.matrix td{padding:2px 3px;white-space:nowrap}
.matrix thead th{color:var(--soft);padding:2px 10px;vertical-align:bottom}.matrix thead small{display:block;font-size:12px}
.matrix thead tr:first-child th{color:var(--ink)}
.matrix tbody th[scope=row],.matrix thead tr:first-child th:first-child{position:sticky;left:0;background:var(--paper);padding-right:16px;font:13px/1.5 var(--mono);z-index:1}
.matrix thead tr:first-child th:first-child{font-family:var(--sans);color:var(--soft);padding-left:3px}
.matrix .role th{padding-top:18px;font-weight:640;font-size:14px;border-bottom:1px solid var(--line)}
.matrix .edge{padding-left:12px}
.matrix tbody tr:not(.role):hover th,.matrix tbody tr:not(.role):hover td{background:var(--tint)}
button{font:inherit;color:inherit;cursor:pointer}
button:focus-visible,a:focus-visible,summary:focus-visible,.wide:focus-visible{outline:2px solid var(--lease);outline-offset:1px}
.cell{display:block;width:100%;min-width:64px;margin:1px 0;padding:1px 8px;border:0;border-radius:4px;text-align:left;line-height:1.5}
.cell.ok{background:var(--ok-bg);color:var(--ok)}.cell.bad{background:var(--bad);color:var(--paper);font-weight:600}
.cell.skipped{background:none;color:var(--soft)}
.card{width:min(640px,calc(100vw - 32px));max-height:80vh;overflow:auto;padding:22px 24px;border:1px solid var(--line);border-radius:8px;background:var(--paper);color:var(--ink);box-shadow:0 12px 40px rgba(0,0,0,.28)}
.card::backdrop{background:rgba(0,0,0,.28)}
.card h4{font:600 14px/1.5 var(--mono);overflow-wrap:anywhere;margin-bottom:12px}
.card dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px}.card dt{color:var(--soft)}.card dd{overflow-wrap:anywhere}
.card ul{margin:12px 0 0 18px;color:var(--bad);overflow-wrap:anywhere}
.card>button{margin-top:16px;padding:4px 14px;border:1px solid var(--line);border-radius:5px;background:var(--tint)}
.findings{list-style:none}.findings li{padding:12px 0 12px 14px;border-left:3px solid var(--bad);margin-bottom:12px}
.findings p{overflow-wrap:anywhere;margin-top:2px}
.story{margin-top:22px}figcaption{font-weight:560;margin-bottom:6px;overflow-wrap:anywhere}
.lanes{display:flex;min-width:640px;padding-right:8px}
.names{list-style:none;flex:none;max-width:200px;position:sticky;left:0;z-index:1;background:var(--paper);padding-right:14px;font:13px/26px var(--mono)}
.names li{height:26px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.names small{font:12px var(--sans);margin-left:8px}
svg.axis{flex:1;min-width:0;overflow:visible}
.axis{padding:0}.scale{font-size:11.5px;fill:var(--soft)}.tick{stroke:var(--line)}.rule{stroke:var(--line);stroke-opacity:.6}
.span rect{fill:var(--worker)}.span text{font-size:11.5px;fill:var(--bar-ink)}
.span.k-lease rect{fill:var(--lease)}.span.k-process rect{fill:var(--process)}.span.k-leader rect{fill:var(--leader)}
.span.k-work rect{fill-opacity:.35}.span.k-worker rect{fill-opacity:.6}.span.k-work text,.span.k-worker text{fill:var(--ink)}.span.k-frozen rect,.span.k-stopped rect{fill:var(--open)}
.mark path,.mark circle,.mark rect{fill:none;stroke:var(--ink);stroke-width:1.6}.mark circle{fill:var(--paper);stroke-width:1.4}
.mark.k-kill path{stroke:var(--bad);stroke-width:2.6}.mark.k-stop path,.mark.k-cont path{stroke:var(--open);stroke-width:2.4}
.mark.k-fault path{stroke:var(--bad);fill:var(--bad-bg)}.mark.k-end rect{fill:var(--ink)}.mark .reach{stroke:none!important;fill:transparent!important}
.key{vertical-align:-2px;margin-right:4px}
.spread{width:100%;min-width:120px;overflow:visible}.spread .far{fill:var(--lease);fill-opacity:.3}.spread .near{fill:var(--lease)}.spread path{stroke:var(--soft);stroke-width:1.5}
details{margin-top:6px}summary{cursor:pointer;color:var(--soft);font-size:13px}
details table{margin-top:8px}
@media(max-width:640px){main{padding:24px 16px 64px}h1{font-size:24px}h2 small{display:block;margin:2px 0 0}.totals{gap:14px 28px}.totals dd{font-size:19px}.names{max-width:132px}.names small{display:none}.plain .barred{min-width:140px}}
@media print{:root{--paper:#fff}main{max-width:none;padding:0}.wide{overflow:visible}.card{display:none}.drill{break-before:page}.drill:first-of-type{break-before:auto}tr,.story,.findings li{break-inside:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
@supports not selector(:popover-open){.card{display:block;position:static;margin-top:16px;box-shadow:none}}
""".strip()

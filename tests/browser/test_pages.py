#!/usr/bin/env python3
"""Profile pages in Chromium, without a network: each opens without an error, fills its tables, and
answers clicks, the filter, keys and the pointer. A probe is added to a copy of the page; it acts as a user
would and leaves what it saw in the document, which the browser prints. TAP; skipped by name when there
is no browser (CHROMIUM names another one)."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

CATCH = """<script>window.probeErrors=[];
requestAnimationFrame=f=>setTimeout(()=>f(performance.now()),0); /* no frames without a screen */
addEventListener("error",e=>probeErrors.push(String(e.message)));
addEventListener("unhandledrejection",e=>probeErrors.push(String(e.reason)));
for(const k of ["error","warn"]){const f=console[k];console[k]=(...a)=>{probeErrors.push(k+": "+a.join(" "));f.apply(console,a)}}
</script>"""

PROBE = """<pre id="probe"></pre><script>(async()=>{
const wait=ms=>new Promise(r=>setTimeout(r,ms)),range=()=>document.getElementById("range").textContent;
const rows=q=>document.querySelectorAll(q).length,one=q=>document.querySelector(q);
const out={};
try{
  for(let i=0;i<500&&!document.body.dataset.ready;i++)await wait(20);
  await wait(100);
  out.ready=document.body.dataset.ready;out.title=document.title;out.cards=rows(".card");
  out.steps=rows("#steps tr");out.phases=rows("#phases tbody tr");out.legend=rows("#legend a");
  out.shares=rows("#shares div");out.empty=[...document.querySelectorAll("#phases td,#steps td")].filter(d=>!d.textContent.trim()).length;
  out.bad=[...document.querySelectorAll("td,b,span")].filter(d=>/NaN|undefined|Infinity/.test(d.textContent)).length;
  const r=[range()];
  one("#phases tbody tr").click();await wait(60);r.push(range());
  one("#reset").click();await wait(60);r.push(range());
  one("#steps tr:last-child").click();await wait(60);r.push(range());
  dispatchEvent(new KeyboardEvent("keydown",{key:"0"}));await wait(60);r.push(range());
  one("#zin").click();await wait(60);r.push(range());
  out.ranges=r;
  const find=one("#find");find.value="norm";find.dispatchEvent(new Event("input"));await wait(60);
  out.filtered=rows("#steps tr");
  find.value="";find.dispatchEvent(new Event("input"));one("#reset").click();await wait(60);
  const c=one("#main"),b=c.getBoundingClientRect();
  for(let i=0;i<64&&!out.tip;i++){
    c.dispatchEvent(new PointerEvent("pointermove",{clientX:b.left+60+i*13,clientY:b.top+30+i%8*60}));
    out.tip=one("#tip").style.display==="block"?one("#tip").textContent:""}
  one("#legend a").click();out.dimmed=rows("#legend a.off");
  const p=c.getContext("2d").getImageData(0,0,c.width,c.height).data,seen=new Set();
  for(let i=0;i<p.length;i+=4*97)seen.add(p[i]<<16|p[i+1]<<8|p[i+2]);
  out.colours=seen.size;
}catch(e){probeErrors.push("probe: "+e)}
out.errors=probeErrors;document.getElementById("probe").textContent=JSON.stringify(out);document.body.dataset.probed="1"})()
</script>"""

PAGES = [
    ("encoder", "--workload siglip-vit-benchmark --vit-small --tiles 64", 64),
    ("repeat", "--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 3 --fuse-qkv", 64),
    ("sampled", "--workload mlp-smoke --tiles 7 --sample-cycles", 7),
    ("sampled_repeat", "--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 3 "
     "--sample-cycles", 64),
    ("all_tiles", "--workload attention-smoke", 1472),
]


def browser():
    names = [os.environ["CHROMIUM"]] if "CHROMIUM" in os.environ else ["chromium", "chromium-browser"]
    return next((p for p in map(shutil.which, names) if p), None)


def look(exe, folder, page):
    """The probe's report and the browser's console lines."""
    text = open(page, encoding="utf-8").read()
    probed = os.path.join(folder, "probed.html")
    with open(probed, "w", encoding="utf-8") as f:
        f.write(text.replace("<head>", "<head>" + CATCH, 1).replace("</body>", PROBE + "</body>", 1))
    said = subprocess.run(
        [exe, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
         "--user-data-dir=" + os.path.join(folder, "user"), "--host-resolver-rules=MAP * ~NOTFOUND",
         "--virtual-time-budget=30000", "--enable-logging=stderr", "--dump-dom", "file://" + probed],
        capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="probe">(.*?)</pre>', said.stdout, re.S)
    if not found or not found.group(1):
        return None, said.stderr[-2000:]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        found_text = (found.group(1) if entity == "&lt;" else found_text).replace(entity, char)
    return json.loads(found_text), [l for l in said.stderr.splitlines() if ":CONSOLE" in l]


def wrong(r, console, tiles, options):
    """What is wrong with a page, as lines."""
    bad = []

    def want(ok, what):
        if not ok:
            bad.append(what)

    want(r.get("ready") == "1", f"not ready: {r.get('ready')}")
    want(not r["errors"], f"errors: {r['errors']}")
    want(not console, f"console: {console}")
    want(r.get("cards") == 7, f"cards: {r.get('cards')}")
    for table in ("steps", "phases", "legend", "shares"):
        want(r.get(table, 0) > 0, f"no rows: {table}")
    want(r.get("empty") == 0 and r.get("bad") == 0, f"empty {r.get('empty')}, bad {r.get('bad')} cells")
    ranges = r.get("ranges", [])
    want(len(ranges) == 6 and ranges[0] == ranges[2] == ranges[4] and
         len({ranges[0], ranges[1], ranges[3], ranges[5]}) == 4, f"ranges: {ranges}")
    want(f"tiles 0 to {tiles - 1}" in (ranges or [""])[0], f"first range: {ranges[:1]}")
    if "siglip-vit" in options:
        want(0 < r.get("filtered", 0) < r.get("steps", 0), f"filter: {r.get('filtered')} of {r.get('steps')}")
    want(r.get("tip", "").startswith("tile "), f"tip: {r.get('tip')}")
    want(r.get("dimmed") == 1, f"dimmed: {r.get('dimmed')}")
    want(r.get("colours", 0) > 3, f"colours: {r.get('colours')}")
    return bad


def main():
    exe = browser()
    if exe is None:
        print("1..1\nok 1 /browser/pages # SKIP chromium is not installed")
        return 0
    print(f"1..{len(PAGES)}")
    failed = 0
    for number, (name, options, tiles) in enumerate(PAGES, 1):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            run = subprocess.run([os.environ["IPU_STACK"], "e2e-test", *options.split(), "--page", page],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                bad = [run.stderr or run.stdout]
            else:
                report, console = look(exe, folder, page)
                bad = [console] if report is None else wrong(report, console, tiles, options)
        failed += bool(bad)
        print(f"{'not ok' if bad else 'ok'} {number} /browser/{name}", flush=True)
        for line in bad:
            print("# " + str(line).replace("\n", "\n# "))
    return 1 if failed else 0


sys.exit(main())

// Watches a job's page for a while, and prints how it did: frames, memory, rows.
//   node walk/endure.mjs URL CHROMIUM SECONDS
import { chromium } from 'playwright-core';

const [url, executablePath, seconds] = process.argv.slice(2);
const WINDOW_S = 5;

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
const wrong = [];
page.on('console', (message) => wrong.push(message.text()));
page.on('pageerror', (error) => wrong.push(error.stack));
let bytes = 0;
page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => (bytes += payload.length)));
await page.goto(url);
const results = page.getByRole('region', { name: 'Results', exact: true });
await results.locator('tbody tr[aria-rowindex]').first().waitFor({ timeout: 60_000 });

const devtools = await page.context().newCDPSession(page);
/** What is left after a collection, so that garbage does not count. */
async function heapMib() {
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return Math.round((10 * usedSize) / 2 ** 20) / 10;
}

await page.evaluate(() => {
  const seen = { frames: 0, longestMs: 0, lastMs: performance.now() };
  globalThis.seen = seen;
  const frame = (nowMs) => {
    seen.frames += 1;
    seen.longestMs = Math.max(seen.longestMs, nowMs - seen.lastMs);
    seen.lastMs = nowMs;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});
const windows = [];
const heaps = [await heapMib()];
const beganMs = Date.now();
while (Date.now() - beganMs < 1000 * Number(seconds)) {
  await page.evaluate(() => Object.assign(globalThis.seen, { frames: 0, longestMs: 0, lastMs: performance.now() }));
  const fromMs = Date.now();
  await page.waitForTimeout(1000 * WINDOW_S);
  const { frames, longestMs } = await page.evaluate(() => globalThis.seen);
  windows.push({ fps: (1000 * frames) / (Date.now() - fromMs), longestMs });
  if (windows.length % 12 === 0) heaps.push(await heapMib());
}
heaps.push(await heapMib());
const rates = windows.map(({ fps }) => fps).sort((a, b) => a - b);
const round = (value) => Math.round(10 * value) / 10;
console.log(
  JSON.stringify({
    seconds: Math.round((Date.now() - beganMs) / 1000),
    fps_mean: round(rates.reduce((sum, fps) => sum + fps, 0) / rates.length),
    fps_least_of_5_s: round(rates[0]),
    longest_frame_ms: Math.round(Math.max(...windows.map(({ longestMs }) => longestMs))),
    heap_mib: heaps,
    websocket_mib_a_second: round(bytes / 2 ** 20 / ((Date.now() - beganMs) / 1000)),
    results: await results.locator('header, :scope > div').first().innerText(),
    dom_nodes: await page.evaluate(() => document.querySelectorAll('*').length),
    wrong,
  }),
);
await browser.close();
process.exit(wrong.length === 0 ? 0 : 1);
